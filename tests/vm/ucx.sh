#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# UCX's own programs: each operation of its transports rc_verbs and ud_verbs,
# and of its protocols over them.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

pair_port=13337

listed()
{
	run ucx_info -d >info || wrong "ucx_info fails"
	cat info
	for transport in rc_verbs ud_verbs; do
		grep -A 1 "Transport: $transport" info | grep "Device: $device:1" ||
			wrong "UCX does not offer $transport on $device"
	done
}

# What a program printed as its result has this many messages in it.
# perftest MESSAGES OPTION...
perftest()
{
	local messages=$1

	shift
	pair ucx_perftest -n "$messages" "$@" -- ucx_perftest -n "$messages" "$@" localhost ||
		wrong "ucx_perftest fails"
	grep -E "Final: +$messages " client || wrong "no result for $messages messages"
}

# transport NAME OPERATION SIZE MESSAGES OPTION...: without UCX's protocols
transport()
{
	carries $(($3 * $4)) perftest "$4" -d "$device:1" -x "$1" -t "$2" -s "$3" "${@:5}"
}

# protocol TRANSPORT OPERATION SIZE MESSAGES OPTION...
protocol()
{
	export UCX_NET_DEVICES=$device:1 UCX_TLS=$1,self UCX_LOG_LEVEL=info

	carries $(($3 * $4)) perftest "$4" -t "$2" -s "$3" "${@:5}"
	grep -E "ep_cfg.*${1%_v}_verbs/$device:1" server client ||
		wrong "UCX does not say that it uses $device"
}

t device load_device
device=${device:-rvt0}
t ucx_info listed
for name in rc_verbs ud_verbs; do
	t "$name-am_lat" transport $name am_lat 8 200
	t "$name-am_bw" transport $name am_bw 1024 1000 -D bcopy
done
t rc_verbs-am_bw-zcopy transport rc_verbs am_bw 8000 500 -D zcopy
t rc_verbs-put_lat transport rc_verbs put_lat 8 200
t rc_verbs-put_bw transport rc_verbs put_bw 65536 100 -D zcopy
t rc_verbs-get transport rc_verbs get 65536 100 -D zcopy
for name in rc_v ud_v; do
	t "$name-tag_lat" protocol $name tag_lat 8 200
	t "$name-tag_bw" protocol $name tag_bw 1000000 20
	t "$name-ucp_put_bw" protocol $name ucp_put_bw 65536 50
	t "$name-ucp_get" protocol $name ucp_get 65536 50
	t "$name-stream_bw" protocol $name stream_bw 65536 50
	t "$name-ucp_am_bw" protocol $name ucp_am_bw 65536 50
done
t rmmod unload_device
