#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh RELEASE...: makes the packages in these releases of Debian, and checks them in fresh systems, as well as the
# stages of the Dockerfile. Needs root; without it, the exit status is 77.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "$(id -u)" -ne 0 ]; then
    echo "root is needed to make other systems" >&2
    exit 77
fi
status=0
for release in "$@"; do
    packages=build/elsewhere/$release/viaduct/build/package
    tests/elsewhere "$release" tests/package/stage.sh packages
    tests/elsewhere --fresh "$packages" "$release" tests/package/check.sh /given || status=1
    # shellcheck disable=SC2016
    tests/elsewhere --fresh "$packages" "$release" sh -c \
        'mkdir /packages && cp /given/*.deb /packages && tests/package/stage.sh runtime && vi-info' || status=1
    rm -rf --one-file-system "build/elsewhere/$release-fresh"
done
exit $status
