#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# GIDs and P_Keys that the administrator gives to the ports of two devices, and
# traffic that uses them. Wants devices=2.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

sys=/sys/class/infiniband

# set_entry DEVICE TABLE INDEX VALUE
set_entry()
{
	echo "$4 -> $1 $2 $3"
	echo "$4" >"$sys/$1/ports/1/admin_$2/$3"
}

# entry_is DEVICE TABLE INDEX VALUE: in our file and in ib_core's
entry_is()
{
	local file found

	for file in "admin_$2/$3" "$2/$3"; do
		found=$(<"$sys/$1/ports/1/$file")
		[[ $found == "$4" ]] || wrong "$1: $file is $found, not $4"
	done
}

# refused ERROR DEVICE TABLE INDEX VALUE
refused()
{
	local before

	before=$(<"$sys/$2/ports/1/$3/$4")
	! set_entry "${@:2}" 2>error || wrong "'$5' is taken"
	cat error
	grep -q "$1" error || wrong "it is not refused with '$1'"
	entry_is "$2" "$3" "$4" "$before"
}

start()
{
	load_device
	modprobe ib_umad || true
	await 10 test -e /dev/infiniband/umad1 || wrong "ib_umad does not see both devices"
}

gid0=2001:0db8:0000:0000:0000:0000:0000:0a01
gid1=2001:0db8:0000:0000:0000:0000:0000:0b01
none=0000:0000:0000:0000:0000:0000:0000:0000

gids_are_set()
{
	entry_is rvt0 gids 1 $none
	set_entry rvt0 gids 1 2001:db8::a01
	# Not a moment later: at once.
	entry_is rvt0 gids 1 $gid0
	set_entry rvt1 gids 15 $gid1
	entry_is rvt1 gids 15 $gid1
	entry_is rvt0 gids 15 $none
	run ibv_devinfo -v -d rvt0 | tee out
	grep -q -e "GID\[ *1\]:.*$gid0" -e 'GID\[ *1\]:.*2001:db8::a01' out ||
		wrong "ibv_devinfo does not show it"
	run smpquery -C rvt0 gi 1 | tee out
	grep -qi '0x0000000000000a01' out || wrong "GUIDInfo does not show it"
}

gids_are_refused()
{
	local text

	for text in '' nonsense 2001:db8::1::2 '2001:db8::a02 x' 1.2.3.4 ff12::1 2001:db8::g; do
		refused 'Invalid argument' rvt0 gids 2 "$text"
	done
	refused 'File exists' rvt0 gids 2 $gid0
	refused 'File exists' rvt0 gids 2 $gid1
	refused 'File exists' rvt1 gids 2 "$(<$sys/rvt0/ports/1/gids/0)"
	# What it has already is no change.
	set_entry rvt0 gids 1 $gid0
	entry_is rvt0 gids 1 $gid0
	[[ ! -e $sys/rvt0/ports/1/admin_gids/0 && ! -e $sys/rvt0/ports/1/admin_gids/16 ]] ||
		wrong "entry 0 is the port's own, and 15 the last one"
}

gids_are_used()
{
	local kind

	for kind in rc uc ud; do
		pair "ibv_${kind}_pingpong" -d rvt0 -g 1 -s 1024 -n 20 -c -- \
			"ibv_${kind}_pingpong" -d rvt0 -g 1 -s 1024 -n 20 -c localhost
		pair "ibv_${kind}_pingpong" -d rvt0 -g 1 -s 1024 -n 20 -c -- \
			"ibv_${kind}_pingpong" -d rvt1 -g 15 -s 1024 -n 20 -c localhost
		grep -q 'GID 2001:db8::b01' client || wrong "not by GID"
	done
}

gids_are_removed()
{
	pair ib_send_lat -d rvt0 -x 1 -n 50 -F -- ib_send_lat -d rvt0 -x 1 -n 50 -F localhost
	set_entry rvt0 gids 1 ::
	entry_is rvt0 gids 1 $none
	# A program cannot have it any more, and the other port may.
	! pair ib_send_lat -d rvt0 -x 1 -n 50 -F -- ib_send_lat -d rvt0 -x 1 -n 50 -F localhost ||
		wrong "an empty entry is used"
	set_entry rvt1 gids 1 $gid0
	entry_is rvt1 gids 1 $gid0
	set_entry rvt1 gids 1 ::
	set_entry rvt1 gids 15 ::
}

pkeys_are_set()
{
	entry_is rvt0 pkeys 1 0x0000
	set_entry rvt0 pkeys 1 0x8123
	entry_is rvt0 pkeys 1 0x8123
	set_entry rvt1 pkeys 2 291
	entry_is rvt1 pkeys 2 0x0123
	run smpquery -C rvt0 pkeys 1 | tee out
	grep -q '^ *0: 0xffff 0x8123 0x0000' out || wrong "smpquery does not show it"
	run smpquery -C rvt0 pkeys 2 | tee out
	grep -q '^ *0: 0xffff 0x0000 0x0123' out || wrong "smpquery does not show the other"
	for text in '' nonsense 65536 -1 0x8000; do
		! set_entry rvt0 pkeys 2 "$text" 2>error || wrong "'$text' is taken"
		grep -q -e 'Invalid argument' -e 'out of range' error || wrong "$(<error)"
	done
	entry_is rvt0 pkeys 2 0x0000
	[[ ! -e $sys/rvt0/ports/1/admin_pkeys/0 ]] || wrong "the default P_Key can be written"
}

# send_lat DEVICE INDEX DEVICE INDEX: RC, with the P_Keys of these entries
send_lat()
{
	pair ib_send_lat -d "$1" --pkey_index="$2" -n 50 -F -- \
		ib_send_lat -d "$3" --pkey_index="$4" -n 50 -F localhost
}

pkeys_are_used()
{
	# A full member with itself and with a limited one.
	send_lat rvt0 1 rvt0 1
	send_lat rvt0 1 rvt1 2
	# Two partitions.
	! send_lat rvt0 1 rvt0 0 || wrong "two partitions talk to each other"
	set_entry rvt0 pkeys 3 0x0123
	# Two limited members.
	! send_lat rvt0 3 rvt1 2 || wrong "two limited members talk to each other"
	(($(cat $sys/rvt0/ports/1/hw_counters/drops_pkey $sys/rvt1/ports/1/hw_counters/drops_pkey | paste -sd+))) ||
		wrong "the drops are not counted"
	# What is taken away cannot be used.
	set_entry rvt0 pkeys 1 0
	entry_is rvt0 pkeys 1 0x0000
	! send_lat rvt0 1 rvt0 1 || wrong "an empty entry is used"
}

# A program that waits for events hears of a change.
watch_hears()
{
	local pid

	ibv_asyncwatch -d rvt0 >watch 2>&1 &
	pid=$!
	await 20 grep -q 'async event FD' watch || wrong "ibv_asyncwatch does not begin"
	set_entry rvt0 pkeys 5 0x8005
	await 20 grep -q PKEY_CHANGE watch || wrong "no event: $(<watch)"
	kill "$pid"
	wait "$pid" || true
	cat watch
}

stop()
{
	unload_device || wrong "the module does not unload"
	load_device
	entry_is rvt0 pkeys 5 0x0000
	unload_device
}

[[ $RVT_KIND == rvt ]] || exit 0
t start start
t gids-set gids_are_set
t gids-refused gids_are_refused
t gids-used gids_are_used
t gids-removed gids_are_removed
t pkeys-set pkeys_are_set
t pkeys-used pkeys_are_used
t event watch_hears
t rmmod stop
