/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * user.h - the least that a user of core.h needs, for programs with real
 * threads: a device, queues with mapped rings, regions, connected pairs.
 */
#ifndef RVT_NATIVE_USER_H
#define RVT_NATIVE_USER_H

#include <rvt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace native
{

inline void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s failed\n", what);
		abort();
	}
}

inline void *zeroed(size_t bytes, size_t align = 64)
{
	void *mem = nullptr;

	must(posix_memalign(&mem, align, (bytes + align - 1) / align * align) == 0, "memory");
	return memset(mem, 0, bytes);
}

struct Device {
	rvt_core_dev *raw;
	uint16_t lid = 0;
	rvt_core_pd *pd;

	Device()
	{
		static const rvt_core_ops ops = {
			.cq_comp = [](void *) {},
			.cq_event = [](void *, rvt_event) {},
			.qp_event = [](void *, rvt_event) {},
			.srq_event = [](void *, rvt_event) {},
		};
		static bool ready = rvt_core_init() == 0;

		must(ready, "rvt_core_init");
		raw = rvt_core_dev_create(&ops, 0x0200c0fffe000001, &lid);
		must(raw, "rvt_core_dev_create");
		pd = rvt_core_pd_create(raw, true);
		must(pd, "rvt_core_pd_create");
	}
	~Device()
	{
		rvt_core_pd_destroy(pd);
		must(rvt_core_dev_destroy(raw) == 0, "rvt_core_dev_destroy");
	}
	Device(const Device &) = delete;
};

struct Cq {
	rvt_core_cq *raw;
	rvt_cq_ring *ring;
	uint32_t cqe;

	Cq(Device &dev, uint32_t entries) : cqe(entries)
	{
		ring = static_cast<rvt_cq_ring *>(zeroed(rvt_cq_ring_size(entries)));
		must(rvt_core_cq_create(dev.raw, entries, ring, this, &raw) == 0, "cq_create");
	}
	~Cq()
	{
		rvt_core_cq_destroy(raw);
		free(ring);
	}
	Cq(const Cq &) = delete;

	bool poll(rvt_wc *wc)
	{
		const uint32_t tail = ring->tail;

		if (__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) == tail)
			return false;
		*wc = ring->entry[tail];
		__atomic_store_n(&ring->tail, tail >= cqe ? 0 : tail + 1, __ATOMIC_RELEASE);
		return true;
	}
};

/* How a region's pages lie in memory: one behind the other; the same but for the
 * last two, so that they are no single piece; none behind the one before. */
enum class Pages { in_a_row, nearly_in_a_row, scattered };

struct Mr {
	rvt_core_mr *raw;
	uint64_t iova;
	uint32_t key;

	static uint32_t place(Pages lie, uint32_t i, uint32_t n)
	{
		const bool swapped = lie == Pages::nearly_in_a_row && n > 1 && i >= n - 2;

		return lie == Pages::scattered ? n - 1 - i : swapped ? 2 * n - 3 - i : i;
	}

	/* The address is the memory's own. */
	Mr(Device &dev, void *mem, size_t bytes, Pages lie = Pages::in_a_row)
	{
		const uint32_t n = static_cast<uint32_t>((bytes + 4095) / 4096);
		const auto base = reinterpret_cast<uint64_t>(mem);

		must(rvt_core_mr_create(dev.pd, RVT_MR_MEM, n, &raw) == 0, "mr_create");
		for (uint32_t i = 0; i < n; i++)
			must(rvt_core_mr_set_page(raw, i, base + 4096ull * place(lie, i, n)) == 0,
			     "mr_set_page");
		iova = base;
		must(rvt_core_mr_publish(raw, iova, bytes, n, 12, 0xf) == 0, "mr_publish");
		key = rvt_core_mr_key(raw);
	}
	~Mr() { rvt_core_mr_destroy(raw); }
	Mr(const Mr &) = delete;
};

struct Qp {
	Device &dev;
	rvt_core_qp *raw;
	rvt_rq_ring *ring;
	uint32_t size, max_sge;
	uint32_t num;

	Qp(Device &device, rvt_qp_type type, Cq &send, Cq &recv, uint32_t wr = 64, uint32_t sge = 1)
		: dev(device), size(wr + 1), max_sge(sge)
	{
		ring = static_cast<rvt_rq_ring *>(zeroed(rvt_rq_ring_size(wr, sge)));
		rvt_qp_init init = {};

		init.type = type;
		init.cap = {wr, wr, sge, sge, 0};
		init.user = true;
		init.pd = dev.pd;
		init.send_cq = send.raw;
		init.recv_cq = recv.raw;
		init.rq_ring = ring;
		init.ctx = this;
		must(rvt_core_qp_create(dev.raw, &init, &raw) == 0, "qp_create");
		num = rvt_core_qp_num(raw);
	}
	~Qp()
	{
		rvt_core_qp_destroy(raw);
		free(ring);
	}
	Qp(const Qp &) = delete;

	/* A datagram queue pair, ready to send. */
	void open(uint32_t qkey)
	{
		rvt_qp_attr a = {};

		a.state = RVT_QPS_INIT;
		a.port_num = 1;
		a.qkey = qkey;
		must(rvt_core_qp_modify(raw, &a,
					RVT_QP_STATE | RVT_QP_PKEY_INDEX | RVT_QP_PORT |
						RVT_QP_QKEY) == 0,
		     "INIT");
		a.state = RVT_QPS_RTR;
		must(rvt_core_qp_modify(raw, &a, RVT_QP_STATE) == 0, "RTR");
		a.state = RVT_QPS_RTS;
		must(rvt_core_qp_modify(raw, &a, RVT_QP_STATE | RVT_QP_SQ_PSN) == 0, "RTS");
	}

	void connect(uint32_t to)
	{
		rvt_qp_attr a = {};

		a.state = RVT_QPS_INIT;
		a.port_num = 1;
		a.access_flags = 0xe;
		must(rvt_core_qp_modify(raw, &a,
					RVT_QP_STATE | RVT_QP_PKEY_INDEX | RVT_QP_PORT |
						RVT_QP_ACCESS_FLAGS) == 0,
		     "INIT");
		a.state = RVT_QPS_RTR;
		a.ah.dlid = dev.lid;
		a.ah.port_num = 1;
		a.path_mtu = 5;
		a.dest_qpn = to;
		a.max_dest_rd_atomic = 16;
		a.min_rnr_timer = 1;
		must(rvt_core_qp_modify(raw, &a,
					RVT_QP_STATE | RVT_QP_AV | RVT_QP_PATH_MTU |
						RVT_QP_DEST_QPN | RVT_QP_RQ_PSN |
						RVT_QP_MAX_DEST_RD_ATOMIC | RVT_QP_MIN_RNR_TIMER) ==
			     0,
		     "RTR");
		a.state = RVT_QPS_RTS;
		a.timeout = 14;
		a.retry_cnt = 7;
		a.rnr_retry = 7;
		a.max_rd_atomic = 16;
		must(rvt_core_qp_modify(raw, &a,
					RVT_QP_STATE | RVT_QP_TIMEOUT | RVT_QP_RETRY_CNT |
						RVT_QP_RNR_RETRY | RVT_QP_SQ_PSN |
						RVT_QP_MAX_QP_RD_ATOMIC) == 0,
		     "RTS");
	}

	bool recv(uint64_t wr_id, const rvt_sge &sge)
	{
		const uint32_t head = ring->head;
		const uint32_t next = head + 1 >= size ? 0 : head + 1;

		if (next == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE))
			return false;
		auto *e = reinterpret_cast<rvt_rwqe *>(ring->data + head * rvt_rwqe_size(max_sge));

		e->wr_id = wr_id;
		e->num_sge = 1;
		e->sge[0] = sge;
		__atomic_store_n(&ring->head, next, __ATOMIC_RELEASE);
		return true;
	}

	/* @fill writes what the opcode needs beyond the common part of the slot. */
	template <class Fill>
	int post_filled(uint32_t opcode, const rvt_sge *sge, uint32_t num_sge, Fill fill)
	{
		rvt_send_scope scope;

		if (int rc = rvt_core_send_begin(raw, &scope))
			return rc;
		rvt_swqe *slot = rvt_core_send_slot(raw);

		slot->wr_id = 1;
		slot->opcode = opcode;
		slot->flags = RVT_SEND_SIGNALED;
		slot->imm = 0;
		fill(*slot);
		int rc = rvt_post_one_wr(raw, sge, num_sge, nullptr);

		rvt_core_send_end(raw, &scope, rc == 0);
		return rc;
	}

	int post(uint32_t opcode, const rvt_sge *sge, uint32_t num_sge, uint64_t raddr = 0,
		 uint32_t rkey = 0)
	{
		return post_filled(opcode, sge, num_sge, [&](rvt_swqe &slot) {
			slot.rkey = rkey;
			slot.remote_addr = raddr;
			slot.atomic.compare_add = 1;
			slot.atomic.swap = 2;
		});
	}

	int post_datagram(const rvt_sge *sge, uint32_t num_sge, const rvt_ah_attr &ah, uint32_t to,
			  uint32_t qkey)
	{
		return post_filled(RVT_WR_SEND, sge, num_sge, [&](rvt_swqe &slot) {
			slot.ud.ah = &ah;
			slot.ud.ah_pd = dev.pd;
			slot.ud.remote_qpn = to;
			slot.ud.remote_qkey = qkey;
			slot.ud.pkey_index = 0;
		});
	}
};

/* Two queue pairs that talk to each other. */
struct Pair {
	Cq scq, rcq;
	Qp a, b;

	Pair(Device &dev, uint32_t wr = 64, uint32_t sge = 1)
		: scq(dev, 2 * wr + 2), rcq(dev, 2 * wr + 2), a(dev, RVT_QPT_RC, scq, rcq, wr, sge),
		  b(dev, RVT_QPT_RC, scq, rcq, wr, sge)
	{
		a.connect(b.num);
		b.connect(a.num);
	}
};

} // namespace native

#endif
