#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# IPoIB, which many systems load for every InfiniBand device: without a subnet
# administrator its interface has no carrier, does no harm, and does not keep
# the module.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# The first one, if there is any.
interface()
{
	ip -brief link show type ipoib | awk 'NR == 1 { print $1 }'
}

attached()
{
	load_device
	run modprobe ib_ipoib || wrong "ib_ipoib does not load"
	[[ $(interface) ]] || wrong "there is no interface"
	run ip -d link show dev "$(interface)"
}

up()
{
	run ip link set "$(interface)" up || wrong "it cannot be brought up"
	ip link show dev "$(interface)" | grep NO-CARRIER || wrong "it has a carrier"
	pair ibv_rc_pingpong -d rvt0 -n 100 -- ibv_rc_pingpong -d rvt0 -n 100 localhost ||
		wrong "the device does not work any more"
}

removed()
{
	run rmmod rvt || wrong "the module cannot be removed"
	[[ ! $(interface) ]] || wrong "the interface stayed"
}

t attached attached
t up up
t removed removed
