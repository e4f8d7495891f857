#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: run.sh COMMAND...     the server must print what the client sends, and both must end well
set -eu
received=$(mktemp)
trap 'rm -f "$received"' EXIT

"$@" >"$received" &
server=$!

# Until the server listens, the client's requests are refused.
attempts=0
until "$@" "over the valley"; do
    attempts=$((attempts + 1))
    if [ $attempts -eq 200 ]; then
        kill $server
        exit 1
    fi
    sleep 0.05
done

wait $server
[ "$(cat "$received")" = "over the valley" ]
