#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# rvt beside rdma_rxe in one boot: the same programs in turns, A B A B, so that
# both see the same machine. Each figure is a line "value TEST DEVICE FIGURE";
# scripts/bench makes a table of them. It judges nothing: figures are ratios of
# one run, for people.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

rounds=${RVT_ROUNDS:-3}

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

# in_turns TEST COLUMN PROGRAM OPTION...
in_turns()
{
	local test=$1 column=$2 program=$3 round gid=-x

	shift 3
	[[ $program == ib_* ]] || gid=-g
	for ((round = 0; round < rounds; round++)); do
		once "$test" rvt0 "$column" "$program" -d rvt0 "$@"
		once "$test" rxe0 "$column" "$program" -d rxe0 $gid 1 "$@"
	done
}

pingpong()
{
	t "$1" in_turns "$1" 0 "${@:2}"
}

latency()
{
	t "$1" in_turns "$1" 6 "${@:2}" -F
}

bandwidth()
{
	t "$1" in_turns "$1" 4 "${@:2}" -F
}

# Messages of 64 bytes: the column of million messages per second.
rate()
{
	t "$1" in_turns "$1" 5 "${@:2}" -F -s 64
}

t devices load_both
pingpong rc-pingpong-4096 ibv_rc_pingpong -n 200
pingpong uc-pingpong-4096 ibv_uc_pingpong -n 200
pingpong ud-pingpong-1024 ibv_ud_pingpong -s 1024 -n 200
pingpong rc-pingpong-4096-events ibv_rc_pingpong -e -n 200
pingpong uc-pingpong-4096-events ibv_uc_pingpong -e -n 200
pingpong ud-pingpong-1024-events ibv_ud_pingpong -e -s 1024 -n 200
for size in 8 64 4096; do
	for operation in send write read; do
		latency "$operation-lat-$size" ib_${operation}_lat -s $size -n 500
	done
done
latency atomic-lat-8 ib_atomic_lat -n 500
for operation in send write read; do
	bandwidth "$operation-bw-1M" ib_${operation}_bw -s 1048576 -n 100
	bandwidth "$operation-bw-64K" ib_${operation}_bw -s 65536 -n 500
	rate "$operation-rate-64" ib_${operation}_bw -n 3000
done
