#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The user ABI in detail: the program of tests/vm/abi (scripts/abi builds and
# brings it), each of its tests in a process of its own, which has to leave
# nothing behind. Several devices, so that one can be removed and the other go on.
# RVT_ONLY: a pattern of the tests to run.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# abi NAME [DEVICE]
abi()
{
	local on=${2:-$device} status=0

	run /rvt/files/abi "$on" "$1" | tee out || status=$?
	if [[ $status -eq 77 ]]; then
		skip "$(grep -v -E '^[=$] ' out)"
	fi
	[[ $status -eq 0 ]] || return "$status"
	await 10 objects_are "$before" || wrong "left behind: $(objects), before: $before"
}

removed()
{
	abi case_158_removed rvt1
	[[ ! -e /sys/class/infiniband/rvt1 ]] || wrong "rvt1 is still there"
	abi resize_cq_waiting
}

removed_while_used()
{
	abi peer_removed
	[[ ! -e /sys/class/infiniband/rvt2 ]] || wrong "rvt2 is still there"
	abi resize_cq_waiting
}

removed_and_rmmod()
{
	run /rvt/files/abi rvt0 case_158_rmmod
	[[ ! -e /sys/module/rvt ]] || wrong "the module is still there"
	load_device || wrong "it does not load again"
	abi resize_cq_waiting
}

t device load_device
device=rvt0
before=$(objects)

for name in $(/rvt/files/abi $device list); do
	# shellcheck disable=SC2053
	[[ $name != ${RVT_ONLY:-*} ]] || t "$name" abi "$name"
done
t case_158_removed removed
t peer_removed removed_while_used
t case_158_rmmod removed_and_rmmod
t rmmod unload_device
