#!/bin/sh
# Contracts in the kernel between @INSIDE@ and @OUTSIDE@, by bpftool and tc alone.
#
#   load.sh up        loads the programs and their maps, and puts them at both ports
#   load.sh down      takes everything away
#   load.sh counters  prints what each account has counted, as bpftool shows it
#
# PINS names another folder of a bpffs than /sys/fs/bpf/inprofile.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
pins=${PINS:-/sys/fs/bpf/inprofile}
inside='@INSIDE@' outside='@OUTSIDE@'
# The ports whose hooks are of this run.
mine=

fail() {
	echo "load.sh: $*" >&2
	exit 1
}

# Four bytes of a number, as the machine has them: least first.
bytes() {
	printf ' %02x %02x %02x %02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255))
}

# Number and MTU of an interface.
index() {
	ip -o link show dev "$1" | sed 's/:.*//'
}

mtu() {
	ip -o link show dev "$1" | sed 's/.* mtu \([0-9]*\) .*/\1/'
}

# bank, on, bypass, clock, capacity, mark; the ports that frames leave by, and their MTUs.
state() {
	for n in @BANK@ 1 0 0 @CAPACITY@ @MARK@ "$(index "$outside")" "$(index "$inside")" "$(mtu "$outside")" "$(mtu "$inside")"; do
		bytes "$n"
	done
}

down() {
	for port in "$inside" "$outside"; do
		case " $mine " in
		*" $port "*) ;;
		*) tc filter show dev "$port" egress 2>/dev/null | grep -qw leaving || continue ;;
		esac
		tc qdisc del dev "$port" clsact
		ip link set dev "$port" promisc off
	done
	rm -rf "$pins"
}

up() {
	for tool in bpftool tc ip; do
		command -v $tool >/dev/null || fail "there is no $tool here (Debian: bpftool, iproute2)"
	done
	for port in "$inside" "$outside"; do
		ip link show dev "$port" >/dev/null 2>&1 || fail "there is no interface $port"
		if tc qdisc show dev "$port" | grep -q clsact; then
			fail "$port has clsact hooks already, with filters that would see nothing: tc qdisc del dev $port clsact"
		fi
	done
	test ! -e "$pins" || fail "$pins is there already: load.sh down"
	case $(stat -f -c %t "$(dirname "$pins")") in
	cafe4a11) ;;
	*) fail "$(dirname "$pins") is no bpffs: mount -t bpf bpf $(dirname "$pins")" ;;
	esac
	trap 'down; fail "nothing was left behind"' EXIT
	mkdir -p "$pins/programs" "$pins/maps"
	bpftool prog loadall "$here/contracts.bpf.o" "$pins/programs" pinmaps "$pins/maps"
	sed "s#@PINS@#$pins#" "$here/maps.batch" | bpftool batch file - >/dev/null
	# Longer than a line of a batch may be.
	bpftool map update pinned "$pins/maps/powers" key hex 00 00 00 00 value hex $(cat "$here/powers.hex")
	# Closed to the machine first: what it sends itself does not leave by the ports.
	for port in "$inside" "$outside"; do
		tc qdisc add dev "$port" clsact
		mine="$mine $port"
		tc filter add dev "$port" egress pref 2 bpf da bytecode '1,6 0 0 2'
		tc filter add dev "$port" egress pref 1 bpf da object-pinned "$pins/programs/leaving"
		ip link set dev "$port" promisc on
	done
	bpftool map update pinned "$pins/maps/state" key hex 00 00 00 00 value hex $(state)
	tc filter add dev "$inside" ingress pref 1 bpf da object-pinned "$pins/programs/inside"
	tc filter add dev "$outside" ingress pref 1 bpf da object-pinned "$pins/programs/outside"
	trap - EXIT
}

counters() {
	while read -r index direction whose; do
		echo "# $direction, $whose"
		bpftool map lookup pinned "$pins/maps/accounts" key hex $(bytes "$index")
	done <"$here/accounts.txt"
}

case ${1-} in
up) up ;;
down) down ;;
counters) counters ;;
*) fail "write up, down or counters" ;;
esac
