#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Every ping-pong of rdma-core, polled and by events, by LID and by GID, with
# and without looking into what arrived.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# pingpong TYPE SIZE ITERATIONS OPTION...
pingpong()
{
	local type=$1 size=$2 iterations=$3 bytes

	shift 3
	set -- "ibv_${type}_pingpong" -d "$device" -s "$size" -n "$iterations" "$@"
	pair "$@" -- "$@" localhost || wrong "a ping-pong program failed"
	# Each side counts both directions, an SRQ one those of all its QPs.
	bytes=$((size * iterations * 2))
	for side in server client; do
		grep -q "^$bytes bytes in " "$side" ||
			wrong "the $side does not tell of $bytes bytes"
		grep -q "^$iterations iters in " "$side" ||
			wrong "the $side does not tell of $iterations iterations"
	done
}

load_device || true
device=${device:-${RVT_KIND}0}
t device device_exists

for type in rc uc ud srq; do
	sizes=(1 4096 1048576)
	depth=(-r 100)
	case $type in
	ud) sizes=(1 1024 4096) ;;
	srq) depth=(-q 4 -r 100) ;;
	esac
	if [[ $RVT_KIND == rxe ]]; then
		[[ $type != ud ]] || sizes=(1 1024)
		gids=('')
	else
		gids=('' '-g 0')
	fi
	for size in "${sizes[@]}"; do
		iterations=200
		[[ $size -lt 1000000 ]] || iterations=20
		for gid in "${gids[@]}"; do
			for wait in '' -e; do
				for check in '' -c; do
					options="$wait $gid $check"
					# shellcheck disable=SC2086
					t "$type-$size$(tr -d ' ' <<<"$options")" \
						pingpong $type "$size" $iterations "${depth[@]}" \
						"${pingpong_gid[@]}" $options
				done
			done
		done
	done
done

# XRC is not offered.
xsrq_refused()
{
	local before

	before=$(objects)
	! run ibv_xsrq_pingpong -d "$device" || wrong "ibv_xsrq_pingpong goes on"
	objects_are "$before" || wrong "left behind: $(objects), before: $before"
}

t xsrq_refused xsrq_refused
t rmmod unload_device
