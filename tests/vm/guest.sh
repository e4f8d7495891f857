# shellcheck shell=dash
# SPDX-License-Identifier: BSD-3-Clause
# Process 1 of the guest, once the host's files are its root. Sets up the network and its RDMA devices, runs the command
# and reports its exit status to the program `run` on the host. `run` passes the command as a shell script and receives
# what is written to the ports of a virtual serial device. The shell is busybox, because its applets start much faster
# here than programs that the emulated processor must link first.
set -e
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
configuration=/sys/firmware/qemu_fw_cfg/by_name/opt/viaduct

configured() { cat "$configuration/$1/raw"; }

mount_systems() {
    mkdir -p /dev/pts /dev/shm
    mount -t devpts -o mode=620 devpts /dev/pts
    mount -t tmpfs -o mode=1777 shm /dev/shm
    mount -t debugfs debug /sys/kernel/debug
    mount -t cgroup2 cgroup /sys/fs/cgroup
    ln -s /proc/self/fd /dev/fd
    ln -s fd/0 /dev/stdin
    ln -s fd/1 /dev/stdout
    ln -s fd/2 /dev/stderr
}

# port NAME: prints the serial port with this name, without /dev/
port() { grep -lx "$1" /sys/class/virtio-ports/*/name | cut -d / -f 5; }

# Mounts the directories that the command may write to.
mount_writable() {
    local number=0 directory
    configured writable >/run/vm/writable
    while read -r directory; do
        mount -t 9p -o "trans=virtio,version=9p2000.L,cache=mmap,msize=262144" write$number "$directory"
        number=$((number + 1))
    done </run/vm/writable
}

# Prints commands for ip(8): two addresses, at the ends of one wire. Both ends belong to this system, which would
# normally deliver packets to its own addresses without a wire. Therefore the table of local addresses is used only for
# packets that arrive over the wire, and for packets from an address to itself. All other packets go over the wire, or
# are unreachable. A third address is not connected to the others.
network() {
    local number address
    echo "link set lo up"
    echo "link add veth1 mtu 9000 type veth peer name veth2 mtu 9000"
    echo "rule add pref 20 lookup local"
    echo "rule delete pref 0"
    for number in 1 2; do
        address=10.0.0.$number
        echo "address add $address dev veth$number"
        echo "rule add pref 10 from $address to $address lookup local"
        echo "rule add pref 10 to $address iif veth$number lookup local"
        echo "rule add pref 11 to $address lookup main"
        echo "rule add pref 12 to $address unreachable"
    done
    echo "link add veth3 mtu 9000 type veth peer name veth4 mtu 9000"
    echo "link set veth4 up"
    echo "address add 10.0.0.3 dev veth3"
}

set_up_hosts() {
    hostname host1
    printf '%s\n' '10.0.0.1 host1' '10.0.0.2 host2' '10.0.0.3 host3' >>/etc/hosts
    echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
    echo 1 >/proc/sys/net/ipv6/conf/default/addr_gen_mode # no IPv6 addresses there
    network | /bin/ip -batch -
    /usr/local/bin/host-up 1 2 3
}

# Leaves only the rxe driver of libibverbs. Otherwise every process would load the drivers of all vendors, which takes
# most of a second.
choose_driver() {
    local driver
    for driver in /etc/libibverbs.d/*.driver; do
        [ "$driver" = /etc/libibverbs.d/rxe.driver ] || rm -f "$driver"
    done
}

# Runs the command in a control group, by which all processes that it leaves running can be killed.
run_command() {
    mkdir /sys/fs/cgroup/command
    configured command >/run/vm/command
    mkfifo /run/vm/output /run/vm/errors
    cat /run/vm/output >"/dev/$output" &
    cat /run/vm/errors >"/dev/$errors" &
    set +e
    (
        echo 0 >/sys/fs/cgroup/command/cgroup.procs
        exec 3>&-
        exec /bin/sh /run/vm/command
    ) </dev/null >/run/vm/output 2>/run/vm/errors
    status=$?
    set -e
    echo 1 >/sys/fs/cgroup/command/cgroup.kill
    wait
}

# sent PORT: prints the number of bytes sent through the port. `run` reads that many before it stops the guest.
sent() { sed -n 's/^bytes_sent: //p' "/sys/kernel/debug/virtio-ports/$1"; }

mount_systems
control=$(port control) output=$(port output) errors=$(port errors)
exec 3>"/dev/$control"
mount_writable
set_up_hosts
choose_driver
echo ready >&3
run_command
sync
echo "exit $status $(sent "$output") $(sent "$errors")" >&3
exec sleep 2147483647
