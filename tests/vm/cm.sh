#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# rdma_cm on two devices: connections by GID, their datagrams through queue pair
# 1, listeners that "rdma resource" shows, removal under them. scripts/managers
# brings the program. Wants devices=2.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

cm=/rvt/files/cm

load()
{
	load_device
	# It may be built in.
	modprobe rdma_ucm || true
	await 10 test -e /dev/infiniband/rdma_cm || wrong "rdma_ucm does not come"
}

# --- connections -------------------------------------------------------------

# The managers' messages that a device sent and got, "rx req 1".
messages()
{
	cd "/sys/class/infiniband/$1/ports/1"
	grep . cm_[rt]x_msgs/* | sed 's,^cm_\(.x\)_msgs/\(.*\):,\1 \2 ,'
}

# exactly DEVICE BEFORE "WAY KIND"...: so many more it has, and no others
exactly()
{
	diff <(messages "$1") <(
		awk 'NR == FNR { more[$0]++; next } { print $1, $2, $3 + more[$1 " " $2] }' \
			<(printf '%s\n' "${@:3}") <(echo "$2")) ||
		wrong "$1 has other messages of ib_cm than expected"
}

# cm_ids RVT0 RVT1: so many the kernel counts on each
cm_ids()
{
	[[ $(rdma resource show | sed -n 's/.* cm_id \([0-9]*\) .*/\1/p' | tr '\n' ' ') == "$1 $2 " ]]
}

nothing_left()
{
	cm_ids 0 0 || wrong "a cm_id is left"
	rdma resource show | tee shown
	! grep -v 'pd 1 cq 1 qp 2 cm_id 0 mr 0 ctx 0 srq 0' shown || wrong "something is left"
}

# talks TYPE: both ends on rvt0. The client's messages to the server come back.
talks_alone()
{
	local before

	before=$(messages rvt0)
	device=rvt0 carries 40000 run $cm talk "$1" rvt0 rvt0
	if [[ $1 == rc ]]; then
		exactly rvt0 "$before" {rx,tx}' '{req,rep,rtu,dreq,drep}
	else
		exactly rvt0 "$before" {rx,tx}' '{sidr_req,sidr_rep}
	fi
	nothing_left
}

# A server on rvt1, its client on rvt0.
talks_across()
{
	local before0 before1 sent

	before0=$(messages rvt0)
	before1=$(messages rvt1)
	sent=$(device=rvt0 counter sent_bytes)
	run $cm talk "$1" rvt1 rvt0
	[[ $(($(device=rvt0 counter sent_bytes) - sent)) -ge 20000 ]] || wrong "too few bytes left rvt0"
	if [[ $1 == rc ]]; then
		exactly rvt0 "$before0" 'tx '{req,rtu,dreq} 'rx '{rep,drep}
		exactly rvt1 "$before1" 'rx '{req,rtu,dreq} 'tx '{rep,drep}
	else
		exactly rvt0 "$before0" 'tx sidr_req' 'rx sidr_rep'
		exactly rvt1 "$before1" 'rx sidr_req' 'tx sidr_rep'
	fi
	nothing_left
}

refuses()
{
	local before

	before=$(messages rvt0)
	run $cm refused rvt1 rvt0
	exactly rvt0 "$before" 'tx req' 'tx req' 'rx rej' 'rx rej'
	nothing_left
}

# --- listeners ---------------------------------------------------------------

# begin WORD...: the program with an input that stays open; says what it says
# in the file said. Its process is $pid.
begin()
{
	rm -f hold
	mkfifo hold
	: >said
	"$cm" "$@" <hold >said 2>&1 &
	pid=$!
	exec 9>hold
	await 30 has_said '^(port|connected)' || wrong "it does not begin"
	port=$(sed -n 's/^port //p' said)
}

has_said()
{
	grep -E -q -- "$1" said
}

finish()
{
	exec 9>&-
	wait "$pid" || wrong "it ends with status $?"
	cat said
}

# listens_on DEVICE WORD...: just one listener there, with these words
listens_on()
{
	local line word

	rdma -d resource show cm_id | tr -s ' \t' ' ' >shown
	cat shown
	line=$(grep "^link $1/" shown) || wrong "no cm_id on $1"
	[[ $(wc -l <<<"$line") -eq 1 ]] || wrong "more than one cm_id on $1"
	for word in 'state LISTEN' 'ps TCP' "pid $pid" 'comm cm' "${@:2}"; do
		grep -q -w -F -e "$word" <<<"$line" || wrong "no '$word' in: $line"
	done
}

# One on any address is on each device.
any_listener()
{
	begin listen any
	listens_on rvt0 "src-addr 0.0.0.0:$port"
	listens_on rvt1 "src-addr 0.0.0.0:$port"
	finish
	nothing_left
}

# "rdma" does not show cm_ids whose address is a GID, but counts them.
gid_listener()
{
	begin listen rvt1
	cm_ids 0 1 || wrong "not one cm_id, on rvt1"
	finish
	nothing_left
}

killed()
{
	begin listen any
	listens_on rvt0
	kill_it
	begin hold rvt1 rvt0
	cm_ids 1 2 || wrong "not a listener and two ends"
	kill_it
}

kill_it()
{
	kill -KILL "$pid"
	wait "$pid" || true
	exec 9>&-
	# The managers part in the background.
	await 30 cm_ids 0 0 || true
	nothing_left
}

# --- removal -----------------------------------------------------------------

again()
{
	rmmod rvt
	load
}

# Who listens on any address loses one device, keeps the other, and keeps neither
# the device nor the module.
removed_under_any()
{
	begin listen any
	run rdma link delete rvt1
	listens_on rvt0
	[[ $(wc -l <shown) -eq 1 ]] || wrong "still a cm_id on rvt1"
	run rmmod rvt || wrong "the module does not go"
	[[ ! -s said ]] || ! has_said '^event' || wrong "an event that nobody needs"
	load
	listens_on rvt0 "src-addr 0.0.0.0:$port"
	listens_on rvt1 "src-addr 0.0.0.0:$port"
	finish
	nothing_left
}

# Who listens on a device has it open, and is told.
removed_under_gid()
{
	begin listen rvt1
	! run rmmod rvt || wrong "the module goes while a process has a device open"
	run rdma link delete rvt1
	await 30 has_said '^event rvt1 RDMA_CM_EVENT_DEVICE_REMOVAL' || wrong "it is not told"
	finish
	again
}

# Of a connection, one end loses its device.
removed_under_connection()
{
	begin hold rvt1 rvt0
	run rdma link delete rvt1
	await 30 has_said '^event rvt1 RDMA_CM_EVENT_DEVICE_REMOVAL' || wrong "it is not told"
	rdma resource show
	finish
	again
}

[[ $RVT_KIND == rvt ]] || exit 0
t load load
for type in rc ud; do
	t "$type-alone" talks_alone $type
	t "$type-across" talks_across $type
done
t refused refuses
t any-listener any_listener
t gid-listener gid_listener
t killed killed
t removed-under-any removed_under_any
t removed-under-gid removed_under_gid
t removed-under-connection removed_under_connection
t rmmod unload_device
