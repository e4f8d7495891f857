#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# coverage.sh [SUITE...]: runs the tests of build/coverage, by default all, and writes pages that show which lines of C++
# and Python ran; `./dev coverage` builds and runs this. Processes write down what ran as they end, except killed ones.
set -euo pipefail
cd "$(dirname "$0")/.."

directory=$PWD/build/coverage
python="not run" status=0
mkdir -p "$directory/bindings/python"
find "$directory" -name '*.gcda' -delete
rm -rf "$directory/cpp" "$directory/python" "$directory/index.html"
mkdir -p "$directory/cpp" "$directory/python"
# Each interpreter that finds the package here starts with this.
echo "import coverage; coverage.process_startup()" >"$directory/bindings/python/sitecustomize.py"
export COVERAGE_PROCESS_START=$PWD/tests/coverage.ini COVERAGE_FILE=$directory/python/data

suites=$(IFS='|' && echo "$*")
ctest --test-dir "$directory" --output-on-failure --no-tests=error -j $((2 * $(nproc))) \
    ${suites:+-L "^($suites)\$"} -LE '^device$' || status=1

gcovr -j "$(nproc)" --root . --object-directory "$directory" --filter '(api|backends|bindings|core|tools)/' \
    --exclude-directories '.*/CMakeFiles/[0-9.]*/' \
    --html-details "$directory/cpp/index.html" --html-title "Viaduct: C++" --print-summary >"$directory/cpp/summary"
cpp=$(sed -n 's/^lines: //p' "$directory/cpp/summary")
if ls "$directory"/python/data.* &>/dev/null; then
    /usr/bin/python3 -m coverage combine --quiet --rcfile=tests/coverage.ini "$directory/python"
    /usr/bin/python3 -m coverage html --quiet --rcfile=tests/coverage.ini -d "$directory/python"
    python=$(/usr/bin/python3 -m coverage report --rcfile=tests/coverage.ini | awk '/^TOTAL/ {print $NF " of " $2 " statements"}')
fi
cat >"$directory/index.html" <<END
<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Coverage of Viaduct</title><h1>Coverage of Viaduct</h1>
<ul><li><a href="cpp/index.html">C++</a>: lines, $cpp<li><a href="python/index.html">Python</a>: $python</ul></html>
END
echo "coverage: C++ $cpp; Python $python; build/coverage/index.html"
exit $status
