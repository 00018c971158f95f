#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Storms: many processes do all that a user can do to the device, right and
# wrong, and are killed meanwhile (the program of tests/vm/torture, which
# scripts/torture builds and brings). Pairs of well-behaved programs beside
# them must notice nothing, and nothing may be left afterwards.
# RVT_SEED: where the dice begin. RVT_STEPS: of each worker. RVT_ONLY: a pattern
# of the storms to have.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

seed=${RVT_SEED:-1}
steps=${RVT_STEPS:-40000}
devices=3
memory_leaks=/sys/kernel/debug/kmemleak
# A storm counts steps; this is for one that does not end.
storm_limit=${RVT_STORM_LIMIT:-1200}

# What all devices hold.
all_objects()
{
	rdma resource show | sed 's/^[0-9]*: //'
}

all_objects_are()
{
	[[ $(all_objects) == "$1" ]]
}

# Pages that somebody keeps in memory for a device, as regions do. The kernel counts on
# each processor, and adds up within a second.
pinned()
{
	awk '/^nr_foll_pin_acquired / { n += $2 } /^nr_foll_pin_released / { n -= $2 } END { print n }' /proc/vmstat
}

pinned_are()
{
	[[ $(pinned) -eq $1 ]]
}

# storm SEED STEPS OPTION...
storm()
{
	local status=0 start

	set -- /rvt/files/torture --devices $devices --seed "$1" --steps "$2" "${@:3}"
	echo "\$ $*"
	start=$(now)
	timeout --foreground -k 60 "$storm_limit" "$@" 2>&1 || status=$?
	echo "= exit $status after $(elapsed "$start") s"
	[[ $status -eq 0 ]]
}

# leaves WHAT: the devices hold that, and nothing else
leaves()
{
	await 30 all_objects_are "$1" || wrong "left behind: $(all_objects), expected: $1"
	await 10 pinned_are "$fresh_pins" || wrong "left behind: $(($(pinned) - fresh_pins)) pinned pages"
}

plain_storm()
{
	storm "$seed" "$steps"
	leaves "$fresh"
}

works()
{
	device=rvt0
	pair ibv_rc_pingpong -d "$device" -n 100 -c -- ibv_rc_pingpong -d "$device" -n 100 -c localhost
	pair ibv_ud_pingpong -d "$device" -s 1024 -n 100 -- \
		ibv_ud_pingpong -d "$device" -s 1024 -n 100 localhost
}

one_removed()
{
	local before

	before=$(all_objects | grep -v rvt2)
	storm $((seed + 1000000)) $((steps / 2)) --half 'rdma link delete rvt2'
	[[ ! -e /sys/class/infiniband/rvt2 ]] || wrong "rvt2 is still there"
	leaves "$before"
	works
}

# While files of the devices are open and their rings mapped. Who looks into
# debugfs holds the module for a moment.
all_removed()
{
	storm $((seed + 2000000)) $((steps / 2)) --restart --half \
		"rdma link delete rvt0 && rdma link delete rvt1 &&
		 until rmmod rvt; do busybox usleep 20000; done && insmod /rvt/rvt.ko devices=$devices"
	works
	leaves "$fresh"
}

locks_watched()
{
	[[ -e /proc/lockdep_stats ]] || skip "no lockdep in this kernel"
	grep debug_locks /proc/lockdep_stats
	grep -q 'debug_locks: *1$' /proc/lockdep_stats || wrong "lockdep has switched itself off"
}

# kmemleak says nothing of what is younger than five seconds.
leaks()
{
	local end

	[[ -e $memory_leaks ]] || skip "no kmemleak in this kernel"
	end=$(($(seconds) + 7))
	while [[ $(seconds) -lt $end ]]; do
		echo scan >$memory_leaks
	done
	echo scan >$memory_leaks
	cat $memory_leaks >leaks
	[[ ! -s leaks ]] || wrong "leaked: $(head -n 1000 leaks)"
}

chosen()
{
	# shellcheck disable=SC2053
	[[ $1 != ${RVT_ONLY:-*} ]] || t "$@"
}

[[ ! -e $memory_leaks ]] || echo clear >$memory_leaks
# Many processes wait for each other here, on a machine that may be slow.
[[ ! -e /proc/sys/kernel/hung_task_timeout_secs ]] || echo 240 >/proc/sys/kernel/hung_task_timeout_secs
echo 8 >/proc/sys/vm/nr_hugepages
RVT_MODARGS="devices=$devices"
t device load_device
fresh=$(all_objects)
fresh_pins=$(pinned)

chosen storm plain_storm
t works works
chosen one-removed one_removed
chosen all-removed all_removed
t leaks-before-rmmod leaks
t lockdep locks_watched
t rmmod unload_device
t leaks leaks
