#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# check.sh DIRECTORY: installs the packages in DIRECTORY beside the stock ones in a fresh Debian, uses, upgrades and
# purges them. Needs root, and changes what is installed: run.sh gives it a system of its own. The last line is the count
# of passed and failed checks.
set -uo pipefail
packages=$(realpath "$1")
work=$(mktemp -d)
sources=$PWD
cd "$work" || exit 2
export DEBIAN_FRONTEND=noninteractive
passed=0 failed=0
triplet=$(dpkg --print-architecture | sed 's/amd64/x86_64/; s/arm64/aarch64/')-linux-gnu
private=/usr/lib/$triplet/viaduct
alternative=viaduct-$triplet

# check NAME COMMAND...
check() {
    local name=$1
    shift
    if "$@" >log 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        tail -n 20 log | sed 's/^/        /'
    fi
}

install() { apt-get install -y -q --no-install-recommends "$@"; }

# files: the names of all files of the system but those that apt itself keeps, and logs.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /run -o -path /given -o -path /viaduct \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg/'*-old' \
        -o -name __pycache__ \) -prune -o -print | sort
}

# served SERVER... -- CLIENT...: both must succeed.
served() {
    local server=()
    while [ "$1" != -- ]; do server+=("$1") && shift; done
    shift
    "${server[@]}" >server.log 2>&1 &
    local pid=$!
    VIADUCT_CONNECT_RETRY_MS=20000 "$@" || { kill $pid 2>/dev/null; cat server.log; return 1; }
    wait $pid || { cat server.log; return 1; }
}

# run_dtest COMMAND...: dtest between two processes, each run by the command. The server listens on port 15828.
run_dtest() {
    served "$@" dtest -P viaduct-lo -- once_it_listens "$@" dtest -P viaduct-lo -h 127.0.0.1
}
once_it_listens() {
    timeout 20 bash -c "until grep -q ':3DD4 .* 0A ' /proc/net/tcp; do sleep 0.1; done"
    "$@"
}

# uses LIBRARY PLACE COMMAND...: the command loads the library from this directory.
uses() {
    local library=$1 place=$2
    shift 2
    LD_TRACE_LOADED_OBJECTS=1 "$@" | tee /dev/stderr | grep -q "$library => $place/$library "
}

ping() { # LISTENING-API API
    served vi-ping --listen 7480 --api "$1" -c 1 -- vi-ping --api "$2" -c 2 -i 0.1 127.0.0.1:7480
}

alternative() { # on|off
    update-alternatives --set "$alternative" "$private/ld.so.conf.$1" && ldconfig
}

check "apt-get update" apt-get update -q
stock="librpma0 librpma-dev"
apt-cache show libdapl2 2>/dev/null | grep -q ^Package && stock+=" libdapl2 libdapl-dev dapl2-utils"
tools="g++ make cmake pkg-config python3-pytest man-db"
# shellcheck disable=SC2086
check "the stock packages and tools are installed" install $stock $tools
files >before
dpkg --get-selections | sort >selections

check "apt install ./*.deb, beside them" install "$packages"/*.deb
check "dpkg finds no file changed" dpkg --verify
check "libviaduct0 only recommends the libraries of RDMA" \
    sh -c '! dpkg -s libviaduct0 | grep -E "^Depends:.*(ibverbs|rdmacm|libnl)"'
for listener in vipl dat rpma; do
    for api in vipl dat rpma; do
        check "vi-ping from $api to $listener" ping $listener $api
    done
done
check "vi-info shows a device" sh -c 'vi-info | tee /dev/stderr | grep -q viaduct-lo'

# Programs built with the stock packages: theirs, and with the alternative ours.
cp "$sources"/tests/installed/*.c "$sources"/tests/installed/core.cpp .
check "rpma: built with the stock package" gcc rpma.c -o stock_rpma -lrpma -libverbs
check "rpma: the alternative is off" uses librpma.so.0 "/lib/$triplet" ./stock_rpma
check "rpma: vi-run takes ours" vi-run ./stock_rpma
check "alternative on" alternative on
check "rpma: the alternative is on" uses librpma.so.0 "$private" ./stock_rpma
check "rpma: runs" ./stock_rpma
if [[ $stock = *dapl* ]]; then
    check "dat: dtest with the alternative on" run_dtest env
    check "alternative off" alternative off
    check "dat: vi-run takes ours" run_dtest vi-run
    echo "viaduct-lo u2.0 nonthreadsafe default libdaplviaduct.so.2 viaduct.2.0 \"lo 0\" \"\"" >dat.conf
    check "dat: the stock registry takes our provider" run_dtest env DAT_OVERRIDE="$work/dat.conf"
fi
check "alternative off" alternative off
check "rpma: the alternative is off again" uses librpma.so.0 "/lib/$triplet" ./stock_rpma

# Users of the development package.
export PKG_CONFIG_PATH=$private/pkgconfig
for module in vipl:vipl.c librpma:rpma.c dat2:dat2.c dat:dat.c viaduct:core.cpp; do
    source=${module#*:} module=${module%:*}
    # shellcheck disable=SC2046
    check "pkg-config: $module" sh -c "g++ -x \$([ $source = core.cpp ] && echo c++ -std=c++20 || echo c) $source \
        \$(pkg-config --cflags --libs $module) -Wl,-rpath,$private -o with_$module && ./with_$module"
done
mkdir user
printf 'cmake_minimum_required(VERSION 3.22)\nproject(user LANGUAGES C CXX)\nfind_package(Viaduct REQUIRED)\n' \
    >user/CMakeLists.txt
for target in vipl:vipl.c rpma:rpma.c dat2:dat2.c dat:dat.c viaduct:core.cpp; do
    printf 'add_executable(use_%s ../%s)\ntarget_link_libraries(use_%s Viaduct::%s)\n' \
        "${target%:*}" "${target#*:}" "${target%:*}" "${target%:*}" >>user/CMakeLists.txt
done
# shellcheck disable=SC2016
check "CMake: all libraries" sh -c 'cmake -S user -B user/build && cmake --build user/build && cd user/build &&
    for program in use_*; do ./$program || exit 1; done'
check "Python: each API" python3 "$sources/tests/installed/python.py" /usr/lib/python3/dist-packages
mkdir foreign
echo 'def test_faults(viaduct_faults): pass' >foreign/test_foreign.py
check "pytest: the plugin is there" python3 -m pytest -q -p no:cacheprovider foreign
for page in vipl:VipPostSend rpma:rpma_send dat:dat_ep_post_send tools:vi-run viaduct:viaduct; do
    check "man ${page#*:}" man -w "${page#*:}"
done

# The same packages, as if of a later version.
mkdir later
for package in "$packages"/*.deb; do
    rm -rf unpacked
    dpkg-deb -R "$package" unpacked
    sed -i -E 's/^(Version: .*)/\1+later/; s/\(= ([^)]*)\)/(= \1+later)/g' unpacked/DEBIAN/control
    dpkg-deb --root-owner-group -b unpacked later >/dev/null
done
check "alternative on, before an upgrade" alternative on
check "upgrade" install ./later/*.deb
check "the alternative outlives the upgrade" uses librpma.so.0 "$private" ./stock_rpma
check "after the upgrade" ping vipl rpma

mapfile -t ours < <(dpkg-query -W -f '${source:Package} ${Package}\n' | sed -n 's/^viaduct //p')
# By default apt keeps what a remaining package recommends: ibverbs-providers, which came with libibverbs-dev.
check "purge ${#ours[@]} packages" \
    apt-get purge -y -q --autoremove -o APT::AutoRemove::RecommendsImportant=false "${ours[@]}"
ldconfig
files >after
# What the fresh system itself lacked before: nothing of ours, and nothing of what came with us.
check "nothing remains" diff before after
dpkg --get-selections | sort >selections_after
check "no package remains" diff selections selections_after
check "the stock library runs again" uses librpma.so.0 "/lib/$triplet" ./stock_rpma

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
