#!/bin/sh
# Contracts in the kernel between @INSIDE@ and @OUTSIDE@, by bpftool and tc alone.
#
#   load.sh up        loads the programs and their maps, and puts them at both ports
#   load.sh down      takes away what up has put there, and nothing else
#   load.sh counters  prints what each account has counted, as bpftool shows it
#
# PINS names another folder of a bpffs than /sys/fs/bpf/inprofile.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
pins=${PINS:-/sys/fs/bpf/inprofile}
inside='@INSIDE@' outside='@OUTSIDE@'
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

# bank, on, bypass, clock, capacity, mark; the ports that frames leave by, and their MTUs; the key of hashes.
state() {
	for n in @BANK@ 1 0 0 @CAPACITY@ @MARK@ "$(index "$outside")" "$(index "$inside")" "$(mtu "$outside")" "$(mtu "$inside")"; do
		bytes "$n"
	done
	od -An -v -tx1 -N16 /dev/urandom | tr -d '\n'
}

# The port of a side. By its side a port is known in the bpffs, which refuses names with a dot, as VLANs have them.
port_of() {
	case $1 in
	inside) echo "$inside" ;;
	outside) echo "$outside" ;;
	esac
}

# What up has put at the port of a side is a folder of this name, as a bpffs has no files of ours.
put() {
	mkdir -p "$pins/put/$1/$2"
}

was_put() {
	test -d "$pins/put/$1/$2"
}

filters() {
	tc filter show dev "$1" ingress
	tc filter show dev "$1" egress
}

down() {
	for side in inside outside; do
		port=$(port_of $side)
		ip link show dev "$port" >/dev/null 2>&1 || continue
		for filter in "ingress 1" "egress 1" "egress 2"; do
			set -- $filter
			was_put $side "$1-$2" || continue
			tc filter del dev "$port" "$1" pref "$2" 2>/dev/null || :
		done
		# Hooks go unless somebody else has put a filter there since.
		if was_put $side clsact && test -z "$(filters "$port")"; then
			tc qdisc del dev "$port" clsact 2>/dev/null || :
		fi
		if was_put $side promisc; then
			ip link set dev "$port" promisc off
		fi
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
	for side in inside outside; do
		port=$(port_of $side)
		put $side clsact
		tc qdisc add dev "$port" clsact
		put $side egress-2
		tc filter add dev "$port" egress pref 2 bpf da bytecode '1,6 0 0 2'
		put $side egress-1
		tc filter add dev "$port" egress pref 1 bpf da object-pinned "$pins/programs/leaving"
		case $(ip -o link show dev "$port") in
		*PROMISC*) ;;
		*)
			put $side promisc
			ip link set dev "$port" promisc on
			;;
		esac
	done
	bpftool map update pinned "$pins/maps/state" key hex 00 00 00 00 value hex $(state)
	for side in inside outside; do
		put $side ingress-1
		tc filter add dev "$(port_of $side)" ingress pref 1 bpf da object-pinned "$pins/programs/$side"
	done
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
