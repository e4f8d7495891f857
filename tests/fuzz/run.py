#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds fuzz targets with libFuzzer and runs them; `./dev fuzz` runs this.

run.py                       lists the targets
run.py TARGET|all [SECONDS]  runs a target, or each in turn, for 60 or SECONDS seconds, and prints a table at the end

A target begins with the inputs of inputs/TARGET.txt and those that earlier runs have kept below build/fuzz/TARGET/.
An input that crashes, takes longer than 30 seconds or leaks memory ends the run and is written to build/fuzz/TARGET/.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/fuzz"
LIMITS = ["-timeout=30", "-report_slow_units=30", "-max_len=4096", "-rss_limit_mb=4096"]
SYMBOLIZER = "/usr/lib/llvm-19/bin/llvm-symbolizer"
HEADER = "target", "executions", "edges covered", "seconds since the last new edge", "crashes"


def inputs_of(target):
    """Returns the file of inputs, which is a dictionary of libFuzzer, and the words in it."""
    path = HERE / f"inputs/{target}.txt"
    words = re.findall(r'^[^#"\n]*"(.*)"$', path.read_text(encoding="ascii"), re.MULTILINE)
    return path, [re.sub(r"\\(x..|.)", lambda found: chr(int(found[1][1:], 16)) if found[1][0] == "x" and found[1][1:]
                         else found[1], word).encode("latin-1") for word in words]


def run(target, seconds):
    """Returns a row of the table."""
    program = BUILD / f"tests/fuzz/viaduct_fuzz_{target}"
    directory = BUILD / target
    for part in "corpus", "seeds":
        (directory / part).mkdir(parents=True, exist_ok=True)
    dictionary, words = inputs_of(target)
    for word in words:
        (directory / "seeds" / hashlib.sha1(word).hexdigest()).write_bytes(word)
    command = [program, directory / "corpus", directory / "seeds", f"-dict={dictionary}", f"-max_total_time={seconds}",
               f"-artifact_prefix={directory}/", "-print_final_stats=1", *LIMITS]
    environment = os.environ | {"ASAN_SYMBOLIZER_PATH": SYMBOLIZER, "UBSAN_OPTIONS": "print_stacktrace=1"}
    print(f"\n== {target}", flush=True)
    executions, edges, last, crashes = 0, 0, time.monotonic(), 0
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=environment) as process:
        quiet = False
        for line in process.stdout:
            progress = re.match(r"#(\d+)\s+\w+\s+(?:cov: (\d+) )?", line)
            if progress:
                executions = int(progress[1])
                if int(progress[2] or 0) > edges:
                    edges, last = int(progress[2]), time.monotonic()
            elif total := re.match(r"stat::number_of_executed_units:\s*(\d+)", line):
                executions = int(total[1])
            elif artifact := re.search(r"Test unit written to (\S+)", line):
                crashes += 1
                print(f"repeat it with: {program} {' '.join(LIMITS)} {artifact[1]}", flush=True)
            quiet = quiet or line.startswith("###### Recommended dictionary")
            if not progress and not quiet and not re.match(r"INFO|stat::|\s+NEW_FUNC|Dictionary:|Done", line):
                print(line, end="", flush=True)
    if process.returncode != 0 and crashes == 0:
        sys.exit(f"{program} cannot run: exit status {process.returncode}")
    return target, f"{executions:,}", edges, round(time.monotonic() - last), crashes


def main(arguments):
    targets = sorted(path.stem for path in (HERE / "inputs").glob("*.txt"))
    if not arguments:
        print("\n".join(targets))
        return 0
    if arguments[0] not in ["all", *targets] or len(arguments) > 2:
        sys.exit(f"usage: ./dev fuzz [TARGET | all [SECONDS]]; the targets are: {', '.join(targets)}")
    seconds = int(arguments[1]) if len(arguments) > 1 else 60
    if subprocess.run(["./dev", "build", "fuzz", "tests/fuzz/all"], cwd=ROOT, check=False).returncode != 0:
        return 1
    rows = [run(target, seconds) for target in (targets if arguments[0] == "all" else arguments[:1])]
    print()
    for row in HEADER, ["---"] * len(HEADER), *rows:
        print("| " + " | ".join(map(str, row)) + " |")
    return 1 if any(row[-1] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
