#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# What stock programs say of the device, and loading and unloading the module.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# The value of a line "name: value" of ibv_devinfo's output.
value()
{
	sed -n "s/^[[:space:]]*$1:[[:space:]]*//p" devinfo | head -n 1
}

expect()
{
	local found

	found=$(value "$1")
	[[ $found == "$2" ]] || wrong "$1 is '$found', not '$2'"
}

at_least()
{
	local found

	found=$(value "$1")
	[[ $found =~ ^[0-9]+$ && $found -ge $2 ]] || wrong "$1 is '$found', less than $2"
}

list()
{
	run ibv_devices | tee devices
	grep -E "^[[:space:]]*${device}[[:space:]]+[0-9a-f]{16}\$" devices ||
		wrong "$device is not listed with a GUID"
	! grep -E "${device}[[:space:]]+0{16}" devices || wrong "its GUID is zero"
}

describe()
{
	local guid interface sys=/sys/class/infiniband/$device

	run ibv_devinfo -v -d "$device" >devinfo || wrong "ibv_devinfo fails"
	cat devinfo
	expect hca_id "$device"
	expect transport 'InfiniBand (0)'
	expect phys_port_cnt 1
	expect state 'PORT_ACTIVE (4)'
	expect max_mtu '4096 (5)'
	expect active_mtu '4096 (5)'
	expect phys_state 'LINK_UP (5)'
	at_least max_qp 1000
	at_least max_qp_wr 1000
	at_least max_sge 2
	at_least max_cq 1000
	at_least max_cqe 1000
	at_least max_mr 1000
	at_least max_pd 1000
	at_least max_srq 100
	at_least max_srq_wr 1000
	at_least max_qp_rd_atom 1
	if [[ $RVT_KIND != rvt ]]; then
		return
	fi
	expect link_layer InfiniBand
	expect port_lid 1
	expect atomic_cap 'ATOMIC_GLOB (2)'
	guid=$(value node_guid)
	[[ $guid =~ ^([0-9a-f]{4}:){3}[0-9a-f]{4}$ && $guid != 0000:0000:0000:0000 ]] ||
		wrong "the node GUID is '$guid'"
	# Bit 1 of the first byte: locally administered.
	((0x${guid:0:2} & 2)) || wrong "the node GUID $guid is not locally administered"
	guid=$(value sys_image_guid)
	[[ $guid != 0000:0000:0000:0000 ]] || wrong "the system image GUID is zero"
	interface=$(<"$sys/ports/1/gids/0")
	[[ $interface == fe80:0000:0000:0000:* ]] || wrong "GID 0 is $interface"
	[[ $interface != fe80:0000:0000:0000:0000:0000:0000:0000 ]] || wrong "the port GUID is zero"
	grep -qi 'GID\[ *0\]:.*fe80:' devinfo || wrong "ibv_devinfo shows no GID 0"
	[[ $(<"$sys/ports/1/pkeys/0") == 0xffff ]] || wrong "P_Key 0 is not 0xffff"
	[[ $(<"$sys/ports/1/state") == '4: ACTIVE' ]] || wrong "sysfs: the port is not active"
	[[ $(<"$sys/node_type") == '1: CA' ]] || wrong "sysfs: not a channel adapter"
}

names()
{
	run ibv_devinfo -l | tee names
	grep -E "^[[:space:]]+$device\$" names || wrong "$device is not among the names"
	grep '^1 HCA' names || wrong "not one device"
}

watch_starts_and_stops()
{
	local pid before status=0

	before=$(objects)
	ibv_asyncwatch -d "$device" >watch 2>&1 &
	pid=$!
	await 20 holds_device "$pid" || wrong "ibv_asyncwatch does not open the device"
	kill -TERM "$pid"
	wait "$pid" || status=$?
	cat watch
	[[ $status -eq 143 ]] || wrong "ibv_asyncwatch ended with status $status, not by our signal"
	await 10 objects_are "$before" || wrong "left behind: $(objects), before: $before"
}

holds_device()
{
	local link

	for link in /proc/"$1"/fd/*; do
		if [[ $(readlink "$link") == /dev/infiniband/uverbs* ]]; then
			return 0
		fi
	done
	return 1
}

rmmod_in_use()
{
	local pid

	[[ $RVT_KIND == rvt ]] || skip "only for rvt"
	ibv_asyncwatch -d "$device" >watch 2>&1 &
	pid=$!
	await 20 holds_device "$pid" || wrong "ibv_asyncwatch does not open the device"
	if run rmmod rvt; then
		kill "$pid"
		wrong "rmmod went through while a process holds the device"
	fi
	device_exists || wrong "the device vanished"
	kill -0 "$pid" || wrong "the holder died"
	kill "$pid"
	wait "$pid" || true
	run ibv_devinfo -d "$device" | grep -w PORT_ACTIVE
}

reload()
{
	local i

	for i in 1 2 3; do
		unload_device || wrong "the module does not unload"
		[[ ! -e /sys/class/infiniband/$device ]] || wrong "$device is still there"
		[[ $RVT_KIND != rvt || ! -e /sys/module/rvt ]] || wrong "the module is still there"
		load_device || wrong "round $i: it does not load again"
	done
	list
	run ibv_devinfo -d "$device" | grep -w PORT_ACTIVE
}

unload()
{
	unload_device || wrong "the module does not unload"
	! ls /sys/class/infiniband/* 2>/dev/null || wrong "a device is left"
}

t insmod load_device
device=${device:-${RVT_KIND}0}
t ibv_devices list
t ibv_devinfo describe
t ibv_devinfo-names names
t ibv_asyncwatch watch_starts_and_stops
t rmmod-in-use rmmod_in_use
t rmmod-insmod reload
t rmmod unload
