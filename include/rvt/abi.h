/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * abi.h - the rings that user space maps, byte for byte.
 *
 * This is the rdmavt user ABI (uverbs ABI version 2) that the stock
 * rdma-core provider speaks. Documentation/abi.md tells who writes which
 * field. Whatever user space can write is read once, checked, then used.
 * Plain C, readable alone: no kernel header, no C++.
 */
#ifndef RVT_ABI_H
#define RVT_ABI_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#elif defined(__KERNEL__)
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/**
 * struct rvt_sge - one piece of a message, as posted
 * @addr: address in the space that @lkey names
 * @length: bytes; an entry of zero bytes is skipped, its key is not checked
 * @lkey: local key
 */
struct rvt_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/**
 * struct rvt_rwqe - a receive work request in a ring
 * @wr_id: the consumer's cookie
 * @num_sge: entries used in the list that follows; user-writable, not to be
 *           believed
 * @pad: unused
 * @sge: the ring's max_sge entries; the ring's stride is
 *       rvt_rwqe_size(max_sge) whatever @num_sge says
 */
struct rvt_rwqe {
	uint64_t wr_id;
	uint8_t num_sge;
	uint8_t pad[7];
	struct rvt_sge sge[];
};

/**
 * struct rvt_rq_ring - a receive ring (queue pair or SRQ)
 * @head: next entry to fill; written by the poster
 * @tail: next entry to consume; written by the device
 * @data: size * stride bytes, one entry always empty
 */
struct rvt_rq_ring {
	uint32_t head;
	uint32_t tail;
	uint8_t data[];
};

/**
 * struct rvt_wc - a completion; the layout that the provider copies into
 * its caller's ibv_wc
 */
struct rvt_wc {
	uint64_t wr_id;
	uint32_t status;
	uint32_t opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_data; /* network order, or the invalidated rkey */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags;
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
	uint8_t port_num;
	uint8_t reserved;
};

/**
 * struct rvt_cq_ring - a completion ring
 * @head: next entry to fill; written by the device
 * @tail: next entry to poll; written by the poller
 * @entry: cqe + 1 entries, one always empty
 */
struct rvt_cq_ring {
	uint32_t head;
	uint32_t tail;
	struct rvt_wc entry[];
};

static inline size_t rvt_rwqe_size(uint32_t max_sge)
{
	return sizeof(struct rvt_rwqe) + (size_t)max_sge * sizeof(struct rvt_sge);
}

/* Bytes of a receive ring that holds @max_wr requests. */
static inline size_t rvt_rq_ring_size(uint32_t max_wr, uint32_t max_sge)
{
	return sizeof(struct rvt_rq_ring) + ((size_t)max_wr + 1) * rvt_rwqe_size(max_sge);
}

/* Bytes of a completion ring that holds @cqe completions. */
static inline size_t rvt_cq_ring_size(uint32_t cqe)
{
	return sizeof(struct rvt_cq_ring) + ((size_t)cqe + 1) * sizeof(struct rvt_wc);
}

#endif
