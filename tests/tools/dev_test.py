#!/usr/bin/python3 -B
"""./dev: its help and its checks of arguments, without a build."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from repository import ROOT


def dev(*args, script=ROOT / "dev", **environment):
    return subprocess.run([script, *args], capture_output=True, text=True, env=os.environ | environment)


class Dev(unittest.TestCase):
    def copy(self):
        """A checkout whose ./dev has nothing to build: its cmake is a script that prints its arguments."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name).resolve()
        (root / "dev").write_bytes((ROOT / "dev").read_bytes())
        (root / "packaging").mkdir()
        (root / "packaging/packages.txt").write_bytes((ROOT / "packaging/packages.txt").read_bytes())
        (root / "bin").mkdir()
        said = "echo $(basename $0) in $PWD; sleep 0.2; echo end"
        for name, body in {"cmake": said, "ctest": said, "dpkg-query": "printf 'installed %s\\n' \"$@\""}.items():
            (root / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        for script in (root / "dev", *(root / "bin").iterdir()):
            script.chmod(0o755)
        return root, {"PATH": f"{root}/bin:{os.environ['PATH']}"}

    def test_works_through_a_link_and_with_CDPATH(self):
        root, environment = self.copy()
        (root / "link").symlink_to("dev")
        with tempfile.TemporaryDirectory() as elsewhere:
            link = pathlib.Path(elsewhere, "dev")
            link.symlink_to(root / "dev")
            result = subprocess.run([link, "test"], capture_output=True, text=True, cwd=elsewhere,
                                    env=os.environ | environment | {"CDPATH": "/usr:."})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(f"ctest in {root}\n", result.stdout)

    def test_the_second_waits_for_the_first(self):
        root, environment = self.copy()
        lock = os.open(root, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen([root / "dev", "test"], stdout=subprocess.PIPE, text=True, env=os.environ | environment)
        self.assertEqual(process.stdout.readline(), f"==> waiting for another ./dev in {root}\n")
        self.assertIsNone(process.poll())
        os.close(lock)
        self.assertIn("ctest in", process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 0)

    def test_two_builds_do_not_overlap(self):
        root, environment = self.copy()
        with (root / "log").open("w") as log:
            both = [subprocess.Popen([root / "dev", "test"], stdout=log, env=os.environ | environment) for _ in range(2)]
            self.assertEqual([process.wait(timeout=60) for process in both], [0, 0])
        lines = [line for line in (root / "log").read_text().splitlines() if not line.startswith("==>")]
        for begin, end in zip(lines[::2], lines[1::2]):
            self.assertRegex(begin, "^(cmake|ctest) in")
            self.assertEqual(end, "end")

    def elsewhere(self, compiler, *programs):
        """./dev test on a system without dpkg that has these programs, and a compiler that finds headers if `compiler` succeeds."""
        root, environment = self.copy()
        (root / "bin/dpkg-query").unlink()
        (root / "bin/c++").write_text(f"#!/bin/sh\n{compiler}\n")
        (root / "bin/c++").chmod(0o755)
        return self.with_programs(root, *programs)

    def with_programs(self, root, *programs):
        for program in ("bash", "sh", "env", "readlink", "dirname", "basename", "grep", "awk", "sleep", "flock", "getconf", *programs):
            if not (root / "bin" / program).exists():
                (root / "bin" / program).symlink_to(shutil.which(program, path="/usr/bin:/bin"))
        return dev("test", script=root / "dev", PATH=f"{root}/bin")

    def with_dpkg(self, missing, *, apt=True):
        """./dev test where dpkg misses what matches, with an apt-get that fails or without one."""
        root, environment = self.copy()
        (root / "bin/dpkg-query").write_text(f"#!/bin/sh\nprintf 'installed %s\\n' \"$@\" | grep -v -E '{missing}'\n")
        if apt:
            for name, body in {"apt-get": "echo E: no network >&2; exit 100", "sudo": '"$@"'}.items():
                (root / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
                (root / "bin" / name).chmod(0o755)
        return self.with_programs(root, "sed", "sort", "comm", "cat", "tr")

    def test_with_dpkg_it_names_what_it_cannot_install(self):
        for apt, said, how in (False, ("", ""), "without apt-get"), (True, ("==> installing libdnnl-dev libzip-dev\n", "E: no network\n"), "by apt-get"):
            result = self.with_dpkg("lib(dnnl|zip)-dev", apt=apt)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (
                2, said[0],
                f"{said[1]}dev: cannot install libzip-dev {how}: install them yourself, or build what remains by CMake (docs/install.md)\n"))

    def test_with_dpkg_it_goes_on_without_what_is_optional(self):
        for apt, how in (False, "without apt-get"), (True, "by apt-get"):
            result = self.with_dpkg("libdnnl-dev", apt=apt)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"==> going on without libdnnl-dev, optional and not to be installed {how}\n", result.stdout)
            self.assertIn("ctest in", result.stdout)

    def test_without_apt_it_names_what_is_missing_for_each_manager(self):
        result = self.elsewhere("! grep -q fmt/", "git", "python3")
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        first, *others = result.stderr.splitlines()
        self.assertEqual(first, "dev: missing: ninja pkg-config fmt/format.h. Install what one of these installs, and run this again:")
        self.assertEqual(others, ["  apt-get install ninja-build pkg-config libfmt-dev",
                                  "  dnf install ninja-build pkgconf-pkg-config fmt-devel",
                                  "  pacman -S ninja pkgconf fmt",
                                  "  apk add ninja-build pkgconf fmt-dev",
                                  "  brew install ninja pkgconf fmt",
                                  "  conda install -c conda-forge ninja pkg-config fmt"])

    def test_without_apt_it_goes_on_where_everything_is_there(self):
        result = self.elsewhere("grep -q include", "git", "python3", "ninja", "pkg-config")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("ctest in", result.stdout)

    def test_what_it_does_not_know_is_one_line_and_exit_code_2(self):
        for args in (["nothing"], ["a\nb"], ["test", "("], ["test", "--preset", "x"], ["sanitize", ""], ["golden"], ["install"], ["look"],
                     ["abi", "no-such-commit"]):
            result = dev(*args)
            self.assertEqual((result.returncode, result.stderr.count("\n"), result.stdout), (2, 1, ""), args)

    def test_abi_needs_a_tag_or_a_commit(self):
        root, environment = self.copy()
        result = dev("abi", script=root / "dev", GIT_CEILING_DIRECTORIES=str(root.parent), **environment)
        self.assertEqual((result.returncode, result.stderr),
                         (2, "dev: abi: there is no tag to compare with; name a commit\n"))

    def test_abi_passes_another_soversion(self):
        root, environment = self.copy()
        git = ["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@braid.example"]
        (root / "CMakeLists.txt").write_text("project(braid VERSION 0.1.0)\n")
        for command in (["init", "-q"], ["add", "dev", "CMakeLists.txt"], ["commit", "-qm", "old"], ["tag", "v0.1"]):
            subprocess.run([*git, *command], check=True)
        (root / "CMakeLists.txt").write_text("project(braid VERSION 0.2.0)\n")
        result = dev("abi", script=root / "dev", **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("SOVERSION 0.1 in v0.1, 0.2 here", result.stdout)


if __name__ == "__main__":
    unittest.main()
