#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# With a subnet manager on the port, OpenSM: IPoIB has a carrier, rdma_cm finds
# paths, addresses of IP and groups, and programs that want these run.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

here=10.9.8.7
there=10.9.8.8

port_guid()
{
	echo "0x$(cut -d: -f5- <"/sys/class/infiniband/$device/ports/1/gids/0" | tr -d :)"
}

manager()
{
	load_device
	# They may be built in.
	modprobe -a rdma_ucm ib_umad || true
	modprobe ib_ipoib || skip "there is no IPoIB"
	await 10 test -e /dev/infiniband/rdma_cm || wrong "rdma_ucm does not come"
	mkdir -p /var/log /var/cache/opensm
	# It outlives this test.
	: >opensm.out
	setsid opensm -g "$(port_guid)" -f "$PWD/opensm.log" >opensm.out 2>&1 &
	echo $! >opensm.pid
	disown
	await 30 grep -q 'Entering MASTER state' opensm.out || wrong "it does not become master"
	run sminfo | tee out
	grep -q SMINFO_MASTER out || wrong "the port has no subnet manager"
	run saquery -p | tee out
	grep -q 'dlid\.*1$' out || wrong "no path to the port"
}

has_carrier()
{
	[[ $(cat /sys/class/net/ib0/carrier) == 1 ]]
}

# Two interfaces on the port, one of them in a namespace of its own.
ipoib()
{
	ip link set ib0 up
	ip addr add $here/24 dev ib0
	await 30 has_carrier || wrong "no carrier"
	ip netns add peer
	ip link add link ib0 name ib0.peer type ipoib
	ip link set ib0.peer netns peer
	ip -n peer addr add $there/24 dev ib0.peer
	ip -n peer link set ib0.peer up
	await 30 ping_once || wrong "no answer"
	carries 30000 run busybox ping -c 10 -s 1500 $there
	ip netns delete peer
}

ping_once()
{
	busybox ping -c 1 -W 1 $there >/dev/null
}

listens_by_cm()
{
	[[ $(rdma resource show cm_id | grep -c 'state LISTEN') -gt 0 ]] || gone "$1"
}

# As pair(), for a server that listens by rdma_cm, or joins a group.
connect()
{
	local server=() server_pid status=0

	while [[ $1 != -- ]]; do
		server+=("$1")
		shift
	done
	shift
	echo "server\$ ${server[*]}"
	timeout -k 2 "$program_limit" "${server[@]}" >server 2>&1 &
	server_pid=$!
	if ! await 30 "$ready" "$server_pid"; then
		echo "the server is not ready"
		status=1
	else
		run "$@" || status=$?
	fi
	[[ $status -eq 0 ]] || kill "$server_pid" 2>/dev/null || true
	wait "$server_pid" || status=$?
	sed 's/^/server| /' server
	[[ $status -eq 0 ]] || wrong "it ends with status $status"
}
ready=listens_by_cm

joined()
{
	grep -q '^mckey: joined' server || gone "$1"
}

# perftest NAME OPTION...
perftest()
{
	connect "$@" -- "$@" $here
}

# The manager's end changes nothing for a port that has its LID.
manager_ends()
{
	kill "$(<opensm.pid)"
	await 30 gone "$(<opensm.pid)" || wrong "opensm does not end"
	pair ibv_rc_pingpong -d "$device" -n 10 -- ibv_rc_pingpong -d "$device" -n 10 localhost
	unload_device
	! dmesg | grep -E 'rvt[01]: ' || wrong "the kernel talked of the device"
}

[[ $RVT_KIND == rvt ]] || exit 0
device=rvt0
t manager manager
t ipoib ipoib
t rping carries 20000 connect rping -s -a $here -S 1000 -C 10 -- \
	rping -c -a $here -S 1000 -C 10 -V
t ucmatose carries 20000 connect ucmatose -S 1000 -b $here -- ucmatose -S 1000 -b $here -s $here
t udaddy carries 20000 connect udaddy -S 1000 -b $here -- udaddy -S 1000 -b $here -s $here
t rstream carries 409600 connect rstream -b $here -S 4096 -C 50 -- rstream -s $here -S 4096 -C 50
ready=joined
t mckey carries 5000 connect stdbuf -oL mckey -m 239.1.2.3 -b $here -S 1000 -C 5 -- \
	mckey -m 239.1.2.3 -b $here -s -S 1000 -C 5
ready=listens_by_cm
t send_bw-R carries 6553600 perftest ib_send_bw -d $device -R -F -n 100
t write_lat-R perftest ib_write_lat -d $device -R -F -n 100
t read_bw-R carries 6553600 perftest ib_read_bw -d $device -R -F -n 100
t send_lat-UD-R carries 1000 perftest ib_send_lat -d $device -R -F -c UD -n 100
t send_bw-events-R carries 6553600 perftest ib_send_bw -d $device -R -F -e -n 100
pair_port=47592
for size in 64 4096 1048576; do
	t "fi_pingpong-msg-$size" carries $((2 * size * 50)) pair \
		fi_pingpong -p verbs -e msg -c -S $size -I 50 -- \
		fi_pingpong -p verbs -e msg -c -S $size -I 50 $here
done
# By default its completion queue is for 256 peers, and larger than the device has.
t fi_pingpong-rxm carries $((2 * 4096 * 50)) pair \
	env FI_UNIVERSE_SIZE=16 fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c -S 4096 -I 50 -- \
	env FI_UNIVERSE_SIZE=16 fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c -S 4096 -I 50 $here
pair_port=18515
t manager-ends manager_ends
