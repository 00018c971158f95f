#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# A process that dies in the middle of a run leaves nothing behind in the
# kernel, and its peer gets an error instead of waiting for ever.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# Queue pairs that can receive, by rdma's own count.
connected()
{
	[[ $(rdma resource show qp | grep -w "$device" | grep -c -E 'state RT[RS]') -ge $1 ]]
}

# Clock ticks of processor time that a process used.
ticks()
{
	local stat

	stat=$(<"/proc/$1/stat")
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	echo $((${12} + ${13}))
}

has_run()
{
	[[ $(ticks "$1") -ge $2 ]]
}

# Has more gone through the device than @1 bytes? Only rvt tells.
moved()
{
	[[ $RVT_KIND != rvt || $(counter loop_bytes) -gt $1 ]]
}

# kill_one WHO PROGRAM...: start both, kill one in mid-run. Sets "status" to how
# the survivor ended.
kill_one()
{
	local who=$1 before bytes server client victim survivor

	shift
	before=$(objects)
	bytes=$([[ $RVT_KIND != rvt ]] || counter loop_bytes)
	echo "before: $before"
	echo "both\$ $*"
	"$@" >server 2>&1 &
	server=$!
	await 30 listens_or_gone "$pair_port" "$server"
	"$@" localhost >client 2>&1 &
	client=$!
	await 60 connected 2 || wrong "the two do not connect: $(rdma resource show qp)"
	await 60 has_run "$client" 10 || wrong "the client does nothing"
	await 60 moved "$bytes" || wrong "no data moves"
	echo "running: $(objects)"
	if [[ $who == client ]]; then
		victim=$client survivor=$server
	else
		victim=$server survivor=$client
	fi
	kill -KILL "$victim"
	status=0
	if ! await 60 gone "$survivor"; then
		kill "$survivor"
		wait "$survivor" || true
		cat server client
		wrong "the peer of a killed process hangs"
	fi
	wait "$survivor" || status=$?
	wait "$server" "$client" 2>/dev/null || true
	sed 's/^/server| /' server
	sed 's/^/client| /' client
	echo "= the survivor's exit status is $status"
	await 20 objects_are "$before" || wrong "left behind: $(objects), before: $before"
	echo "after: $(objects)"
}

peer_fails()
{
	local status

	kill_one "$@"
	[[ $status -ne 0 && $status -ne 124 ]] ||
		wrong "the peer of a killed process ended with $status"
}

# A connected peer is gone: the requests to it run out of retries, and the
# device counts that.
retries_counted()
{
	local before

	before=$(counter errors_retry)
	peer_fails "$@"
	[[ $RVT_KIND != rvt || $(counter errors_retry) -gt $before ]] ||
		wrong "errors_retry is still $before"
}

# A ping-pong peer whose turn it is not has nothing outstanding, on any device:
# it may wait. What must hold is that nothing is left once both are gone.
pingpong_killed()
{
	local before server client

	before=$(objects)
	echo "before: $before"
	"$@" >server 2>&1 &
	server=$!
	await 30 listens_or_gone "$pair_port" "$server"
	"$@" localhost >client 2>&1 &
	client=$!
	await 60 connected 2 || wrong "the two do not connect"
	await 60 has_run "$client" 10 || wrong "the client does nothing"
	echo "running: $(objects)"
	kill -KILL "$client"
	wait "$client" || true
	if ! await 5 gone "$server"; then
		echo "the server waits for the next message, as on any fabric"
		kill -KILL "$server"
	fi
	wait "$server" || true
	await 20 objects_are "$before" || wrong "left behind: $(objects), before: $before"
	echo "after: $(objects)"
}

works()
{
	pair ibv_rc_pingpong -d "$device" "${pingpong_gid[@]}" -n 100 -- \
		ibv_rc_pingpong -d "$device" "${pingpong_gid[@]}" -n 100 localhost
}

load_device || true
device=${device:-${RVT_KIND}0}
t device device_exists

endless=(-d "$device" -F -s 65536 -D 100 "${perftest_gid[@]}")
t client-of-send_bw peer_fails client ib_send_bw -b "${endless[@]}"
t client-of-write_bw peer_fails client ib_write_bw -b "${endless[@]}"
t server-of-write_bw peer_fails server ib_write_bw "${endless[@]}"
t server-of-read_bw peer_fails server ib_read_bw "${endless[@]}"
infinite=(-d "$device" -F -s 65536 -D 1 --run_infinitely "${perftest_gid[@]}")
for operation in send write read; do
	t "server-of-infinite-${operation}_bw" retries_counted server ib_${operation}_bw "${infinite[@]}"
	t "client-of-infinite-${operation}_bw" pingpong_killed ib_${operation}_bw "${infinite[@]}"
done
for type in rc uc ud srq; do
	for wait in '' -e; do
		# shellcheck disable=SC2086
		t "client-of-${type}_pingpong$wait" pingpong_killed ibv_${type}_pingpong \
			-d "$device" -s 1024 -n 100000000 "${pingpong_gid[@]}" $wait
	done
done
t works-afterwards works
t rmmod unload_device
