#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: BSD-3-Clause
# The first program in the guest. Makes the host's files the root file system: read-only, with a layer of memory on top
# for everything that is written. Then continues with guest.sh there. The shell finds its commands in busybox once /proc
# is mounted.
set -e
/bin/busybox mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t sysfs sys /sys
# shellcheck disable=SC2046
modprobe -a $(cat /modules)

mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 root /host
mount -t tmpfs -o mode=755 scratch /scratch
mkdir /scratch/upper /scratch/work
mount -t overlay -o lowerdir=/host,upperdir=/scratch/upper,workdir=/scratch/work root /root
for system in dev proc sys run; do
    [ -d /root/$system ] || mkdir /root/$system
done
mount -t devtmpfs dev /root/dev
mount -t proc proc /root/proc
mount -t sysfs sys /root/sys
mount -t tmpfs -o mode=755 run /root/run
mkdir /root/run/vm
cp /bin/busybox /guest.sh /root/run/vm
cp /host-up /root/usr/local/bin
exec switch_root /root /run/vm/busybox sh /run/vm/guest.sh
