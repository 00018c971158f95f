#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# libfabric's own programs over its verbs provider, as far as they go without a
# subnet manager: datagrams, and the reliable endpoints that ofi_rxd makes of them.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

pair_port=47592

load()
{
	load_device
	# It may be built in. Datagrams want its event queue.
	modprobe rdma_ucm || true
	await 10 test -e /dev/infiniband/rdma_cm || wrong "rdma_ucm does not come"
}

listed()
{
	run fi_info -p verbs >info || wrong "fi_info fails"
	cat info
	grep -A 4 "domain: $device\$" info | grep 'protocol: FI_PROTO_RDMA_CM_IB_RC' ||
		wrong "no connected endpoints on $device"
	grep -A 4 "domain: $device-dgram\$" info | grep 'protocol: FI_PROTO_IB_UD' ||
		wrong "no datagram endpoints on $device"
	grep -A 4 "domain: $device-dgram\$" info | grep 'protocol: FI_PROTO_RXD' ||
		wrong "no ofi_rxd endpoints on $device"
}

# pingpong PROVIDER TYPE SIZE COUNT OPTION...
pingpong()
{
	local count=$4

	set -- -d "$device-dgram" -p "$1" -e "$2" -S "$3" -I "$count" -c "${@:5}"
	pair fi_pingpong "$@" -- fi_pingpong "$@" 127.0.0.1 || wrong "fi_pingpong fails"
	grep -E "^[0-9a-z]+ +$count +=$count " client || wrong "not all messages were answered"
}

t device load
device=${device:-rvt0}
t fi_info listed
for size in 1 64 1024; do
	t "dgram-$size" carries $((2 * size * 100)) pingpong verbs dgram $size 100
	t "rdm-$size" carries $((2 * size * 100)) pingpong 'verbs;ofi_rxd' rdm $size 100
	t "rdm-tagged-$size" carries $((2 * size * 100)) pingpong 'verbs;ofi_rxd' rdm $size 100 -m tagged
done
t rdm-65536 carries $((2 * 65536 * 20)) pingpong 'verbs;ofi_rxd' rdm 65536 20
t rmmod unload_device
