#!/usr/bin/python3 -B
"""Tables and numbers of the pages that list things of the code: flags, names, options, files. usage: facts_test.py BIN"""

import functools
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from repository import LAYERS, ROOT, sources
from transcripts import PAGES, literals

BIN = pathlib.Path(sys.argv.pop())
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OTHERS = set("--allow-run-as-root --hostfile --mca --oversubscribe --kill-after --cflags --libs --build --preset --target --test-dir "
             "--benchmark_filter".split())  # of mpirun, timeout, pkg-config, CMake, Google Benchmark
WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
         "seventeen eighteen nineteen twenty").split()


def text(path):
    return (ROOT / path).read_text()


def rows(page, header):
    """The cells of the table that begins with a header."""
    lines = text(page).partition(header)[2].partition("\n\n")[0].splitlines()[2:]
    assert lines, f"{page} has no table {header}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names(cells):
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def first_names(page, header):
    return names(row[0] for row in rows(page, header))


@functools.cache
def help_of(program):
    """What a program of BIN, a command of ./dev or a script tells of its flags."""
    if program.startswith("./dev"):
        return subprocess.run([ROOT / "dev", *program.split()[1:], "--help"], capture_output=True, text=True).stdout
    if program.endswith(".py"):
        return text(program)
    if program.startswith("bench_"):
        return "".join((ROOT / path).read_text() for path in sources("bench"))
    return subprocess.run([BIN / program, "--help"], capture_output=True, text=True, timeout=60).stdout


def commands(page):
    """(program, its arguments) in blocks and in `code`."""
    for span in re.findall(r"^```(?:sh)?\n(.*?)^```|`([^`\n]+)`", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in "".join(span).replace("\\\n", " ").splitlines():
            for part in re.split(r"[;|#>]|&&", line):
                if match := re.search(r"(?:^|[ /])(\./dev \w+|(?<!/)(?:apps|bench|tests|tools)/[\w/]+\.py|\w+)((?: +\S+)* +--\S.*)", part):
                    program = match[1]
                    if program.startswith("./dev") or program.endswith(".py") or (BIN / program).is_file():
                        yield program, match[2]


def quoted(path, array):
    """The strings in the definition of an array."""
    return re.findall(r'"([\w-]+)"', text(path).partition(array)[2].partition(";")[0])


def connections():
    return quoted("mhc/connection.cpp", "kNames")


def mixings():
    return re.findall(r"\w+", text("mhc/mixings/list.cpp").partition("extern const Family ")[2].partition(";")[0])


class Facts(unittest.TestCase):
    def test_connections(self):
        self.assertCountEqual(first_names("docs/hyper_connections.md", "| `--connection` | in braid"), connections())

    def test_connections_of_the_stability_experiment(self):
        also = text("docs/stability.md").partition("`modes` may also name ")[2].partition(".")[0]
        self.assertCountEqual(first_names("docs/stability.md", "| connection | meaning") + names([also]),
                              quoted("apps/stability/settings.cpp", "kModeNames"))

    def test_instruction_sets(self):
        self.assertCountEqual(first_names("docs/install.md", "| `BRAID_ISA` | kernels"), quoted("core/instruction_set.cpp", "kNames"))

    def test_mixings(self):
        for header, more in {"| mixing | H of": [], "| mixing | logits": [], "| mixing | n = 4": [], "| mixing | parameters": ["residual"]}.items():
            self.assertCountEqual(first_names("docs/mixings.md", header), mixings() + more, header)

    def test_fuzz_targets(self):
        table = rows("docs/reliability.md", "| target | input")
        self.assertCountEqual(names(row[0] for row in table), [path.stem for path in sources("fuzz") if path.suffix == ".cpp"])
        counts = [int(row[2].replace(",", "")) for row in table if row[2]]
        self.assertIn(f"{sum(counts):,} executions of {WORDS[len(counts)]} targets", text("docs/reliability.md"))

    def test_numbers_of_things(self):
        in_vjps, in_rules = (len(rows("tests/planted/README.md", f"## In {where}\n\n| error")) for where in ("vjps", "rules"))
        plain = quoted("tests/random_programs/module_plan.cpp", "kPlain")
        quick = re.search(r"^modes = (.*)", text("apps/stability/quick.toml"), re.MULTILINE)[1]
        for page, sentence in (
            ("README.md", f"[{WORDS[len(connections())]} connections]"), ("README.md", f"[{len(mixings())} mixings]"),
            ("README.md", f"{in_vjps + in_rules} planted errors, {in_rules} of"),
            ("docs/mixings.md", f"among {len(mixings())} mixings"),
            ("docs/hyper_connections.md", f"compares {WORDS[len(mixings())]}"),
            ("docs/hyper_connections.md", f"by one of {len(mixings()) - 1} other published mixings"),
            ("docs/stability.md", f"each under {WORDS[quick.count(',') + 1]} connections"),
            ("docs/gallery.md", f"under {WORDS[quick.count(',') + 1]} connections"),
            ("docs/verify.md", f"puts {in_vjps} errors into the vjps"),
            ("docs/verify.md", f"modules of each of {len(plain) + len(connections()) + len(mixings()) - 1} kinds"),  # sinkhorn is mhc
        ):
            self.assertIn(sentence, text(page))

    def test_options_of_cmake(self):
        options = dict(re.findall(r"^option\((\w+) \".*\" (\S+)\)", text("CMakeLists.txt"), re.MULTILINE))
        default = {"on": "ON", "off": "OFF", "on; off by `add_subdirectory`": "${PROJECT_IS_TOP_LEVEL}"}
        shown = {name: default[row[1]] for row in rows("docs/install.md", "| option | default") for name in names(row[:1])}
        self.assertEqual(shown, options | {"BUILD_SHARED_LIBS": "OFF"})

    def test_optional_libraries(self):
        found = re.findall(r"^ *(?:find_package|braid_find_library)\(([\w-]+)", text("cmake/BraidDependencies.cmake") + text("CMakeLists.txt"),
                           re.MULTILINE)
        shown = text("docs/install.md").partition("CMAKE_DISABLE_FIND_PACKAGE_")[2].partition("\n\n")[0]
        others = names([shown.partition("the names of the others are ")[2]])
        self.assertCountEqual([shown.partition("=")[0], *others], set(found) - {"Threads"})

    def test_environment(self):
        read = {name for folder in [*LAYERS, "apps"] for path in sources(folder)
                for name in re.findall(r'getenv\("(BRAID_\w+)"\)', (ROOT / path).read_text())}
        pages = "".join(page.read_text() for page in PAGES)
        self.assertEqual([name for name in sorted(read) if name not in pages], [])
        everything = "".join((ROOT / path).read_text() for folder in [*LAYERS, "apps", "tests"] for path in sources(folder))
        known = everything + text("CMakeLists.txt") + text("CMakePresets.json")
        self.assertEqual([name for name in sorted(set(re.findall(r"BRAID_[A-Z_0-9]+", pages))) if name not in known], [])

    def test_debian_packages(self):
        listed = {line.split()[2] for line in text("packaging/packages.txt").splitlines() if line and line[0] != "#"}
        shown = set(re.findall(r"\b[\w-]+-dev\b", text("docs/install.md"))) - {"libbraid-dev", "libbraid-mpi-dev"}
        self.assertGreater(len(shown), 5)
        self.assertEqual(shown - listed, set())

    def test_commands_have_their_flags(self):
        found = [(page.name, program, flag) for page in PAGES for program, arguments in commands(page) for flag in FLAG.findall(arguments)]
        self.assertGreater(len(found), 100)
        for page, program, flag in found:
            passed_on = {"./dev demo": "train_lm", "./dev look": "look"}.get(program)
            known = FLAG.findall(help_of(program) + (help_of(passed_on) if passed_on else ""))
            self.assertIn(flag, {*known, *OTHERS}, f"{page}: {program} has no {flag}")

    def test_commands_of_dev(self):
        known = set(re.findall(r"^  \[(\w+)\]=", text("dev"), re.MULTILINE))
        for page in PAGES:
            self.assertEqual(set(re.findall(r"(?:^|`)\./dev (\w+)", page.read_text(), re.MULTILINE)) - known, set(), page.name)

    def test_folders(self):
        tree = text("CONTRIBUTING.md").partition("the folders of the tree -->\n```\n")[2].partition("```")[0]
        above = ""
        for indent, folder in re.findall(r"^( *)(\S+/) ", tree, re.MULTILINE):
            above = above if indent else folder
            self.assertTrue((ROOT / (above if indent else "") / folder).is_dir(), folder)

    def test_every_flag_is_one_of_some_program(self):
        programs = {program for page in PAGES for program, _ in commands(page)}
        scripts = [ROOT / "dev", *(path for folder in ("apps", "bench", "tests", "tools") for path in (ROOT / folder).rglob("*.py"))]
        known = set(FLAG.findall("".join([*map(help_of, programs), *(path.read_text() for path in scripts)]))) | OTHERS
        for page in PAGES:
            self.assertEqual(set(FLAG.findall(page.read_text())) - known, set(), page.name)

    def test_the_table_of_flags_of_train_lm(self):
        table = " ".join(row[1] for row in rows("docs/train_lm.md", "\n| | |"))
        lines = re.sub(r" *\n {20,}", " ", help_of("train_lm")).splitlines()
        help_text = {match[1]: line for line in lines if (match := re.match(r" +(?:-\w, *)?(--[\w-]+)", line))}
        self.assertEqual(set(FLAG.findall(table)), set(help_text) - {"--help", "--version"})
        for flag, default in re.findall(r"`(--[\w-]+)(?: [A-Z]+)?` \(([^,;)[]+)", table):
            with self.subTest(flag):
                self.assertRegex(help_text[flag], rf"(=| |\(|\[){re.escape(default.replace('`', ''))}\b")

    def test_the_files_of_a_run(self):
        table = names(row[0] for row in rows("docs/train_lm.md", "| file | holds"))
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder, "run")
            pathlib.Path(folder, "text.txt").write_text("the quick brown fox " * 99)
            flags = "--layers 1 --channels 8 --heads 2 --context 8 --batch 2 --steps 2 --checkpoint-every 1 --eval-every 1 --connection mhc"
            reports = "--telemetry-every 1 --check-gradients 1 --ledger --tensorboard --report"
            subprocess.run([BIN / "train_lm", "--text", "text.txt", *flags.split(), *reports.split(), "--out", run], cwd=folder, check=True,
                           capture_output=True)
            written = {path.name for path in run.iterdir()}
        self.assertEqual(written - set(table), set())
        code = "".join((ROOT / path).read_text() for path in sources("apps"))
        self.assertEqual([name for name in table if name.endswith((".jsonl", ".safetensors", ".html")) and name not in code], [])

    def test_errors_in_sentences_are_those_of_the_code(self):
        templates = [re.sub(r"\\\{[^}]*\\?\}", ".*", re.escape(literal)) for folder in [*LAYERS, "apps"] for path in sources(folder)
                     for line in literals((ROOT / path).read_text()).splitlines() for literal in re.findall(r'"([^"]{12,})"', line)]
        for page in PAGES:
            for error in re.findall(r"`(\w+: [^`]{15,})`", page.read_text()):
                self.assertTrue(any(re.search(template, error) for template in templates if len(template) > 20), f"{page.name}: {error}")


if __name__ == "__main__":
    unittest.main()
