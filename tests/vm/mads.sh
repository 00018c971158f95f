#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Wrong management datagrams of a process: the right answer or none, and no word
# in the kernel's log but ib_core's own. scripts/managers brings the program.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

mads=/rvt/files/mads
umad=/dev/infiniband/umad0

load()
{
	load_device
	# They may be built in.
	modprobe -a ib_umad ib_cm || true
	await 10 test -e $umad || wrong "ib_umad does not come"
	busybox dmesg -c >/dev/null
}

own_lid()
{
	printf '%d' "$(<"/sys/class/infiniband/$device/ports/1/lid")"
}

rows()
{
	run $mads $umad "$(own_lid)" rows
}

by_lot()
{
	run $mads $umad "$(own_lid)" random "$1" 2000
}

# ib_core itself tells of these two.
silent()
{
	! busybox dmesg | grep -i -E 'rvt|ib_|mad|smp' |
		grep -v -e 'MAD received with unsupported base version' -e 'Invalid directed route' ||
		wrong "the kernel talked of it"
}

[[ $RVT_KIND == rvt ]] || exit 0
t load load
device=rvt0
t rows rows
for seed in 1 2 3; do
	t "random-$seed" by_lot "$seed"
done
t rows-again rows
t silent silent
t rmmod unload_device
