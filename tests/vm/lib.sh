# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash disable=SC2034
#
# What tests in the virtual machine are made of. A test file is a bash script
# that sources this and names its tests, in order:
#
#	t NAME FUNCTION ARGUMENT...
#
# A test passes when its function, run with "set -e", returns 0. What it prints
# is kept by the host.

set -uo pipefail
# shellcheck source=/dev/null
. /rvt/settings

RVT_KIND=${RVT_KIND:-rvt}

# Where tests leave and find their files.
mkdir -p /tmp/rvt
cd /tmp/rvt || exit 1

# How long one program may take. Emulation is slow, a hang is endless.
program_limit=${RVT_PROGRAM_LIMIT:-120}

# --- results ------------------------------------------------------------

now()
{
	local up _

	read -r up _ </proc/uptime
	echo "$up"
}

t()
{
	local name=$1 start status

	shift
	echo "@@ test $name"
	start=$(now)
	(
		# What a test that failed left running must not disturb the next.
		trap end_jobs EXIT
		set -e
		"$@"
	)
	status=$?
	if [[ $status -eq 0 ]]; then
		echo "@@ pass $name $(elapsed "$start") s"
	elif [[ $status -eq 77 ]]; then
		echo "@@ skip $name $(cat why 2>/dev/null)"
	else
		echo "@@ fail $name $(elapsed "$start") s, status $status"
	fi
}

end_jobs()
{
	local left

	left=$(jobs -p)
	if [[ $left ]]; then
		# shellcheck disable=SC2086
		kill -TERM $left 2>/dev/null
		await 3 jobs_ended || true
		# shellcheck disable=SC2086
		kill -KILL $left 2>/dev/null
		wait
	fi
}

jobs_ended()
{
	[[ -z $(jobs -pr) ]]
}

seconds()
{
	local up _

	IFS='. ' read -r up _ </proc/uptime
	echo "$up"
}

elapsed()
{
	awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'
}

# End a test that does not apply here.
skip()
{
	echo "$*" >why
	exit 77
}

# Say what was expected and not seen, and end the test.
wrong()
{
	echo "WRONG: $*"
	exit 1
}

# --- programs -----------------------------------------------------------

# Run a program, showing the command, its output and its exit status.
run()
{
	local status=0 start

	echo "\$ $*"
	start=$(now)
	timeout -k 2 "$program_limit" "$@" 2>&1 || status=$?
	echo "= exit $status after $(elapsed "$start") s"
	return "$status"
}

# Poll for a condition: await SECONDS COMMAND...
await()
{
	local end

	end=$(($(seconds) + $1))
	shift
	until "$@"; do
		if [[ $(seconds) -gt $end ]]; then
			return 1
		fi
		busybox usleep 20000
	done
}

# Does a process listen on this TCP port?
listens()
{
	local port local_address state _

	port=$(printf '%04X' "$1")
	while read -r _ local_address _ state _; do
		if [[ $local_address == *:"$port" && $state == 0A ]]; then
			return 0
		fi
	done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
	return 1
}

listens_or_gone()
{
	listens "$1" || ! kill -0 "$2" 2>/dev/null
}

gone()
{
	! kill -0 "$1" 2>/dev/null
}

# Run a server and, when it listens on the port, its client. Both must exit 0.
#	pair SERVER... -- CLIENT...
# Their outputs are left in the files server and client.
pair_port=18515
pair()
{
	local server=() server_pid server_status=0 client_status=0 start

	while [[ $1 != -- ]]; do
		server+=("$1")
		shift
	done
	shift
	start=$(now)
	echo "server\$ ${server[*]}"
	echo "client\$ $*"
	timeout -k 2 "$program_limit" "${server[@]}" >server 2>&1 &
	server_pid=$!
	if ! await 30 listens_or_gone "$pair_port" "$server_pid"; then
		kill "$server_pid"
		echo "the server does not listen on port $pair_port"
		client_status=1
	elif gone "$server_pid"; then
		echo "the server ended before it listened"
		client_status=1
	else
		timeout -k 2 "$program_limit" "$@" >client 2>&1 || client_status=$?
		sed 's/^/client| /' client
		if [[ $client_status -ne 0 ]]; then
			kill "$server_pid" 2>/dev/null || true
		fi
	fi
	wait "$server_pid" || server_status=$?
	sed 's/^/server| /' server
	echo "= exit server $server_status, client $client_status after $(elapsed "$start") s"
	[[ $server_status -eq 0 && $client_status -eq 0 ]]
}

# --- the device ---------------------------------------------------------

# "0: rvt0: pd 1 cq 2 ..." without the index
objects()
{
	rdma resource show | grep -w "$device" | sed 's/^[0-9]*: //'
}

# One of the device's counters. The kernel asks the device again after a time.
counter()
{
	cat "/sys/class/infiniband/$device/ports/1/hw_counters/$1"
}

# Run a command; at least so many bytes must go through the device meanwhile.
#	carries BYTES COMMAND...
carries()
{
	local before after

	before=$(counter loop_bytes)
	"${@:2}"
	after=$(counter loop_bytes)
	echo "$((after - before)) bytes went through $device"
	[[ $((after - before)) -ge $1 ]] || wrong "that is less than $1 bytes"
}

objects_are()
{
	[[ $(objects) == "$1" ]]
}

device_exists()
{
	[[ -e /sys/class/infiniband/$device && -e /dev/infiniband/uverbs0 ]]
}

load_device()
{
	case $RVT_KIND in
	rvt)
		device=rvt0
		[[ -e /sys/class/infiniband_verbs ]] || modprobe ib_uverbs || return 1
		# shellcheck disable=SC2086
		insmod /rvt/rvt.ko $RVT_MODARGS || return 1
		;;
	rxe)
		device=rxe0
		# They may be built in.
		modprobe dummy numdummies=0 || true
		modprobe -a ib_uverbs rdma_rxe || true
		ip link add below_rxe mtu 4200 type dummy && ip link set below_rxe up || return 1
		ip addr add 10.9.8.7/24 dev below_rxe || return 1
		rdma link add rxe0 type rxe netdev below_rxe || return 1
		;;
	none)
		return 0
		;;
	esac
	await 10 device_exists
}

unload_device()
{
	case $RVT_KIND in
	rvt) rmmod rvt ;;
	rxe) rdma link delete rxe0 && ip link delete below_rxe ;;
	esac
}

# How a test addresses a peer: rvt by LID unless asked, rxe only by GID.
pingpong_gid=()
perftest_gid=()
if [[ $RVT_KIND == rxe ]]; then
	pingpong_gid=(-g 1)
	perftest_gid=(-x 1)
fi
