#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: run.sh HELLO      the server must print what the client sends, and both must end well
set -eu
hello=$1
received=$(mktemp)
trap 'rm -f "$received"' EXIT

"$hello" >"$received" &
server=$!

# Until the server waits, the client is told that nobody does.
attempts=0
until "$hello" "over the valley"; do
    attempts=$((attempts + 1))
    if [ $attempts -eq 200 ]; then
        kill $server
        exit 1
    fi
    sleep 0.05
done

wait $server
[ "$(cat "$received")" = "over the valley" ]
