#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# qperf: each of its RDMA tests that does without rdma_cm, by events and polled.
# A server stays for all of them.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# figure TEST WHAT OPTION...: WHAT is the name of the figure that must come
figure()
{
	local test=$1 what=$2

	shift 2
	carries 100 run qperf localhost -i "$device:1" -t 1 "$@" "$test" | tee output ||
		wrong "qperf fails"
	grep -E "$what += +[0-9.]*[1-9]" output || wrong "qperf prints no $what"
}

stops()
{
	run qperf localhost quit
	await 10 gone "$qperf_server" || wrong "the server does not end"
}

t device load_device
device=${device:-rvt0}
qperf >/dev/null 2>&1 &
qperf_server=$!
t server await 30 listens 19765
for type in rc uc ud; do
	bw=send_bw
	[[ $type != rc ]] || bw=bw
	for polled in 0 1; do
		t "${type}_lat-polled-$polled" figure ${type}_lat latency -cp $polled
		t "${type}_bw-polled-$polled" figure ${type}_bw $bw -cp $polled
		t "${type}_bi_bw-polled-$polled" figure ${type}_bi_bw $bw -cp $polled
	done
	[[ $type != ud ]] || continue
	t ${type}_rdma_write_lat figure ${type}_rdma_write_lat latency
	t ${type}_rdma_write_bw figure ${type}_rdma_write_bw $bw
	t ${type}_rdma_write_poll_lat figure ${type}_rdma_write_poll_lat latency
done
t rc_rdma_read_lat figure rc_rdma_read_lat latency
t rc_rdma_read_bw figure rc_rdma_read_bw bw
for test in rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
	t $test figure $test msg_rate
done
t stops stops
t rmmod unload_device
