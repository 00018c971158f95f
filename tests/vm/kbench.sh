#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# What a kernel consumer pays for a message, beside memcpy; see tests/kbench.
# Each figure is a line "value NAME DEVICE NANOSECONDS".

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

measure()
{
	dmesg --clear
	insmod /rvt/files/rvt_kbench.ko "device=$1" || {
		dmesg --color=never
		wrong "rvt_kbench could not measure $1"
	}
	rmmod rvt_kbench
	dmesg --color=never | sed -n 's/.*rvt_kbench: value/value/p'
}

load_device || true
for ((round = 0; round < ${RVT_ROUNDS:-5}; round++)); do
	t "round-$round" measure rvt0
done
