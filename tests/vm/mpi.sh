#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Open MPI over the device: two ranks; over UCX, reliably connected and by
# datagrams, and by Open MPI's own use of verbs. scripts/hpc brings the programs
# (tests/vm/mpi/).

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# Nothing but the device may carry a message: no shared memory, no TCP.
# ranks TRANSPORT PROGRAM SIZES
ranks()
{
	local how=(--mca pml ucx -x UCX_NET_DEVICES="$device:1" -x UCX_TLS="$1,self")

	if [[ $1 == openib ]]; then
		how=(--mca pml ob1 --mca btl "openib,self" --mca btl_openib_allow_ib 1
			--mca btl_openib_warn_no_device_params_found 0)
	fi
	run mpirun -np 2 --allow-run-as-root --oversubscribe "${how[@]}" \
		"/rvt/files/$2" | tee output || wrong "mpirun fails"
	[[ $(awk -v what="$2" '$1 == what { printf "%s ", $2 }' output) == "$3 " ]] ||
		wrong "not every size was reported"
}

t device load_device
device=${device:-rvt0}
for transport in rc_v ud_v openib; do
	# What the programs send, both ways.
	t "latency-$transport" carries $((2 * (200 * (1 + 64 + 4096) + 20 * (65536 + 1048576)))) \
		ranks $transport latency '0 1 64 4096 65536 1048576'
	t "bandwidth-$transport" carries $((16 * (50 * (64 + 4096) + 5 * (65536 + 1048576)))) \
		ranks $transport bandwidth '64 4096 65536 1048576'
done
t rmmod unload_device
