"""The tests of a build with mutants: recorded once, then run for each mutant."""

import concurrent.futures
import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import time

from workshop import BUILD, CORES, WORK, folder

MEMORY = 12 << 30  # bytes that a mutant may take


@dataclasses.dataclass(frozen=True)
class Test:
    """A test of GoogleTest, which shares its program's run with others, or a command of ctest."""

    name: str
    command: tuple
    seconds: float
    reached: frozenset
    in_program: bool
    expected: str = ""  # a regular expression that the output matches, in place of exit code 0


def prepare():
    """In the process of a test: a limit of memory, and SIGINT as ctest leaves it, for a job in the background ignores it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(command, cwd, environment, seconds):
    """The exit code and output; None for one that took longer. Nothing of it runs on."""
    temporary = tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True)
    process = subprocess.Popen(command, cwd=cwd, env=os.environ | environment | {"TMPDIR": temporary.name}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=prepare)
    try:
        output = process.communicate(timeout=seconds)[0].decode(errors="replace")
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()
        temporary.cleanup()


def passes(status, output, expected):
    return status == 0 if not expected else status is not None and re.search(expected, output, re.DOTALL) is not None


def commands(wanted):
    """Of ctest's tests with a wanted name (name, command, its properties); one for each test program."""
    listing = ["ctest", "--test-dir", BUILD, "--show-only=json-v1", "-LE", "slow", "-E", "^tools/"]
    seen = set()
    for test in json.loads(subprocess.run(listing, capture_output=True, text=True, check=True).stdout)["tests"]:
        command = test.get("command")
        in_program = command and any(argument.startswith("--gtest_filter") for argument in command)
        if in_program:
            command = command[:1]
        if command and tuple(command) not in seen and wanted(test["name"], in_program):
            seen.add(tuple(command))
            yield test["name"], tuple(command), {item["name"]: item["value"] for item in test.get("properties", [])}, in_program


def record(count, wanted):
    """Runs tests without a mutant, those for which `wanted(name, in_program)`, and returns those that pass."""
    def one(entry):
        index, (name, command, properties, in_program) = entry
        reached, lines = WORK / f"reached-{index}", WORK / f"tests-{index}"
        reached.write_bytes(bytes(count))
        lines.write_text("")
        environment = {"BRAID_MUTANT_REACHED": str(reached)} | ({"BRAID_MUTANT_TESTS": str(lines)} if in_program else {})
        expected = "|".join(properties.get("PASS_REGULAR_EXPRESSION", []))
        start = time.monotonic()
        status, output = run(command, properties.get("WORKING_DIRECTORY", BUILD), environment, 1800)
        seconds = time.monotonic() - start
        tests = []
        if in_program:
            for line in lines.read_text().splitlines():
                test, failed, took, *numbers = line.split()
                if failed == "0":
                    tests.append(Test(test, command, float(took), frozenset(map(int, numbers)), True))
        elif passes(status, output, expected):
            numbers = (number for number, byte in enumerate(reached.read_bytes()) if byte)
            tests.append(Test(name, command, seconds, frozenset(numbers), False, expected))
        if not passes(status, output, expected) and status != properties.get("SKIP_RETURN_CODE"):
            print(f"  fails without a mutant: {name}\n{output[-600:]}", flush=True)
        reached.unlink()
        lines.unlink()
        return tests

    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        found = list(pool.map(one, enumerate(commands(wanted))))
    return [test for tests in found for test in tests]


def in_turn(tests, path, patience):
    """Lists of tests that run together: first those of the file's own folder, quick and particular ones first."""
    def cost(test):
        mine = test.command[0].endswith(f"/{folder(path)}_tests") or test.name.startswith(f"{folder(path)}/")
        return (test.seconds + 0.05) * (1 if mine else 4) * (1 + len(test.reached) / 500)

    total, groups = 0.0, []
    for test in sorted(tests, key=cost):
        total += test.seconds
        if total > patience and groups:
            break
        last = groups[-1] if groups else []
        together = test.in_program and last and last[0].in_program and last[0].command == test.command
        if together and len(last) < 60 and sum(other.seconds for other in last) < 4:
            last.append(test)
        else:
            groups.append([test])
    return groups


def hunt(number, mutant, tests, patience):
    """Runs the tests that pass a mutant with it switched on: (outcome, the test that fails, or those that do not)."""
    passing = [test for test in tests if number in test.reached]
    if not passing:
        return "not reached", []
    ran = []
    for group in in_turn(passing, mutant.path, patience):
        command = list(group[0].command)
        if group[0].in_program:
            command += ["--gtest_filter=" + ":".join(test.name for test in group), "--gtest_fail_fast", "--gtest_brief=1"]
        allowed = 15 + 10 * sum(test.seconds for test in group)
        status, output = run(command, BUILD, {"BRAID_MUTANT": str(number)}, allowed)
        if not passes(status, output, group[0].expected):
            named = re.search(r"\[  FAILED  \] (\S+?),? ", output + " ")
            return "noticed", [named[1] if named else f"{group[0].name} or one after it"]
        ran += [test.name for test in group]
    return "survives", ran
