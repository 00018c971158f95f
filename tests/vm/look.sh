#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# What people look at: tracepoints, messages, "rdma resource". scripts/abi runs it,
# since some of it takes a program that does a known thing.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

tracing=/sys/kernel/tracing

# --- tracepoints -----------------------------------------------------------

# traced PROGRAM...: run it with all events on; its records go to the file records,
# "EVENT FIELD=VALUE...", without the stamps.
traced()
{
	local status=0

	echo >"$tracing/trace"
	echo 1 >"$tracing/events/rvt/enable"
	"$@" || status=$?
	echo 0 >"$tracing/events/rvt/enable"
	sed -n 's/^[^#].*: rvt_\([a-z_]*\): /\1 /p' "$tracing/trace" >records
	return "$status"
}

# count NUMBER EVENT FIELD=VALUE...: so many records of the event have the fields.
count()
{
	local wanted=$1 found field

	found=$(grep "^$2 " records || true)
	for field in "${@:3}"; do
		found=$(grep -w -e "$field" <<<"$found" || true)
	done
	found=$(grep -c . <<<"$found" || true)
	[[ $found -eq $wanted ]] || wrong "$found records of ${*:2}, expected $wanted"
}

# The positions of the records of an event with the fields, in order.
places()
{
	grep -n "^$1 " records | grep -w -e "$2" | grep -w -e "$3" | cut -d: -f1
}

has_tracing()
{
	[[ -e $tracing/events ]] || mount -t tracefs none "$tracing" 2>/dev/null ||
		busybox mount -t tracefs none "$tracing" 2>/dev/null ||
		skip "the kernel has no tracing"
	# Names of tasks are not looked at. To note them the kernel would rewrite code of its
	# scheduler with each change of events, under processors that run it: QEMU's emulation
	# was seen to trip over that once (int3 in ttwu_do_activate).
	echo 0 >"$tracing/options/record-cmd"
	[[ -d $tracing/events/rvt ]] || wrong "there are no events of rvt"
}

pingpong_traced()
{
	local qpn place after qpns

	has_tracing
	traced pair ibv_rc_pingpong -d "$device" -n 20 -s 3000 -e -- \
		ibv_rc_pingpong -d "$device" -n 20 -s 3000 -e localhost
	head -n 60 records
	mapfile -t qpns < <(sed -n 's/.*local address.*QPN \(0x[0-9a-f]*\).*/\1/p' server client)
	[[ ${#qpns[@]} -eq 2 && ${qpns[0]} != "${qpns[1]}" ]] || wrong "queue pairs: ${qpns[*]}"
	for qpn in "${qpns[@]}"; do
		# wr_id 1 is its receive, 2 its send.
		count 20 post_send "qpn=$qpn" wr_id=0x2 opcode=SEND bytes=3000 lid=1
		count 20 execute "qpn=$qpn" wr_id=0x2 opcode=SEND bytes=3000 lid=1
		count 20 complete "qpn=$qpn" wr_id=0x2 opcode=SEND status=SUCCESS bytes=3000
		count 20 complete "qpn=$qpn" wr_id=0x1 opcode=RECV status=SUCCESS bytes=3000
		count 40 complete "qpn=$qpn"
		for state in 'RESET to=INIT' 'INIT to=RTR' 'RTR to=RTS' 'RTS to=RESET'; do
			count 1 qp_state "qpn=$qpn" "from=$state"
		done
		count 4 qp_state "qpn=$qpn"
		# The n-th of each in turn.
		paste -d ' ' <(places post_send "qpn=$qpn" wr_id=0x2) \
			<(places execute "qpn=$qpn" wr_id=0x2) \
			<(places complete "qpn=$qpn" wr_id=0x2) >order
		while read -r place after last; do
			[[ $place -lt $after && $after -lt $last ]] ||
				wrong "QP $qpn: posted, executed, completed in lines $place, $after, $last"
		done <order
	done
	count 0 wait
	count 0 qp_error
	# Each end registers one region and gives it back.
	count 2 mr what=register length=3000
	count 2 mr what=deregister length=3000
	[[ $(grep -c '^cq .*what=arm ' records) -ge 4 ]] || wrong "queues are not armed"
	grep -w -e post_send -e execute records | grep -v -w lid=1 && wrong "another LID"
	return 0
}

rnr_traced()
{
	has_tracing
	traced run /rvt/files/abi "$device" inline_kept
	grep -v -w -e mr -e cq records
	[[ $(grep -c '^wait .*for=rnr .*ns=1280000 .*left=7' records) -ge 1 ]] ||
		wrong "no wait for a receive"
	# As often executed as it had to wait, and once more for each request.
	count $((10 + $(grep -c '^wait ' records))) execute opcode=SEND
}

errors_traced()
{
	has_tracing
	traced run /rvt/files/abi "$device" region_ends
	grep -w -e qp_error -e mr records
	grep -q '^qp_error .*cause=send status=REM_ACCESS_ERR' records ||
		wrong "the requester's error is not told"
	grep -q '^qp_error .*cause=receive ' records || wrong "the responder's error is not told"
}

# One run of the engine moves 1 MiB, or more by its last request only; then a work
# item goes on. A run begins behind a post, or with a work item.
budget_kept()
{
	local items=$tracing/events/workqueue/workqueue_execute_start/enable

	has_tracing
	echo 1 >"$items"
	traced pair ib_write_bw -d "$device" -F -s 262144 -l 64 -n 640 -- \
		ib_write_bw -d "$device" -F -s 262144 -l 64 -n 640 localhost
	echo 0 >"$items"
	awk '
		/ rvt_post_send: / || / workqueue_execute_start: / { bytes[$1] = requests[$1] = 0 }
		/ workqueue_execute_start: / { works[$1] }
		!/ rvt_execute: / { next }
		bytes[$1] >= 1048576 || requests[$1] >= 128 { print "beyond the budget: " $0; bad = 1 }
		{
			match($0, /bytes=[0-9]+/)
			bytes[$1] += substr($0, RSTART + 6, RLENGTH - 6)
			requests[$1]++
			by[$1 in works ? "work items" : "posts"]++
		}
		bytes[$1] >= 1048576 { used++ }
		END {
			print by["posts"] + 0 " requests carried out by posts, " by["work items"] + 0 \
				" by work items; " used + 0 " runs used all of their budget"
			exit bad || !by["posts"] || !by["work items"] || !used
		}' "$tracing/trace" || wrong "see above"
}

# Off again: nothing is recorded, and traffic goes on.
off_again()
{
	has_tracing
	traced true
	echo >"$tracing/trace"
	run /rvt/files/abi "$device" case_170_all_good
	! grep ': rvt_' "$tracing/trace" || wrong "an event came while off"
}

# --- messages --------------------------------------------------------------

says()
{
	dmesg | sed 's/^\[[^]]*\] //' | grep -w "$device"
}

# Whatever was done so far, ours is not in the kernel's log, but for its loading.
silent()
{
	dmesg | grep -i -w -e rvt -e "$device" | grep -v -e 'out-of-tree' -e 'module verification' \
		-e 'taint' >said || true
	cat said
	[[ ! -s said ]] || wrong "the kernel's log has messages of normal use"
}

talks_when_asked()
{
	local control=/proc/dynamic_debug/control

	[[ -e $control ]] || skip "the kernel has no dynamic debug"
	echo 'module rvt +p' >$control
	run /rvt/files/abi "$device" srq_resize
	run /rvt/files/abi "$device" region_ends
	echo 'module rvt -p' >$control
	says | tail -n 40
	says | grep -q -E 'QP 0x[0-9a-f]{6}: created, type 2, sends 40 of 4' || wrong "creation"
	says | grep -q -E 'QP 0x[0-9a-f]{6}: modify, mask 0x[0-9a-f]+, state 3: 0' || wrong "modify"
	says | grep -q -E 'QP 0x[0-9a-f]{6}: destroyed' || wrong "destruction"
	says | grep -q -E 'CQ [0-9a-f]+: created, 128 entries' || wrong "completion queues"
	says | grep -q -E 'SRQ [0-9a-f]+: modify, mask 0x1, receives' || wrong "SRQs"
	says | grep -q -E 'MR 0x[0-9a-f]{8}: 1048576 bytes' || wrong "regions"
	says | grep -q -E 'QP 0x[0-9a-f]{6}: local access violation|remote access' ||
		says | grep -q -E 'QP 0x[0-9a-f]{6}: .*(error|access)' || wrong "events"
}

# --- rdma ----------------------------------------------------------------------

# Both ways to the counters say the same.
counters()
{
	local name value sys=/sys/class/infiniband/$device/ports/1/hw_counters

	run /rvt/files/abi "$device" counters
	rdma statistic show link "$device/1" | tee statistic
	for file in "$sys"/*; do
		name=${file##*/}
		[[ $name != lifespan ]] || continue
		value=$(<"$file")
		grep -q -w "$name $value" statistic || wrong "sysfs has $name $value"
	done
}

# details KIND PATTERN: the object of the kind that has the pattern, in one line;
# newer versions of rdma fold it.
details()
{
	rdma -dd resource show "$1" | tr -s ' \t' ' ' |
		awk 'NR > 1 && !/^ / { print "" } { printf "%s", $0 } END { print "" }' >shown
	cat shown >&2
	grep -w -e "$2" shown
}

has()
{
	local line=$1 value

	for value in "${@:2}"; do
		grep -q -w -e "$value" <<<"$line" || wrong "'$value' is not in: $line"
	done
}

resources()
{
	local pid first second key line

	mkfifo hold
	/rvt/files/abi "$device" shown <hold >numbers &
	pid=$!
	exec 9>hold
	await 30 test -s numbers || wrong "no objects"
	read -r first second key <numbers
	line=$(details qp "lqpn $first")
	has "$line" 'type RC' 'state RTS' "rqpn $second" "pid $pid" 'drv_sq_size 41' 'drv_sq_head 2' \
		'drv_sq_last 2' 'drv_rq_size 41' 'drv_rq_head 7' 'drv_rq_tail 0'
	line=$(details qp "lqpn $second")
	has "$line" 'type RC' 'state RTS' "rqpn $first" 'drv_rq_size 0'
	line=$(details cq "pid $pid .*drv_armed 1")
	has "$line" 'cqe 128' "pid $pid" 'drv_size 129' 'drv_head 2' 'drv_tail 0' 'drv_solicited 1' 'drv_overrun 0'
	line=$(details cq "pid $pid .*drv_armed 0")
	has "$line" 'cqe 128' "pid $pid" 'drv_size 129' 'drv_head 2' 'drv_tail 0' 'drv_overrun 0'
	line=$(details mr 'mrlen 1048576')
	has "$line" "rkey $(printf '0x%x' "$key")" "pid $pid" 'drv_usable 1' 'drv_access 15'
	line=$(details pd "pid $pid")
	has "$line" 'users [1-9][0-9]*'
	if rdma resource show srq >shown 2>&1 && grep -q -w srqn shown; then
		line=$(details srq "pid $pid")
		cat shown
		[[ $RVT_SUITE == bookworm ]] || has "$line" 'drv_size 6' 'drv_head 3' 'drv_tail 2' 'drv_limit 0' 'drv_max_sge 3'
	fi
	exec 9>&-
	wait "$pid"
}

t device load_device
device=rvt0

t pingpong_traced pingpong_traced
t rnr_traced rnr_traced
t errors_traced errors_traced
t budget_kept budget_kept
t off_again off_again
t counters counters
t resources resources
t silent silent
t talks_when_asked talks_when_asked
t rmmod unload_device
