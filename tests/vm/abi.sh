#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The user ABI in detail: abi.c (scripts/abi builds and brings it), each of its
# tests in a process of its own, which has to leave nothing behind. Two devices,
# so that one can be removed and the other go on.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# abi NAME [DEVICE]
abi()
{
	local before on=${2:-$device} status=0

	before=$(objects)
	run /rvt/files/abi "$on" "$1" | tee out || status=$?
	if [[ $status -eq 77 ]]; then
		skip "$(grep -v -E '^[=$] ' out)"
	fi
	[[ $status -eq 0 ]] || return "$status"
	await 10 objects_are "$before" || wrong "left behind: $(objects), before: $before"
}

huge_pages()
{
	echo 4 >/proc/sys/vm/nr_hugepages 2>/dev/null || skip "the kernel has no huge pages"
	abi huge_pages
}

removed()
{
	abi case_158_removed rvt1
	[[ ! -e /sys/class/infiniband/rvt1 ]] || wrong "rvt1 is still there"
	abi resize_cq_waiting
}

removed_and_rmmod()
{
	run /rvt/files/abi rvt0 case_158_rmmod
	[[ ! -e /sys/module/rvt ]] || wrong "the module is still there"
	load_device || wrong "it does not load again"
	abi resize_cq_waiting
}

t device load_device
device=rvt0

t inline_unfaulted abi inline_unfaulted
t inline_kept abi inline_kept
t inline_limit abi inline_limit
t case_170_all_good abi case_170_all_good
t case_170_too_long abi case_170_too_long
t case_170_efault abi case_170_efault
t case_170_full abi case_170_full
t receive_ring_full abi receive_ring_full
t posted_in_reset abi posted_in_reset
t case_169_posted_in_err abi case_169_posted_in_err
t resize_cq_waiting abi resize_cq_waiting
t resize_cq_producer abi resize_cq_producer
t srq_resize abi srq_resize
t srq_limit abi srq_limit
t case_031_bad_offset_addr abi case_031_bad_offset_addr
t mapped_once abi mapped_once
t case_153_map_against_destroy abi case_153_map_against_destroy
t case_154_offsets_never_repeat abi case_154_offsets_never_repeat
t fork_and_destroy abi fork_and_destroy
t scribbled_rings abi scribbled_rings
t reg_mr_refused abi reg_mr_refused
t rdma_through_iova abi rdma_through_iova
t region_ends abi region_ends
t scattered_64_mib abi scattered_64_mib
t huge_pages huge_pages
t read_only_region abi read_only_region
t shared_pages abi shared_pages
t many_gib abi many_gib
t rereg_mr abi rereg_mr
t rereg_mr_refused abi rereg_mr_refused
t completion_vectors abi completion_vectors
t busy abi busy
t killed abi killed
t case_158_removed removed
t case_158_rmmod removed_and_rmmod
t rmmod unload_device
