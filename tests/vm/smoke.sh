#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that the guest supports what tests need. Runs itself in the guest and checks its exit code.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

say() { echo "-- $*"; }

fail() {
    echo "smoke: $*" >&2
    exit 1
}

# expect CODE COMMAND...
expect() {
    local expected=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" -eq "$expected" ] || fail "'$*' ended with $status, not with $expected"
}

# ---- In the guest ----

# ping_hosts SOURCE DESTINATION: rping between two addresses.
ping_hosts() {
    local server attempt
    rping -s -C 3 -a "$2" >/dev/null 2>&1 &
    server=$!
    for attempt in $(seq 50); do # until the server listens
        if rping -c -C 3 -I "$1" -a "$2" >/dev/null 2>&1; then break; fi
        [ "$attempt" -lt 50 ] || fail "no rping from $1 to $2"
    done
    wait "$server"
}

received() { awk -v netdev="$1:" '$1 == netdev { print $2 }' /proc/net/dev; }

state() { cat "/sys/class/infiniband/$1/ports/1/state"; }

in_guest() {
    local before
    say "two devices"
    [ "$(ibv_devices | grep -c 'rxe[12]')" -eq 2 ] || fail "ibv_devices does not show rxe1 and rxe2"

    say "from host to host, over the wire"
    before=$(received veth2)
    ping_hosts 10.0.0.1 10.0.0.2
    ping_hosts 10.0.0.2 10.0.0.1
    [ "$(received veth2)" -gt "$before" ] || fail "nothing came over the wire"

    say "within host 1"
    ping_hosts 10.0.0.1 10.0.0.1

    say "librpma"
    if [ -e /usr/lib/x86_64-linux-gnu/librpma.so.0 ]; then
        "$here/rpma_connect.py" 10.0.0.2
        "$here/rpma_connect.py" 10.0.0.1
    else
        echo "skipped: there is no librpma0"
    fi

    say "a link that goes down, and up again"
    ip link set veth2 down
    [ "$(state rxe2)" = "1: DOWN" ] || fail "rxe2 is $(state rxe2)"
    host-up 2
    [ "$(state rxe2)" = "4: ACTIVE" ] || fail "rxe2 is $(state rxe2)"
    ping_hosts 10.0.0.1 10.0.0.2

    say "a device that is removed, and comes back"
    rdma link delete rxe1
    [ ! -e /sys/class/infiniband/rxe1 ] || fail "rxe1 is still there"
    host-up 1
    ping_hosts 10.0.0.1 10.0.0.2

    say "what is written is lost"
    touch "$here/written-by-smoke" /usr/bin/written-by-smoke
    exit 42
}

# ---- Outside ----

[ "${1:-}" != in-guest ] || in_guest

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
expect 42 "$here/run" -- "$here/smoke.sh" in-guest
[ ! -e "$here/written-by-smoke" ] || fail "the guest wrote to this machine"

say "a long output, files that are kept, and what is left running"
head -c 10000000 /dev/urandom >"$scratch/big"
# shellcheck disable=SC2016
expect 139 "$here/run" -e SCRATCH="$scratch" -w "$scratch" -- sh -c \
    'sleep 1000 & cat "$SCRATCH/big" && cp "$SCRATCH/big" "$SCRATCH/copy" && kill -SEGV $$' >"$scratch/output"
cmp "$scratch/big" "$scratch/output"
cmp "$scratch/big" "$scratch/copy"

say "a command that hangs"
expect 124 "$here/run" -t 1 -- sleep 1000
echo "smoke: all is well"
