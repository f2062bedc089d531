#!/bin/sh
# Tries inprofiled.service under a systemd of its own, booted in namespaces on a copy of this machine's root that is
# thrown away: start, reload, log rotation, watchdog, kill, a port that is deleted, ports closed to the machine. Needs root, systemd, iproute2.
#   packaging/trial.sh target/release/inprofiled [kernel]
# With "kernel" the datapath is the kernel's, and inprofiled-kernel.conf is beside the unit: what is forwarded while the process stands still
# or is dead, and what is left at the ports, is looked at too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

boot() { # In the namespaces: makes the root, then becomes systemd.
    mount --make-rprivate /
    new=$(mktemp -d)
    mount -t tmpfs tmpfs "$new"
    mkdir "$new/upper" "$new/work" "$new/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$new/upper,workdir=$new/work" "$new/root"
    cd "$new/root"
    mkdir -p trial
    mount --bind "$trial" trial
    mount -t proc proc proc
    mount --bind proc/sys proc/sys
    mount -o remount,ro,bind proc/sys
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount --rbind /dev dev
    mount -t tmpfs tmpfs run
    mount -t tmpfs tmpfs tmp
    install -m 755 trial/inprofiled usr/bin/inprofiled
    install -m 644 trial/inprofiled.service etc/systemd/system/
    chroot . systemd-sysusers /trial/inprofiled.sysusers
    # Only this unit and what it needs, not all that a machine starts.
    mkdir -p etc/systemd/system/inprofiled.service.d
    printf '[Unit]\nDefaultDependencies=no\n' >etc/systemd/system/inprofiled.service.d/trial.conf
    printf '[Unit]\nDefaultDependencies=no\nWants=inprofiled.service\nAfter=inprofiled.service\n[Service]\nType=oneshot\nExecStart=/bin/sh /trial/trial.sh drive\nExecStopPost=/bin/systemctl exit --force --force\n' \
        >etc/systemd/system/trial.service
    assured='rate = "10 Mbit/s"
queue = { aqm = "drop_tail", limit = "100 packets" }' datapath=
    if [ -e trial/kernel ]; then
        install -m 644 trial/inprofiled-kernel.conf etc/systemd/system/inprofiled.service.d/kernel.conf
        assured='[[upstream.customers]]
name = "alice"
prefix = "10.0.0.0/8"
contract = "1 Mbit/s"
marker = { kind = "token_bucket", depth = "15 kB" }' datapath='datapath = "kernel"
pins = "/run/inprofiled-pins"'
    fi
    cat >etc/inprofiled.toml <<END
inside = "lan0"
outside = "wan0"
fix_offloads = true
$datapath
[control]
group = "games"
[log]
file = "/var/log/inprofiled/inprofiled.log"
[upstream]
$assured
END
    chmod 644 etc/inprofiled.toml
    ip link set lo up
    plug h0 lan0
    plug h1 wan0
    exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        chroot . /lib/systemd/systemd --system --unit=trial.service --log-target=null --show-status=no
}

plug() {
    ip link add "$1" type veth peer name "$2"
    ip link set "$1" up
    ip link set "$2" up
}

property() { systemctl show inprofiled -p "$1" --value; }

until_is() { # property, value: within twenty seconds, as a machine at work takes its time
    for _ in $(seq 40); do
        [ "$(property "$1")" != "$2" ] || { echo "ok   $1 is $2"; return 0; }
        sleep 0.5
    done
    echo "FAIL $1 is $(property "$1"), not $2"
    exit 1
}

has() { # file, text
    grep -q "$2" "$1" && echo "ok   $1 has $2" || { echo "FAIL $1 lacks $2"; exit 1; }
}

closed() { # how many filters there are to be at each port
    for port in lan0 wan0; do
        n=$({ tc filter show dev $port ingress; tc filter show dev $port egress; } | grep -c direct-action) || true
        [ "$n" = "$1" ] || { echo "FAIL $port has $n filters, not $1"; exit 1; }
    done
    echo "ok   each port has $1 filters"
}

in_kernel() { [ -e /trial/kernel ]; }

# How many programs of ours there are to be at the ports: each is held by a pin. (bpftool of Debian 12 shows no tcx.)
programs() {
    in_kernel || return 0
    n=$(find /run/inprofiled-pins -name 'link_*' | wc -l)
    [ "$n" = "$1" ] || { echo "FAIL $n programs at the ports, not $1"; find /run/inprofiled-pins; exit 1; }
    echo "ok   $1 programs at the ports"
}

forwarded() { cat /sys/class/net/h1/statistics/rx_packets; }

# The kernel's datapath forwards whatever the process does: what a host asks the link when it gets an address.
forwards() {
    in_kernel || return 0
    before=$(forwarded)
    asked=$((${asked:-0} + 1))
    ip addr add "2001:db8::$asked/64" dev h0
    for _ in 1 2 3 4 5 6 7 8; do
        [ "$(forwarded)" = "$before" ] || { echo "ok   it forwards while $1"; return 0; }
        sleep 0.25
    done
    echo "FAIL nothing is forwarded while $1"
    exit 1
}

drive() { # As a unit of the booted systemd.
    exec >/trial/result 2>&1
    log=/var/log/inprofiled/inprofiled.log
    well='packets are forwarded'
    ! in_kernel || well="$well in the kernel"
    systemd-analyze verify inprofiled.service
    echo "ok   systemd-analyze verify"
    until_is SubState running
    status=/proc/$(property MainPID)/status
    has "$status" 'CapEff:.0000000000001000'
    has "$status" 'NoNewPrivs:.1'
    closed 2
    programs 4
    has "$status" 'Seccomp:.2'
    member=$(setpriv --reuid=1234 --regid=games --clear-groups inprofiled stats 2>&1) || {
        echo "FAIL a member of control.group: $member"
        exit 1
    }
    echo "ok   a member of control.group may ask"
    ! setpriv --reuid=1234 --regid=daemon --clear-groups inprofiled stats 2>/dev/null || { echo "FAIL a stranger may ask"; exit 1; }
    echo "ok   a stranger may not"
    systemctl reload inprofiled
    until_is StatusText "$well"
    mv $log $log.1
    systemctl kill --kill-whom=main --signal=USR1 inprofiled
    sleep 1
    has $log 'opened anew'
    cp /etc/inprofiled.toml /etc/good.toml
    echo 'broken [' >>/etc/inprofiled.toml
    systemctl reload inprofiled
    sleep 1
    has $log 'the configuration before is kept'
    cp /etc/good.toml /etc/inprofiled.toml
    kill -STOP "$(property MainPID)"
    forwards "the process is stopped"
    until_is NRestarts 1
    until_is SubState running
    kill -KILL "$(property MainPID)"
    programs 4
    forwards "the process is dead or starts again"
    closed 2
    until_is NRestarts 2
    until_is SubState running
    closed 2
    ip link del wan0
    until_is StatusText '`wan0`: the interface was taken away'
    plug h1 wan0
    until_is StatusText "$well"
    until_is NRestarts 2
    closed 2
    programs 4
    systemctl stop inprofiled
    until_is Result success
    closed 0
    programs 0
    ! in_kernel || [ -z "$(find /run/inprofiled-pins -mindepth 1 -type d)" ] || { echo "FAIL pins are left"; exit 1; }
    has $log '"left_behind":0'
    # What the first process, which was killed, had switched off is on again: in user space, without leave to switch it, a start is refused.
    printf 'inside = "lan0"\noutside = "wan0"\n[upstream]\nrate = "10 Mbit/s"\nqueue = { aqm = "drop_tail", limit = "100 packets" }\n' >/etc/refused.toml
    inprofiled run /etc/refused.toml >/trial/refused 2>&1 || true
    has /trial/refused 'lan0.*tx on'
    echo done
}

case ${1:-} in
boot) boot ;;
drive) drive ;;
*)
    trial=$(mktemp -d)
    export trial
    trap 'rm -rf "$trial"' EXIT
    cp "$1" "$trial/inprofiled"
    cp "$here/inprofiled.service" "$here/inprofiled-kernel.conf" "$here/inprofiled.sysusers" "$0" "$trial/"
    [ "${2-}" != kernel ] || touch "$trial/kernel"
    timeout -k 5 150 unshare --pid --mount --fork --uts --net --cgroup --ipc --kill-child sh "$trial/trial.sh" boot || true
    cat "$trial/result"
    [ "$(tail -n 1 "$trial/result")" = done ]
    ;;
esac
