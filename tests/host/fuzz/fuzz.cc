// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A libFuzzer target: the bytes are a program of core.h calls by a hostile
 * user. He passes any numbers, writes anything into his rings at any time,
 * and does things in any order; what a shim checks (objects that exist, rings
 * of the right size) is kept. Nothing may crash, hang, leak, or touch memory
 * outside of what was registered.
 *
 *	rvt-fuzz CORPUS_DIRECTORY -max_total_time=60
 */
#include "world.h"

#include <cstdlib>

namespace
{

class Bytes
{
public:
	Bytes(const uint8_t *data, size_t size) : data_(data), left_(size) {}

	bool empty() const { return left_ == 0; }
	uint8_t u8()
	{
		if (!left_)
			return 0;
		left_--;
		return *data_++;
	}
	uint32_t below(uint32_t n) { return n ? u8() % n : 0; }
	template <class T>
	T any()
	{
		T value{};
		uint8_t bytes[sizeof(T)];

		for (uint8_t &b : bytes)
			b = u8();
		memcpy(&value, bytes, sizeof(T));
		return value;
	}
	/* Mostly a number around the interesting ones. */
	uint64_t number()
	{
		switch (below(6)) {
		case 0:
			return u8();
		case 1:
			return any<uint16_t>();
		case 2:
			return any<uint64_t>();
		case 3:
			return ~0ull - u8();
		case 4:
			return 1ull << below(64);
		default:
			return 0;
		}
	}

private:
	const uint8_t *data_;
	size_t left_;
};

class Fuzzer
{
public:
	Fuzzer(const uint8_t *data, size_t size) : in_(data, size), w_(in_.u8() & 1, 2), m_(w_.m)
	{
		pds_[0] = &w_.pd();
		pds_[1] = &w_.add_pd();
		pds_[2] = &w_.add_pd(*w_.devs[1], w_.user);
		for (int i = 0; i < 3; i++) {
			mrs_[i] =
				&w_.add_mr(5000, access_all, pds_[i], 0x10000000 + i * 0x10000 + 5);
			cqs_[i] = &w_.add_cq(8, pds_[i]->dev);
		}
		mrs_[3] = &w_.add_mr(100, RVT_ACCESS_REMOTE_READ, pds_[0], ~0ull - 5000);
		if (!w_.user)
			fast_ = &w_.add_fast_mr(8192, pds_[0]);
		/* A pair that works, so that short programs get far. */
		auto [a, b] = w_.pair(in_.u8() & 1 ? RVT_QPT_RC : RVT_QPT_UC);

		qps_[0] = a;
		qps_[1] = b;
	}

	void run()
	{
		for (unsigned int steps = 0; !in_.empty() && steps < 200; steps++)
			step();
		m_.advance(sim::second);
	}

private:
	Qp *qp()
	{
		Qp *qp = qps_[in_.below(max_qps)];

		return qp && qp->raw ? qp : nullptr;
	}
	Cq &cq() { return *cqs_[in_.below(3)]; }
	Srq *srq()
	{
		Srq *srq = srqs_[in_.below(2)];

		return srq && srq->raw ? srq : nullptr;
	}
	Mr &mr() { return *mrs_[in_.below(4)]; }

	rvt_sge sge()
	{
		rvt_sge s = any_sge();

		/* Key 0 is all of memory, to the kernel only. */
		if (!w_.user && !s.lkey)
			s.lkey = 1;
		return s;
	}
	rvt_sge any_sge()
	{
		Mr &region = mr();

		switch (in_.below(5)) {
		case 0:
			return {region.iova + in_.number(), in_.any<uint32_t>(), region.key};
		case 1:
			return {in_.number(), static_cast<uint32_t>(in_.number()),
				in_.any<uint32_t>()};
		case 2:
			return {region.iova, 0, in_.any<uint32_t>()};
		default:
			return {region.iova + in_.any<uint16_t>() % 5000, in_.u8(), region.key};
		}
	}
	std::vector<rvt_sge> sges()
	{
		std::vector<rvt_sge> list(in_.below(8));

		for (rvt_sge &s : list)
			s = sge();
		return list;
	}

	rvt_ah_attr address()
	{
		rvt_ah_attr ah = {};

		ah.dlid = in_.u8() & 1 ? w_.devs[in_.u8() & 1]->lid : in_.any<uint16_t>();
		ah.port_num = in_.u8() & 7 ? 1 : in_.u8();
		ah.sl = in_.u8() & 0xf;
		if (in_.u8() & 1) {
			ah.has_grh = true;
			ah.sgid_index = in_.u8() & 3 ? 0 : in_.u8();
			ah.flow_label = in_.any<uint32_t>();
			memcpy(ah.dgid, w_.devs[in_.u8() & 1]->gid, 16);
			if (in_.u8() & 1)
				memcpy(ah.dgid, mgid_, 16);
		}
		return ah;
	}

	void fill_attr(rvt_qp_attr &a)
	{
		a.cur_state = static_cast<rvt_qp_state>(in_.u8() & 7);
		if (in_.u8() & 3)
			return;
		a.path_mtu = in_.u8();
		a.path_mig_state = in_.u8() & 3;
		a.qkey = in_.any<uint32_t>();
		a.rq_psn = in_.any<uint32_t>();
		a.sq_psn = in_.any<uint32_t>();
		a.access_flags = in_.u8();
		a.pkey_index = in_.u8() & 0x1f;
		a.max_rd_atomic = in_.u8() & 0x1f;
		a.max_dest_rd_atomic = in_.u8() & 0x1f;
		a.min_rnr_timer = in_.u8() & 0x3f;
		a.timeout = in_.u8() & 0x3f;
		a.retry_cnt = in_.u8() & 0xf;
		a.rnr_retry = in_.u8() & 0xf;
		a.ah = address();
		a.alt_ah = address();
		a.alt_pkey_index = in_.u8();
		a.alt_timeout = in_.u8();
		a.en_sqd_async_notify = in_.u8() & 1;
		a.port_num = in_.u8() & 7 ? 1 : in_.u8();
	}

	void make_qp()
	{
		unsigned int i = in_.below(max_qps);
		Pd *pd = pds_[in_.below(3)];
		Cq *send = &cq(), *recv = &cq();
		Srq *shared = in_.u8() & 1 ? srq() : nullptr;
		static const rvt_qp_type types[] = {RVT_QPT_RC, RVT_QPT_UC, RVT_QPT_UD, RVT_QPT_GSI,
						    RVT_QPT_SMI};

		if (qps_[i] && qps_[i]->raw)
			return;
		/* ib_core sees to it that all are of one device. */
		if (send->world != &w_ || dev_of(send) != pd->dev || dev_of(recv) != pd->dev ||
		    (shared && shared->pd->dev != pd->dev))
			return;
		QpOpts opts = {.max_send_wr = in_.below(9),
			       .max_recv_wr = in_.below(9),
			       .max_send_sge = in_.below(7),
			       .max_recv_sge = in_.below(7),
			       .max_inline = in_.u8() & 1 ? in_.u8() * 3u : 0,
			       .sq_sig_all = (in_.u8() & 1) != 0,
			       .srq = shared,
			       .send_cq = send,
			       .recv_cq = recv};
		rvt_qp_type type = types[in_.below(w_.user ? 3 : 5)];

		(void)w_.try_qp(type, opts, pd, &qps_[i]);
	}
	Device *dev_of(Cq *cq)
	{
		for (int i = 0; i < 3; i++)
			if (cqs_[i] == cq)
				return pds_[i]->dev;
		return nullptr;
	}

	void post(Qp &qp)
	{
		std::vector<Wr> chain(1 + in_.below(4));
		size_t posted;
		static const uint32_t ops[] = {RVT_WR_SEND,
					       RVT_WR_RDMA_WRITE,
					       RVT_WR_RDMA_READ,
					       RVT_WR_SEND_WITH_IMM,
					       RVT_WR_RDMA_WRITE_WITH_IMM,
					       RVT_WR_ATOMIC_CMP_AND_SWP,
					       RVT_WR_ATOMIC_FETCH_AND_ADD,
					       RVT_WR_SEND_WITH_INV,
					       RVT_WR_LOCAL_INV,
					       RVT_WR_REG_MR};

		for (Wr &wr : chain) {
			wr.id = in_.u8();
			wr.op = in_.u8() & 15 ? ops[in_.below(10)] : in_.any<uint32_t>();
			wr.flags = in_.u8() & 7 ? in_.u8() & 7 : in_.any<uint32_t>();
			wr.sge = sges();
			Mr &far = mr();
			wr.raddr = in_.u8() & 1 ? far.iova + (in_.any<uint16_t>() & 0x1ff8)
						: in_.number();
			wr.rkey = in_.u8() & 7 ? far.key : in_.any<uint32_t>();
			wr.imm = in_.u8() & 1 && fast_ ? fast_->key : in_.any<uint32_t>();
			wr.compare_add = in_.number();
			wr.swap = in_.number();
			wr.flags &= ~static_cast<uint32_t>(RVT_SEND_INLINE);
			if ((in_.u8() & 7) == 0 && wr.sge.size() <= RVT_MAX_SGE) {
				uint64_t sum = 0;

				/* The shim copies at most what the queue pair takes. */
				for (rvt_sge &s : wr.sge)
					sum += s.length;
				if (sum <= rvt_core_qp_max_inline(qp.raw)) {
					wr.flags |= RVT_SEND_INLINE;
					wr.inline_data.assign(sum, 'i');
				}
			}
			if (wr.op == RVT_WR_REG_MR) {
				if (!fast_ || !fast_->raw)
					wr.op = RVT_WR_SEND;
				else
					wr.mr = fast_->raw;
				wr.key = fast_ ? fast_->key ^ (in_.u8() & 3) : 0;
				wr.access = in_.u8() & 15;
			} else if (wr.op == RVT_WR_LOCAL_INV && fast_ && in_.u8() & 1) {
				wr.rkey = fast_->key;
			}
			if (qp.type >= RVT_QPT_UD || qp.type <= RVT_QPT_GSI) {
				rvt_ah_attr ah = address();

				if (rvt_core_ah_check(qp.dev->raw, &ah, true))
					ah = rvt_ah_attr{.dlid = 1,
							 .sl = 0,
							 .src_path_bits = 0,
							 .static_rate = 0,
							 .port_num = 1,
							 .has_grh = false,
							 .sgid_index = 0,
							 .traffic_class = 0,
							 .hop_limit = 0,
							 .flow_label = 0,
							 .dgid = {}};
				wr.ah = ah;
				wr.ah_pd = pds_[in_.u8() & 7 ? 0 : 1]->raw;
				Qp *to = this->qp();

				wr.remote_qpn = to ? to->num : in_.any<uint32_t>();
				wr.qkey = in_.u8() & 1 ? 0x11111111 : in_.any<uint32_t>();
				wr.pkey_index = in_.u8() & 15;
				if (wr.op == RVT_WR_REG_MR)
					wr.op = RVT_WR_SEND;
			}
		}
		(void)qp.post(chain, &posted);
	}

	/* Write anything anywhere into a ring. */
	void poke(void *ring, size_t size)
	{
		if (!ring)
			return;
		auto *bytes = static_cast<uint8_t *>(ring);
		size_t at = in_.u8() & 1 ? in_.u8() & 7 : in_.any<uint16_t>() % size;
		unsigned int n = 1 + in_.below(8);

		for (; n && at < size; n--, at++)
			bytes[at] = in_.u8();
	}

	void step()
	{
		switch (in_.below(26)) {
		case 0:
			make_qp();
			break;
		case 1:
			if (Qp *q = qp()) {
				if (in_.u8() & 1)
					(void)rvt_core_mcast_detach(q->raw, mgid_, 0xc001);
				for (auto &at : attached_)
					if (at == q)
						return;
				q->destroy();
			}
			break;
		case 2:
		case 3:
			if (Qp *q = qp()) {
				uint32_t mask = in_.any<uint32_t>() & 0x1fffff;

				fill_attr(q->attr);
				q->attr.state = static_cast<rvt_qp_state>(in_.u8() & 7);
				(void)q->modify(mask);
			}
			break;
		case 4:
			if (Qp *q = qp())
				(void)q->to(static_cast<rvt_qp_state>(in_.below(7)));
			break;
		case 5:
			if (Qp *q = qp()) {
				if (Qp *to = qp())
					q->aim(*to);
				(void)q->to_init();
				(void)q->to_rtr();
				(void)q->to_rts();
			}
			break;
		case 6:
		case 7:
		case 8:
		case 9:
			if (Qp *q = qp())
				post(*q);
			break;
		case 10:
		case 11:
			if (Qp *q = qp())
				if (q->ring.ring || !w_.user)
					(void)q->recv(in_.u8(), sges());
			break;
		case 12:
			if (Qp *q = qp())
				if (q->ring.ring)
					poke(q->ring.ring,
					     rvt_rq_ring_size(q->ring.size - 1, q->ring.max_sge));
			break;
		case 13: {
			Cq &c = cq();

			poke(c.ring, c.ring ? rvt_cq_ring_size(c.cqe) : 0);
			break;
		}
		case 14: {
			Cq &c = cq();

			if (c.ring)
				c.ring->tail = c.ring->head;
			else
				while (c.poll_now())
					;
			break;
		}
		case 15:
			(void)cq().resize(1 + in_.u8());
			break;
		case 16:
			cq().arm(in_.u8() & 1, in_.u8() & 1);
			break;
		case 17: {
			unsigned int i = in_.below(2);

			if (!srqs_[i] || !srqs_[i]->raw)
				(void)w_.try_srq(1 + in_.below(8), 1 + in_.below(4), in_.below(8),
						 pds_[in_.below(3)], &srqs_[i]);
			break;
		}
		case 18:
			if (Srq *s = srq()) {
				uint32_t limit = in_.u8();

				switch (in_.below(4)) {
				case 0:
					(void)s->resize(1 + in_.below(12),
							in_.u8() & 1 ? &limit : nullptr);
					break;
				case 1:
					(void)rvt_core_srq_set_limit(s->raw, limit);
					break;
				case 2:
					if (s->ring.ring)
						poke(s->ring.ring,
						     rvt_rq_ring_size(s->ring.size - 1,
								      s->ring.max_sge));
					break;
				default:
					(void)s->recv(in_.u8(), sges());
					break;
				}
			}
			break;
		case 19: {
			Mr &region = mr();

			rvt_core_mr_unpublish(region.raw);
			if (in_.u8() & 1)
				(void)rvt_core_mr_publish(region.raw, in_.number(), in_.number(),
							  static_cast<uint32_t>(in_.below(4)),
							  in_.u8() & 3 ? 12 : in_.u8(), in_.u8());
			else
				(void)rvt_core_mr_publish(
					region.raw, region.iova, region.length,
					static_cast<uint32_t>(region.mem->pages()), 12, in_.u8());
			break;
		}
		case 20:
			m_.advance(in_.u8() * (1ull << in_.below(20)));
			break;
		case 21:
			if (Qp *q = qp()) {
				(void)q->query();
				(void)q->stat();
			}
			break;
		case 22:
			if (Qp *q = qp())
				if (q->type == RVT_QPT_UD &&
				    rvt_core_mcast_attach(q->raw, mgid_, 0xc001) == 0)
					attach(q);
			break;
		case 23:
			rvt_core_pkey_set(w_.devs[in_.u8() & 1]->raw, in_.u8() & 0x1f,
					  in_.any<uint16_t>());
			break;
		case 24: {
			uint8_t gid[16] = {0xfd, in_.u8()};

			rvt_core_gid_set(w_.devs[in_.u8() & 1]->raw, in_.u8() & 0x1f,
					 in_.u8() & 1 ? gid : nullptr);
			break;
		}
		case 25:
			m_.fail_allocation(1 + in_.below(6));
			break;
		}
	}

	void attach(Qp *q)
	{
		for (auto &at : attached_)
			if (at == q)
				return;
		attached_.push_back(q);
	}

public:
	~Fuzzer()
	{
		m_.fail_allocation(0);
		for (Qp *q : attached_)
			if (q->raw)
				(void)rvt_core_mcast_detach(q->raw, mgid_, 0xc001);
	}

private:
	static constexpr unsigned int max_qps = 6;

	Bytes in_;
	World w_;
	sim::Machine &m_;
	Pd *pds_[3];
	Mr *mrs_[4];
	Mr *fast_ = nullptr;
	Cq *cqs_[3];
	Srq *srqs_[2] = {};
	Qp *qps_[max_qps] = {};
	std::vector<Qp *> attached_;
	uint8_t mgid_[16] = {0xff, 0x12, 0, 7};
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Fuzzer fuzzer(data, size);

	fuzzer.run();
	return 0;
}
