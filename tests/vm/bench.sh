#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# rvt beside rdma_rxe in one boot: the same programs in turns, A B A B, so that
# both see the same machine; and in the same boot what bounds them. Each figure
# is a line "value TEST DEVICE FIGURE", where DEVICE may be "limit"; scripts/bench
# makes a table of them. It judges nothing: figures are ratios of one run, for
# people.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

rounds=${RVT_ROUNDS:-3}

# bench NAME FUNCTION ARGUMENT...: as t, if the name was asked for
bench()
{
	[[ ! $1 =~ ${RVT_ONLY:-.} ]] || t "$@"
}

load_both()
{
	RVT_KIND=rvt load_device
	RVT_KIND=rxe load_device
	[[ -e /sys/class/infiniband/rvt0 && -e /sys/class/infiniband/rxe0 ]]
}

is_figure()
{
	[[ $1 =~ ^[0-9]+\.?[0-9]*$ ]] && awk -v v="$1" 'BEGIN { exit !(v > 0) }'
}

# once TEST DEVICE COLUMN PROGRAM...: the figure of one run, from the client's
# last row (COLUMN counts from 1; 0: a ping-pong's time per iteration).
once()
{
	local test=$1 device=$2 column=$3 attempt figure

	shift 3
	for attempt in 1 2 3; do
		pair "$@" -- "$@" localhost || return 1
		if [[ $column -eq 0 ]]; then
			figure=$(sed -nE 's/.* = ([0-9.a-z]+) usec\/iter.*/\1/p' client)
		else
			figure=$(awk -v c="$column" '/^ *[0-9]+ +[0-9]+ / { v = $c } END { print v }' client)
		fi
		if is_figure "$figure"; then
			echo "value $test $device $figure"
			return
		fi
		echo "a figure that cannot be: '$figure'; attempt $attempt"
	done
	return 1
}

# What is measured in each round of a test, right behind rvt's figure, because a
# machine that is slow for a minute is slow for both.
declare -A beside=(
	[read-lat-64]=refused
	[write-bw-1M]=memcpy
	[rc-pingpong-4096-events]=eventfd
)

refused()
{
	figures limit refused rvt0 5000
}

eventfd()
{
	figures limit eventfd 2000
}

memcpy()
{
	dmesg --clear
	insmod /rvt/files/rvt_kbench.ko device=none rounds=200
	rmmod rvt_kbench
	dmesg --color=never | sed -n 's/.*rvt_kbench: value \([^ ]*\) none/value \1 limit/p'
}

measure_beside()
{
	# Of several block sizes the last is the test's.
	"${beside[$1]}" | grep '^value' | tail -n 1 |
		sed "s/^value [^ ]*/value ${beside[$1]}-beside-$1/"
}

# in_turns TEST COLUMN PROGRAM OPTION...
in_turns()
{
	local test=$1 column=$2 program=$3 round gid=-x

	shift 3
	[[ $program == ib_* ]] || gid=-g
	for ((round = 0; round < rounds; round++)); do
		once "$test" rvt0 "$column" "$program" -d rvt0 "$@"
		[[ ! ${beside[$test]:-} ]] || measure_beside "$test"
		once "$test" rxe0 "$column" "$program" -d rxe0 $gid 1 "$@"
	done
}

pingpong()
{
	bench "$1" in_turns "$1" 0 "${@:2}"
}

latency()
{
	bench "$1" in_turns "$1" 6 "${@:2}" -F
}

# MB/s; of 64 bytes, million messages per second.
#	bandwidth OPERATION SIZE NAME-OF-SIZE MESSAGES QUEUE-PAIRS
bandwidth()
{
	local operation=$1 size=$2 name=$3 each=$(($4 / $5)) pairs=$5 column=4 kind=bw

	if [[ $size -eq 64 ]]; then
		column=5
		kind=rate
	fi
	# perftest counts messages of each queue pair, five at least.
	[[ $each -ge 5 ]] || each=5
	name=$operation-$kind-$name
	[[ $pairs -eq 1 ]] || name+=-q$pairs
	bench "$name" in_turns "$name" "$column" "ib_${operation}_bw" -s "$size" -n "$each" \
		-q "$pairs" -F
}

# What the program "limits" finds out, as figures of DEVICE.
figures()
{
	local device=$1

	shift
	run /rvt/files/limits "$@" >limits.out || {
		cat limits.out
		return 1
	}
	sed -n "s/^figure \([^ ]*\) /value \1 $device /p" limits.out
}

# limits_in_turns ROUNDS PROGRAM N ARGUMENT...
limits_in_turns()
{
	local rounds=$1 program=$2 device round

	shift 2
	for ((round = 0; round < rounds; round++)); do
		for device in rvt0 rxe0; do
			figures $device "$program" $device "$@"
		done
	done
}

# One pair of queue pairs and two, N requests in a post.
pairs_in_turns()
{
	local list=$1 device pairs round

	for ((round = 0; round < rounds; round++)); do
		for device in rvt0 rxe0; do
			for pairs in 1 2; do
				figures $device write $device 10000 "$pairs" "$list"
			done
		done
	done
}

# The least that a post, an exchange by events and a copy can take here. Asked
# for now and then, because the machine may be busier at one time than another.
floors()
{
	refused
	eventfd
	figures limit pipe 2000
	memcpy
}

has_siw()
{
	modprobe siw 2>/dev/null ||
		skip "this kernel has no siw (CONFIG_RDMA_SIW)"
	skip "siw speaks only through rdma_cm, which these programs do not use"
}

t devices load_both
t siw has_siw
bench limits-first floors
pingpong rc-pingpong-4096 ibv_rc_pingpong -n 5000
pingpong uc-pingpong-4096 ibv_uc_pingpong -n 5000
pingpong ud-pingpong-1024 ibv_ud_pingpong -s 1024 -n 5000
pingpong rc-pingpong-4096-events ibv_rc_pingpong -e -n 2000
pingpong uc-pingpong-4096-events ibv_uc_pingpong -e -n 2000
pingpong ud-pingpong-1024-events ibv_ud_pingpong -e -s 1024 -n 2000
sizes=(8 64 4096)
[[ ! ${RVT_QUICK:-} ]] || sizes=(64)
for size in "${sizes[@]}"; do
	for operation in send write read; do
		latency "$operation-lat-$size" ib_${operation}_lat -s "$size" -n 5000
	done
done
latency atomic-lat-8 ib_atomic_lat -n 5000
bench limits-between floors
for pairs in ${RVT_PAIRS:-1 16 128}; do
	for operation in send write read; do
		bandwidth $operation 64 64 20000 "$pairs"
		[[ ${RVT_QUICK:-} ]] || bandwidth $operation 4096 4K 2000 "$pairs"
		[[ ${RVT_QUICK:-} ]] || bandwidth $operation 65536 64K 500 "$pairs"
		bandwidth $operation 1048576 1M 100 "$pairs"
	done
done
# Queue pairs on processors of their own; one beside another that streams; memory.
for list in 1 32; do
	bench "pairs-list-$list" pairs_in_turns $list
done
bench limits-last floors
bench fair limits_in_turns "$rounds" fair 2000
bench memory limits_in_turns 1 memory
