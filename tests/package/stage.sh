#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# stage.sh NAME: runs the commands of a stage of the Dockerfile, and before them those of the stages that it is based on.
# Needs root, and a system of its own. What the stage copies must be there.
set -euo pipefail
dockerfile=$(sed ':join; /\\$/ { N; s/\\\n//; b join }' "$(dirname "$0")/../../Dockerfile")

run_stage() {
    local base
    base=$(sed -n "s/^FROM \(.*\) AS $1\$/\1/p" <<<"$dockerfile")
    case $base in
        "") echo "the Dockerfile has no stage $1" >&2 && return 1 ;;
        debian:*) ;;
        *) run_stage "$base" ;;
    esac
    while read -r command; do
        echo "+ $command"
        sh -ec "$command" </dev/null
    done < <(sed -n "/^FROM .* AS $1\$/,/^FROM .* AS / s/^RUN //p" <<<"$dockerfile")
}
run_stage "$1"
