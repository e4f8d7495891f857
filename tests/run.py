#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs the tests; `./dev test` installs the packages that they need and runs this.

run.py [LEVEL | SUITE...]: LEVEL is `unit`, `change` (the default) or `all`; CONTRIBUTING.md says what each is for. A
suite is a step of STEPS or a label of SUITES, and is run with all of its tests. The last line is the count of passed
and failed tests.

Which level has a test is said by its labels, where it is added:

    thorough   only in `all`
    device     needs RDMA devices: only in the guest (tests/vm); in `change`, too, with the label verbs
    guest      also in the guest, in `all`; in `change`, too, with the label verbs
    installed  in `change`, these are run with the installed libraries
    threads    also with the thread sanitizer
    plain      has nothing that a sanitizer could find
"""
import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build/results"
PREFIX = ROOT / "build/prefix"
PAGE = ROOT / "CONTRIBUTING.md"
STOCK_DAPL = pathlib.Path("/usr/include/dat2/udat.h")
LEVELS = "unit", "change", "all"
PROCESSORS = os.cpu_count() or 1
LINES = 25  # that are shown of a failed test
FINISHED = re.compile(r"\s*\d+/\d+ Test\s+#\d+: (.+?) \.*\s*(?:\*{3})?(Passed|[A-Z].*?)\s+([\d.]+) sec")

# What the suites of the release build need, if not all of their directory of tests and nothing else.
DAT = ["dat2", "daplviaduct"]
CONFORMANCE = [f"tests/conformance/{api}/all" for api in ("vipl", "rpma", "udat", "dat1")]
SUITES = {
    "unit": ["tests/unit/all"],
    "fuzz": ["tests/fuzz/all"],
    "contract": ["tests/contract/all"],
    "conformance": [*CONFORMANCE, "tests/conformance/routes/all", "daplviaduct"],
    "dapl": [*DAT, "tests/dapl/all"],
    "hosts": [*DAT, *CONFORMANCE, "tools/all", "bindings/python/all", "viaduct_contract_tests", "tests/faults/all",
              "tests/hosts/all", "tests/interop/all", "tests/failures/all"],
    "crash": ["tests/crash/all"],
    "chaos": [*DAT, "tests/chaos/all"],
    "failures": ["tests/failures/all"],
    "reasons": [*DAT, "dat", "bindings/python/all"],
    "matrix": [*DAT, "dat", "bindings/python/all"],
    "tools": ["tools/all", "tests/tools/all"],
    "check": [*DAT, "bindings/python/all", "tools/all", "tests/check/all", "tests/tools/all", "tests/python/all"],
    "python": ["bindings/python/all", "tools/all", "tests/python/all", "readme_hello"],
    "readme": ["all"],  # which it installs
    "examples": ["all"],
    "instructions": ["tests/bench/all"],
    "package": ["viaduct"],  # the packages are built in systems of their own
}


def only(*labels):
    return ["-L", f"^({'|'.join(labels)})$"]


def without(*labels):
    return ["-LE", f"^({'|'.join(labels)})$"]


@dataclasses.dataclass
class Step:
    """Tests of one build. `selection` has the options of ctest for each level that runs the step."""
    name: str
    selection: dict
    preset: str = "release"
    targets: dict = dataclasses.field(default_factory=dict)  # for a level; default: all


STEPS = [
    Step("release", {"unit": only("unit", "contract", "fuzz") + without("thorough"),
                     "change": without("device", "thorough"),
                     "all": without("device")},
         targets={"unit": ["tests/unit/all", "tests/contract/all", "tests/fuzz/all"]}),
    Step("installed", {"change": only("installed"), "all": []}),
    Step("guest", {"change": only("verbs"),
                   "all": only("verbs", "guest") + without("oracle", "faults")}),
    Step("oracle", {"all": only("oracle")}),
    Step("faults", {"all": only("faults")}),
    Step("asan-ubsan", {"change": only("unit", "contract") + without("plain"),
                        "all": without("device", "plain")}, "asan-ubsan",
         targets={"change": ["tests/unit/all", "tests/contract/all"]}),
    Step("tsan", {"all": only("unit", "contract", "threads") + without("plain")}, "tsan"),
    Step("lint", {"all": []}),
]


class Failed(Exception):
    """A step cannot run its tests."""


def run(*command, environment=None, quiet=False):
    done = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, check=False, text=True,
                          stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT if quiet else None)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout or ''}")


# ---- Building --------------------------------------------------------------------------------------------------------

def build_command(step, level):
    return ["./dev", "build", step.preset, *step.targets.get(level, [])]


def session_members(session):
    """Returns the processes of a session, without those that have ended."""
    members = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of_session = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[:4]
            if int(of_session) == session and state not in "ZX":
                members.append(int(stat.parent.name))
    return members


class Ahead:
    """Builds what later steps need with what the tests leave of the processors while they wait. The step itself builds
    the rest, and shows errors."""

    def __init__(self, commands):
        self.commands, self.process = commands, None

    def start(self):
        if self.process is None and self.commands:
            script = "echo 19 >/proc/self/autogroup; " + "; ".join(" ".join(command) for command in self.commands)
            # A session of its own can be killed whole; kernels may weigh sessions (autogroups), hence the second
            # niceness.
            self.process = subprocess.Popen(["nice", "-n", "19", "sh", "-c", script], cwd=ROOT, start_new_session=True,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        """What ninja runs has process groups of its own. A compiler that went on would write over what the step
        makes."""
        if self.process is not None:
            while members := session_members(self.process.pid):
                for process in members:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                self.process.poll()
                time.sleep(0.01)  # nothing notifies of the end of others' children
            self.process.wait()
            self.process = None


def install():
    shutil.rmtree(PREFIX, ignore_errors=True)
    run("cmake", "--install", "build/release", "--prefix", PREFIX, quiet=True)


def build_installed():
    """Programs as a user would build them: against an installed tree, found by pkg-config or as a CMake package."""
    install()
    shutil.rmtree(ROOT / "build/installed", ignore_errors=True)
    found = {**os.environ, "PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig")}
    run("cmake", "-S", "tests/installed", "-B", "build/installed", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={PREFIX}",
        "--log-level=WARNING", environment=found, quiet=True)
    run("cmake", "--build", "build/installed", quiet=True)


# ---- Running ---------------------------------------------------------------------------------------------------------

def fixed_addresses():
    """The thread sanitizer of gcc 12 knows address layouts with up to 28 random bits; on kernels with more, none is
    random."""
    bits = pathlib.Path("/proc/sys/vm/mmap_rnd_bits")
    if bits.exists() and int(bits.read_text(encoding="ascii")) > 28 \
            and subprocess.run(["setarch", "-R", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return ["setarch", "-R"]
    return []


def guest(processors):
    """Programs that wait for events and never spin cost a quarter to a half less on one emulated processor than on two,
    which interrupt each other a lot."""
    return ["tests/vm/run", "-c", str(processors), "-m", "4000", "-t", "2400", "-w", str(RESULTS),
            "-e", "VIADUCT_BACKEND=verbs", "-e", "CONFORMANCE_PATIENCE=3", "--"]


def launcher(step):
    if step.name in ("guest", "faults"):
        return guest(2)
    if step.name == "oracle":
        return guest(1)
    return fixed_addresses() if step.preset in ("asan-ubsan", "tsan") else []


def environment(step, level):
    variables = dict(os.environ)
    if step.preset in ("asan-ubsan", "tsan"):
        variables |= {"ASAN_OPTIONS": "detect_stack_use_after_return=1", "UBSAN_OPTIONS": "print_stacktrace=1",
                      "TSAN_OPTIONS": "halt_on_error=1"}
        if level:
            variables["CONFORMANCE_IGNORE_LEAKS"] = "yes"  # other suites call the same functions
    return variables


def listed(directory, selection):
    """Returns the names of the selected tests, each with its suite."""
    done = subprocess.run(["ctest", "--test-dir", directory, "--show-only=json-v1", *selection], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, check=True)
    tests = {}
    for test in json.loads(done.stdout)["tests"]:
        labels = [label for item in test.get("properties", []) if item["name"] == "LABELS" for label in item["value"]]
        tests[test["name"]] = next((label for label in labels if label in SUITES), test["name"].partition(".")[0])
    return tests


class Progress:
    """Tells of tests as they end: failures at once, a line for each suite with its last test, and on a terminal how
    many of how many there were."""

    def __init__(self, step, tests):
        self.step, self.tests, self.done, self.start = step, tests, 0, time.monotonic()
        self.left = collections.Counter(tests.values())
        self.passed, self.failed, self.skipped = (collections.Counter() for _ in range(3))
        self.seconds = collections.Counter()
        self.terminal = sys.stdout.isatty()

    def take(self, line):
        match = FINISHED.match(line)
        if not match or match[1] not in self.tests:
            return
        name, result, seconds = match[1], match[2], float(match[3])
        suite = self.tests[name]
        self.done += 1
        self.left[suite] -= 1
        self.seconds[suite] += seconds
        {"Passed": self.passed, "Skipped": self.skipped}.get(result, self.failed)[suite] += 1
        if result not in ("Passed", "Skipped"):
            self.say(f"FAILED {name} ({seconds:.1f} s): {result}")
        if self.left[suite] == 0:
            skipped = f", {self.skipped[suite]} skipped" if self.skipped[suite] else ""
            self.say(f"{self.step.name:10} {suite:12} {self.passed[suite]:5} passed, {self.failed[suite]} failed"
                     f"{skipped} {self.seconds[suite]:8.1f} s, after {time.monotonic() - self.start:.0f} s")
        elif self.terminal:
            print(f"\r\033[K{self.step.name} {self.done} of {len(self.tests)}: {name}", end="", flush=True)

    def say(self, text):
        print(("\r\033[K" if self.terminal else "") + text, flush=True)


def run_tests(step, level, selection):
    directory = "build/installed" if step.name == "installed" else f"build/{step.preset}"
    tests = listed(directory, selection)
    jobs = 3 if step.name in ("guest", "oracle", "faults") else 2 * PROCESSORS  # many wait for each other's processes
    command = [*launcher(step), "ctest", "--test-dir", directory, "--output-junit", RESULTS / f"{step.name}.xml",
               "--output-on-failure", "--no-tests=error", "-j", str(jobs), *selection]
    progress = Progress(step, tests)
    with open(RESULTS / f"{step.name}.log", "w", encoding="utf-8") as log, \
            subprocess.Popen(list(map(str, command)), cwd=ROOT, env=environment(step, level), text=True,
                             errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            log.write(line)
            progress.take(line)
    if not (RESULTS / f"{step.name}.xml").exists():
        raise Failed((RESULTS / f"{step.name}.log").read_text(encoding="utf-8"))
    return len(tests)


def run_step(step, level, selection, after_build=lambda: None):
    """Returns the number of its tests. A step that leaves no report, for instance because it does not build, counts as
    one failure."""
    start = time.monotonic()
    report, count = RESULTS / f"{step.name}.xml", 0
    try:
        if step.name == "lint":
            run("./dev", "lint", "--report", report)
        else:
            run(*build_command(step, level))
            if step.name == "installed":
                build_installed()
            built = time.monotonic() - start
            after_build()
            count = run_tests(step, level, selection)
            print(f"({step.name}: {time.monotonic() - start:.0f} s, of these {built:.0f} s building)", flush=True)
    except Failed as failure:
        print(failure, flush=True)
    if not report.exists():
        report.write_text(f"<testsuite><testcase name='{step.name}' status='fail'/></testsuite>", encoding="utf-8")
    return count


# ---- Counting --------------------------------------------------------------------------------------------------------

def table():
    """Returns the numbers of tests in CONTRIBUTING.md, by step and level."""
    rows = re.findall(r"^\| `([\w-]+)` +\|(.+)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {(name, level): int(cell) for name, cells in rows for level, cell in zip(LEVELS, cells.split("|"))
            if cell.strip().isdigit()}


def compare_counts(level, counts):
    """A test that is renamed or loses its label does not disappear silently. Without the stock DAPL, which Debian 13
    lacks, there are fewer tests."""
    expected = {name: count for (name, of_level), count in table().items() if of_level == level}
    suite = xml.Element("testsuite", name="levels")
    wrong = [f"{name}: {counts.get(name)} tests, but {expected.get(name)} in {PAGE.name}"
             for name in sorted(expected.keys() | counts) if counts.get(name) != expected.get(name)]
    status = "disabled" if not STOCK_DAPL.exists() else "fail" if wrong else "run"
    case = xml.SubElement(suite, "testcase", name=f"levels.{level}", status=status)
    xml.SubElement(case, "system-out").text = "\n".join(wrong)
    xml.ElementTree(suite).write(RESULTS / "levels.xml", encoding="utf-8")


def summarize():
    """Sums the reports, after the ends of what failed tests printed. Returns whether all have passed."""
    passed, failed, skipped = 0, {}, []
    for path in sorted(RESULTS.glob("*.xml")):
        for case in xml.parse(path).getroot().iter("testcase"):
            name = f"{path.stem}: {case.get('name')}"
            reason = case.find("skipped")
            if case.get("status") == "run":
                passed += 1
            elif case.get("status") == "disabled" \
                    or reason is not None and reason.get("message", "").startswith("SKIP_"):
                skipped.append(name)
            else:
                failed[name] = (case.findtext("system-out") or "").rstrip().splitlines()[-LINES:]
    for name, output in failed.items():
        print(f"\n-- {name}", *output, sep="\n")
    print()
    for name in skipped:
        print(f"skipped  {name}")
    for name in failed:
        print(f"FAILED   {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return not failed


# ---- Choosing --------------------------------------------------------------------------------------------------------

def run_level(level):
    steps = [step for step in STEPS if level in step.selection]
    later = [step for step in steps if step.preset != "release"]
    ahead, counts = Ahead([build_command(step, level) for step in later]), {}
    try:
        for step in steps:
            if step in later:
                ahead.stop()
            counts[step.name] = run_step(step, level, step.selection[level], ahead.start)
    finally:
        ahead.stop()
    compare_counts(level, {name: count for name, count in counts.items() if name != "lint"})


def run_suites(words):
    labels = [word for word in words if word in SUITES]
    if labels:
        targets = [target for label in labels for target in SUITES[label]]
        step = Step("release", {}, targets={None: targets})
        run_step(step, None, only(*labels) + without("device"))
    for step in STEPS:
        if step.name in words:
            run_step(step, None, step.selection["all"])


def main():
    names = [*SUITES, *(step.name for step in STEPS if step.name != "release")]
    parser = argparse.ArgumentParser(prog="./dev test", usage="./dev test [unit | all | SUITE...]",
                                     epilog=f"Suites: {', '.join(names)}. CONTRIBUTING.md describes them.")
    parser.add_argument("words", nargs="*", metavar="SUITE", help="run these suites whole")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # only the arguments
    arguments = parser.parse_args()
    words = arguments.words or ["change"]
    level = words[0] if len(words) == 1 and words[0] in LEVELS else None
    if not level and (unknown := [word for word in words if word not in names]):
        parser.error(f"unknown suite '{unknown[0]}'; choose from: {', '.join(names)}")
    if arguments.check:
        return 0
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir()
    if level:
        run_level(level)
    else:
        run_suites(words)
    return 0 if summarize() else 1


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    sys.exit(main())
