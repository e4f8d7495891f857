#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: run.sh COMMAND...     the server must print what the client sends, and both must end well
set -eu
received=$(mktemp)
trap 'rm -f "$received"' EXIT

"$@" >"$received" &
server=$!

if ! VIADUCT_CONNECT_RETRY_MS=50000 "$@" "hello, receiver"; then
    kill $server
    exit 1
fi

wait $server
[ "$(cat "$received")" = "hello, receiver" ]
