#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Management: what infiniband-diags says of two devices of one fabric, counters
# of the port, and the kernel's managers on it. Wants devices=2.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

sys=/sys/class/infiniband

# The value of a line "Name:....value" of smpquery's or perfquery's output,
# or of "name: value" of ibstat's.
value()
{
	sed -n "s/^[[:space:]]*$1:[.[:space:]]*//p" out | head -n 1
}

expect()
{
	local found

	found=$(value "$1")
	[[ $found == "$2" ]] || wrong "$1 is '$found', not '$2'"
}

# A program whose output "expect" looks at.
ask()
{
	run "$@" >out || { cat out; wrong "$1 fails"; }
	cat out
}

# A program that has to fail, and to say why.
refused()
{
	local why=$1

	shift
	! run "$@" | tee out || wrong "$1 goes through"
	grep -q -- "$why" out || wrong "it does not say '$why'"
}

# GUIDs as 0x and 16 digits, from ib_core's own files.
node_guid()
{
	echo "0x$(tr -d : <"$sys/$1/node_guid")"
}

port_guid()
{
	echo "0x$(cut -d: -f5- <"$sys/$1/ports/1/gids/0" | tr -d :)"
}

gid()
{
	cat "$sys/$1/ports/1/gids/0"
}

start()
{
	load_device
	modprobe ib_umad || true
	await 10 test -e /dev/infiniband/umad1 || wrong "ib_umad does not see both devices"
}

state_of_the_ports()
{
	local i

	for i in 0 1; do
		ask ibstat "rvt$i"
		expect 'Number of ports' 1
		expect 'Node GUID' "$(node_guid rvt$i)"
		expect 'System image GUID' "$(node_guid rvt$i)"
		expect 'Port GUID' "$(port_guid rvt$i)"
		expect State Active
		expect 'Physical state' LinkUp
		expect Rate 100
		expect 'Base lid' $((i + 1))
		expect LMC 0
		expect 'Link layer' InfiniBand
	done
	ask ibstat -l
	[[ $(grep -c '^rvt[01]$' out) -eq 2 ]] || wrong "it does not list both"
	ask ibstatus rvt1
	expect 'default gid' "$(gid rvt1)"
	expect state '4: ACTIVE'
	expect rate '100 Gb/sec (4X EDR)'
}

# By LID to both ports, and by a directed route to the own one.
who_is_there()
{
	local target i how to

	for target in 'rvt0 -D 0' 'rvt0 -L 1' 'rvt1 -L 2'; do
		read -r i how to <<<"$target"
		ask smpquery -C rvt0 "$how" nodeinfo "$to"
		expect NodeType 'Channel Adapter'
		expect NumPorts 1
		expect Guid "$(node_guid "$i")"
		expect SystemGuid "$(node_guid "$i")"
		expect PortGuid "$(port_guid "$i")"
		expect PartCap 16
		expect LocalPort 1
		expect VendorId 0x525654
	done
	ask smpquery -C rvt0 nodedesc 2
	expect 'Node Description' "$(<$sys/rvt1/node_desc)"
}

where_is_it()
{
	local group guid=0x

	ask ibaddr -C rvt0
	grep -q 'LID start 0x1 end 0x1$' out || wrong "not LID 1"
	ask ibaddr -C rvt0 2
	grep -q 'LID start 0x2 end 0x2$' out || wrong "not LID 2"
	# In four groups, without the zeros at the beginning of each.
	for group in $(sed -n 's/^GID fe80::\([0-9a-f:]*\) .*/\1/p' out | tr : ' '); do
		guid+=$(printf '%04x' "0x$group")
	done
	[[ $guid == "$(port_guid rvt1)" ]] ||
		wrong "another GID than $(gid rvt1)"
}

port_info()
{
	local lid

	for lid in 1 2; do
		ask smpquery -C rvt0 portinfo "$lid"
		expect Lid "$lid"
		expect GidPrefix 0xfe80000000000000
		expect LinkState Active
		expect PhysLinkState LinkUp
		expect LinkWidthActive 4X
		expect LinkSpeedExtActive '25.78125 Gbps'
		expect NeighborMTU 4096
		expect MtuCap 4096
		expect LMC 0
		expect VLCap VL0
		expect GuidCap 16
		expect PkeyViolations 0
		[[ $(printf '%d' "$(value CapMask)") -eq $(printf '%d' "$(<"$sys/rvt$((lid - 1))/ports/1/cap_mask")") ]] ||
			wrong "CapMask is not cap_mask of sysfs"
	done
}

pkeys()
{
	ask smpquery -C rvt0 pkeys 1
	[[ $(sed -n 's/^ *0: //p' out) == '0xffff 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000' ]] ||
		wrong "not one P_Key, the default"
	grep -q '^16 pkeys capacity for this port$' out || wrong "not 16 entries"
}

not_there()
{
	refused 'slvl query failed' smpquery -C rvt0 sl2vl 1
	refused 'failed: query' sminfo -C rvt0
	refused 'node info query failed' smpquery -C rvt0 -D nodeinfo 0,1
	refused 'node info query failed' smpquery -C rvt0 nodeinfo 77
	# The fabric has no switch: nobody is behind the port.
	ask ibnetdiscover -C rvt0
	grep -q "^caguid=$(node_guid rvt0 | sed 's/^0x0*/0x/')\$" out ||
		wrong "it does not find its own node"
	# A port that is always up cannot be switched off.
	refused 'set portinfo failed' ibportstate -C rvt0 1 1 disable
	ask ibportstate -C rvt0 1 1
	expect LinkState Active
}

# The four counters that move, as sysfs shows them.
counters()
{
	cat "$sys/$1"/ports/1/counters/port_{xmit,rcv}_{data,packets}
}

# A ping-pong of 100 messages of 4096 bytes each way, and nothing else.
ping()
{
	pair ibv_rc_pingpong -d rvt0 -g 0 -s 4096 -n 100 -- \
		ibv_rc_pingpong -d "$1" -g 0 -s 4096 -n 100 localhost
}

grown_by()
{
	local before=$1 after=$2 want=$3 i found=()
	local b a

	mapfile -t b <<<"$before"
	mapfile -t a <<<"$after"
	for i in 0 1 2 3; do
		found+=($((a[i] - b[i])))
	done
	[[ ${found[*]} == "$want" ]] || wrong "grown by ${found[*]}, not $want"
}

# In words of four bytes, and packets of the path MTU, 1024.
counters_grow()
{
	local before0 before1

	before0=$(counters rvt0)
	ping rvt0
	grown_by "$before0" "$(counters rvt0)" "$((200 * 1024)) 800 $((200 * 1024)) 800"
	# To another device half of it is sent, and half received.
	before0=$(counters rvt0)
	before1=$(counters rvt1)
	ping rvt1
	grown_by "$before0" "$(counters rvt0)" "$((100 * 1024)) 400 $((100 * 1024)) 400"
	grown_by "$before1" "$(counters rvt1)" "$((100 * 1024)) 400 $((100 * 1024)) 400"
}

# perfquery's own datagrams count, too: 64 words each. What is shown has the
# questions in it, and all answers but the last.
perfquery_shows()
{
	local before

	before=$(<$sys/rvt0/ports/1/counters/port_rcv_packets)
	ask perfquery -C rvt0
	expect PortSelect 1
	expect SymbolErrorCounter 0
	expect PortRcvErrors 0
	expect PortXmitDiscards 0
	expect VL15Dropped 0
	expect PortXmitWait 0
	[[ $(value PortRcvPkts) -eq $((before + 3)) ]] ||
		wrong "PortRcvPkts is $(value PortRcvPkts), and was $before before"
	ask perfquery -C rvt0 -x
	expect PortSelect 1
	[[ $(value PortXmitData) -gt $((200 * 1024)) ]] || wrong "too little data"
	ask perfquery -C rvt0 2 1
	[[ $(value PortXmitData) -ge $((100 * 1024)) ]] || wrong "too little data at rvt1"
	ask perfquery -C rvt0 -a
}

perfquery_resets()
{
	local before1

	before1=$(counters rvt1)
	run perfquery -C rvt0 -R
	# What is left is the answer to the reset itself.
	[[ $(<$sys/rvt0/ports/1/counters/port_xmit_packets) -le 1 ]] || wrong "packets are not reset"
	[[ $(<$sys/rvt0/ports/1/counters/port_rcv_data) -le 64 ]] || wrong "data is not reset"
	grown_by "$before1" "$(counters rvt1)" '0 0 0 0'
	ping rvt0
	ask perfquery -C rvt0 -x
	[[ $(value PortXmitPkts) -ge 800 && $(value PortXmitPkts) -lt 820 ]] ||
		wrong "PortXmitPkts is $(value PortXmitPkts)"
	run perfquery -C rvt0 -R 2 1
	[[ $(<$sys/rvt1/ports/1/counters/port_rcv_packets) -le 1 ]] || wrong "rvt1 is not reset"
	run perfquery -C rvt0 -x -R
	[[ $(<$sys/rvt0/ports/1/counters/port_xmit_packets) -le 1 ]] || wrong "packets are not reset"
}

holds_umad()
{
	local link

	for link in /proc/"$1"/fd/*; do
		if [[ $(readlink "$link") == /dev/infiniband/umad* ]]; then
			return 0
		fi
	done
	return 1
}

# Datagrams of a vendor's class between two programs, one on each device.
ibping_answers()
{
	local pid

	ibping -S -C rvt1 >server 2>&1 &
	pid=$!
	await 20 holds_umad "$pid" || wrong "the server does not open its port"
	# It is registered a moment later than it has the device open.
	await 20 ibping_once || wrong "no answer"
	ask ibping -C rvt0 -c 10 -f 2
	grep -q '^10 packets transmitted, 10 received, 0% packet loss' out || wrong "packets are lost"
	kill "$pid"
	wait "$pid" || true
}

ibping_once()
{
	ibping -C rvt0 -c 1 -f 2 | grep -q ' 1 received'
}

# With all of the kernel's managers on the device, and a program that holds a
# port open, which has to be told.
managers()
{
	[[ -e /sys/module/ib_cm ]] || run modprobe ib_cm || wrong "ib_cm does not load"
	[[ -e $sys/rvt0/ports/1/cm_rx_msgs ]] || wrong "ib_cm does not attach"
	ask ibstat rvt0
	# IsCommunicationManagementSupported
	(($(value 'Capability mask') & 0x10000)) || wrong "the port does not tell of ib_cm"
	ask smpquery -C rvt0 nodeinfo 2
}

quiet_unload()
{
	unload_device || wrong "the module does not unload"
	[[ ! -e $sys/rvt0 && ! -e /dev/infiniband/umad0 ]] || wrong "a device is left"
	if dmesg | grep -E 'rvt[01]: |ib_mad|ib_sa|MAD |SM AH|PKey'; then
		wrong "the kernel talked of the device"
	fi
	load_device
	ask smpquery -C rvt0 nodeinfo 2
	unload_device
}

[[ $RVT_KIND == rvt ]] || exit 0
t start start
t ibstat state_of_the_ports
t nodeinfo who_is_there
t ibaddr where_is_it
t portinfo port_info
t pkeys pkeys
t counters counters_grow
t perfquery perfquery_shows
t perfquery-reset perfquery_resets
t ibping ibping_answers
t not-there not_there
t managers managers
t rmmod quiet_unload
