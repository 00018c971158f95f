#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Network namespaces: a device that belongs to one is used there and nowhere
# else, and comes back when the namespace dies. Wants devices=2.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

is_inside()
{
	ip netns exec blue ls -d "/sys/class/infiniband/$1" >/dev/null 2>&1
}

is_outside()
{
	[[ -e /sys/class/infiniband/$1 ]]
}

shared()
{
	load_device
	ip netns add blue
	# As long as namespaces are shared, every one sees every device.
	run rdma system show | grep -w 'netns shared'
	is_inside rvt0 || wrong "rvt0 is not seen in the namespace"
	! run rdma dev set rvt0 netns blue || wrong "it moves although namespaces are shared"
	is_outside rvt0 || wrong "it is gone"
	ip netns delete blue
}

can_be_exclusive()
{
	rdma system set netns exclusive
}

moved()
{
	# Only while there is no other namespace; the one before goes in its own time.
	await 30 can_be_exclusive || wrong "namespaces cannot be made exclusive"
	ip netns add blue
	ip -n blue link set lo up
	run rdma system show | grep -w 'netns exclusive'
	run rdma dev set rvt0 netns blue
	is_inside rvt0 || wrong "rvt0 is not in the namespace"
	! is_outside rvt0 || wrong "rvt0 is still outside"
	is_outside rvt1 || wrong "rvt1 went, too"
	! is_inside rvt1 || wrong "rvt1 is in the namespace"
	run ip netns exec blue rdma dev | tee out
	grep -q 'rvt0: node_type ca' out || wrong "rdma does not show rvt0 in the namespace"
	! grep -q rvt1 out || wrong "rdma shows rvt1 in the namespace"
	run rdma dev | tee out
	! grep -q rvt0 out || wrong "rdma shows rvt0 outside"
}

used_inside()
{
	run ip netns exec blue ibv_devinfo -d rvt0 | grep -w PORT_ACTIVE
	run ip netns exec blue bash -ec '
		. /rvt/lib.sh
		cd "$(mktemp -d)"
		pair ibv_rc_pingpong -d rvt0 -s 4096 -n 50 -c -- \
			ibv_rc_pingpong -d rvt0 -s 4096 -n 50 -c localhost
		pair ibv_ud_pingpong -d rvt0 -g 0 -s 1024 -n 50 -c -- \
			ibv_ud_pingpong -d rvt0 -g 0 -s 1024 -n 50 -c localhost'
}

not_used_outside()
{
	# The node in /dev is there for everybody; opening it is what is refused.
	! run ibv_devinfo -d rvt0 || wrong "it is opened from outside"
	! run ip netns exec blue ibv_devinfo -d rvt1 || wrong "the other is opened from inside"
	run ibv_devinfo -d rvt1 | grep -w PORT_ACTIVE
}

comes_back()
{
	run ip netns delete blue
	await 30 is_outside rvt0 || wrong "rvt0 does not come back: $(rdma dev)"
	run rdma dev
	pair ibv_rc_pingpong -d rvt0 -n 50 -c -- ibv_rc_pingpong -d rvt0 -n 50 -c localhost
}

# A process that has it open when it moves, and a module that ends while it is away.
in_use()
{
	local pid

	ip netns add blue
	ibv_asyncwatch -d rvt0 >watch 2>&1 &
	pid=$!
	await 20 grep -q 'async event FD' watch || wrong "ibv_asyncwatch does not begin"
	run rdma dev set rvt0 netns blue
	# The one who had it open lost it.
	await 20 grep -q DEVICE_FATAL watch || wrong "the holder was not told"
	kill "$pid" 2>/dev/null || true
	wait "$pid" || true
	cat watch
	is_inside rvt0 || wrong "rvt0 is not in the namespace"
	unload_device || wrong "the module does not unload"
	! is_inside rvt0 || wrong "rvt0 is left in the namespace"
	ip netns delete blue
	load_device
	unload_device
}

[[ $RVT_KIND == rvt ]] || exit 0
t shared shared
t exclusive moved
t inside used_inside
t outside not_used_outside
t comes-back comes_back
t in-use in_use
