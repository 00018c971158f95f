#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Two devices in one fabric: stock programs talk from one to the other, by LID
# and by GID, and one device may be removed while the other goes on.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# Packets that went either way between this device and others.
crossed()
{
	echo $(($(device=$1 counter sent_packets) + $(device=$1 counter received_packets)))
}

# across PROGRAM OPTION...: a server on rvt1, its client on rvt0
across()
{
	local here there

	here=$(crossed rvt0)
	there=$(crossed rvt1)
	pair "$1" -d rvt1 "${@:2}" -- "$1" -d rvt0 "${@:2}" localhost ||
		wrong "$1 does not work from rvt0 to rvt1"
	[[ $(crossed rvt0) -gt $here ]] || wrong "nothing came from or to rvt0"
	[[ $(crossed rvt1) -gt $there ]] || wrong "nothing came from or to rvt1"
}

two_devices()
{
	RVT_MODARGS="devices=2 $RVT_MODARGS" load_device
	run ibv_devices | tee devices
	[[ $(grep -c -E '^[[:space:]]*rvt[01][[:space:]]+[0-9a-f]{16}$' devices) -eq 2 ]] ||
		wrong "there are not two devices"
	[[ $(</sys/class/infiniband/rvt0/ports/1/lid) != $(</sys/class/infiniband/rvt1/ports/1/lid) ]] ||
		wrong "both have one LID"
	[[ $(</sys/class/infiniband/rvt0/ports/1/gids/0) != $(</sys/class/infiniband/rvt1/ports/1/gids/0) ]] ||
		wrong "both have one GID"
}

removed()
{
	run rdma link delete rvt1
	[[ ! -e /sys/class/infiniband/rvt1 ]] || wrong "rvt1 is still there"
	pair ibv_rc_pingpong -d rvt0 -n 100 -- ibv_rc_pingpong -d rvt0 -n 100 localhost
}

t devices two_devices
device=rvt0
for gid in '' '-g 0'; do
	for type in rc uc ud srq; do
		for wait in '' -e; do
			size=(-s 4096 -n 200 -c)
			[[ $type != ud ]] || size=(-s 1024 -n 200 -c)
			[[ $type != srq ]] || size+=(-q 4 -r 100)
			# shellcheck disable=SC2086
			t "${type}_pingpong$wait$(tr -d ' ' <<<"$gid")" \
				across ibv_${type}_pingpong "${size[@]}" $wait $gid
		done
	done
done
for gid in '' '-x 0'; do
	for kind in lat bw; do
		for type in RC UC UD; do
			# shellcheck disable=SC2086
			t "send_$kind-$type$(tr -d ' ' <<<"$gid")" \
				across ib_send_$kind -F -s 1024 -n 100 -c $type $gid
		done
		for operation in write read atomic; do
			size=(-s 1024)
			[[ $operation != atomic ]] || size=()
			# shellcheck disable=SC2086
			t "${operation}_$kind$(tr -d ' ' <<<"$gid")" \
				across ib_${operation}_$kind -F -n 100 "${size[@]}" $gid
		done
	done
done
t both-ways across ib_send_bw -F -s 4096 -n 100 -q 8 -b
t removed removed
t rmmod unload_device
