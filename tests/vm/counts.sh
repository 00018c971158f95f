#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Instructions of the whole path, where an instruction takes a nanosecond
# (scripts/vm --icount). What an operation costs is the difference between a
# long and a short run. Each figure is a line "value NAME INSTRUCTIONS".

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

short=500
long=1500

# Nanoseconds of N iterations of a ping-pong, as its client tells.
pingpong()
{
	local type=$1 size=$2 n=$3

	set -- "ibv_${type}_pingpong" -d "$device" -e -s "$size" -n "$n"
	pair "$@" -- "$@" localhost >&2 || wrong "a ping-pong program failed"
	awk -v n="$n" '/ usec\/iter/ { for (i = 1; i <= NF; i++) if ($i == "usec/iter") {
		printf "%.0f\n", $(i - 1) * n * 1000; exit } }' client
}

# Nanoseconds of N operations, as the program "limits" tells of one.
limits()
{
	local name=$1 n=$2

	run /rvt/files/limits "${@:3}" >limits.out || wrong "limits failed"
	awk -v name="$name" -v n="$n" '$1 == "figure" && $2 == name { printf "%.0f\n", $3 * n }' \
		limits.out
}

# What one operation costs; "N" stands for their number.
difference()
{
	local few many

	few=$("${@/#N/$short}")
	many=$("${@/#N/$long}")
	[[ $few && $many && $many -gt $few ]] || wrong "$short took '$few', $long took '$many'" >&2
	echo $(((many - few) / (long - short)))
}

# count NAME FUNCTION ARGUMENT...: the middle one of three, because now and then
# the scheduler prefers another order, in which a round trip has other events.
count()
{
	local name=$1 each times=()

	shift
	for _ in 1 2 3; do
		each=$(difference "$@")
		times+=("$each")
	done
	echo "value $name $(printf '%s\n' "${times[@]}" | sort -n | sed -n 2p)"
}

load_device || true
device=${device:-rvt0}
t device device_exists
for type in rc uc; do
	t "$type-pingpong-4096-events" count "$type-pingpong-4096-events" pingpong $type 4096 N
done
t ud-pingpong-1024-events count ud-pingpong-1024-events pingpong ud 1024 N
t write-8 count write-8 limits write-8 N write "$device" N 1 1
t refused-post count refused-post limits refused-post N refused "$device" N
t eventfd count eventfd limits eventfd N eventfd N
t pipe count pipe limits pipe N pipe N
