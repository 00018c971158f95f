// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Everything against everything: tasks post, poll, modify to every state,
 * take memory away, destroy, while timers expire and the peers do the same,
 * in an order that a seed picks. After each run: no completion lost, doubled,
 * out of order or from an earlier life; data whole; states legal; rings in
 * range; everything freed. The machine itself watches the lock rules, the
 * deadlocks and the use of freed memory.
 *
 *	RVT_SEEDS=n	so many schedules for each test
 *	RVT_SEED=n	this one only
 */
#include "util.h"

#include <map>
#include <set>

namespace
{

struct Plan {
	const char *name;
	rvt_qp_type type;
	bool user;
	bool srq;
	bool two_devices;
	bool removal; /* the second device goes while the first one talks to it */
};

constexpr uint32_t slot_bytes = 64;

/* One queue pair with what is known of it. */
struct Player {
	Qp *qp = nullptr;
	Player *peer = nullptr;
	bool dead = false;
	int users = 0;
	/* Posted: id -> signalled. */
	std::map<uint64_t, bool> sends;
	std::set<uint64_t> recvs;
	std::set<uint64_t> sends_done, recvs_done;
	uint64_t next_send = 0, next_recv = 0;
	uint64_t last_send_done = 0, last_recv_done = 0;
	/* Nothing with a number below these may complete any more. */
	uint64_t stale_sends = 0, stale_recvs = 0;
	bool was_reset = false;
	Mr *send_mem = nullptr, *recv_mem = nullptr;
};

class Explorer
{
public:
	Explorer(const Plan &plan, uint64_t seed)
		: plan_(plan), w_(plan.user, plan.two_devices ? 2 : 1, seed), m_(w_.m)
	{
		m_.set_replay_hint("RVT_SEED=" + std::to_string(seed) +
				   " tests/host/run --filter Explore." + plan.name);
	}

	void run()
	{
		set_up();
		unsigned int tasks = 3 + rnd(3);

		for (unsigned int i = 0; i < tasks; i++)
			m_.spawn("task" + std::to_string(i), [this] { play(); });
		if (plan_.removal)
			m_.spawn("remover", [this] { remove_device(); });
		m_.run();
		finish();
	}
	uint64_t switches() const { return m_.switches(); }

private:
	uint64_t rnd(uint64_t n) { return m_.choose(n); }
	[[noreturn]] void fail(const Player &p, const char *what, uint64_t id)
	{
		m_.fail("QP %u: %s: wr_id %llu", p.qp->num, what,
			static_cast<unsigned long long>(id));
	}

	void set_up()
	{
		Pd &pd0 = w_.pd();
		Pd &pd1 = plan_.two_devices ? w_.add_pd(*w_.devs[1], plan_.user) : pd0;
		Srq *srq = plan_.srq ? &w_.add_srq(8, 2, static_cast<uint32_t>(rnd(4)), &pd1)
				     : nullptr;
		/* Sometimes so small that they run over. */
		Cq *cq0 = &w_.add_cq(rnd(8) ? 200 : 3, pd0.dev);
		Cq *cq1 = &w_.add_cq(rnd(8) ? 200 : 3, pd1.dev);

		cqs_ = {cq0, cq1};
		for (int i = 0; i < 4; i++) {
			Pd &pd = i % 2 ? pd1 : pd0;
			Cq *cq = i % 2 ? cq1 : cq0;
			Player &p = players_[i];

			p.peer = &players_[i ^ 1];
			p.qp = &w_.add_qp(plan_.type,
					  {.max_send_wr = 6,
					   .max_recv_wr = 6,
					   .max_send_sge = 2,
					   .max_recv_sge = 2,
					   .srq = i % 2 ? srq : nullptr,
					   .send_cq = cq,
					   .recv_cq = cq},
					  &pd);
			p.send_mem = &w_.add_mr(1024, access_all, &pd);
			p.recv_mem = &w_.add_mr(4096, access_all, &pd);
			/* Under the producer lock: before it can complete. */
			p.qp->number = [&p](const Wr &wr) {
				p.sends[++p.next_send] = wr.flags & RVT_SEND_SIGNALED;
				return p.next_send;
			};
			p.qp->refused = [&p](uint64_t id) { p.sends.erase(id); };
			rvt_qp_attr &a = p.qp->attr;

			a.timeout = 3;
			a.retry_cnt = static_cast<uint8_t>(rnd(3));
			a.rnr_retry = static_cast<uint8_t>(rnd(2) ? 7 : rnd(3));
			a.min_rnr_timer = static_cast<uint8_t>(1 + rnd(3));
			a.en_sqd_async_notify = rnd(2);
		}
		srq_ = srq;
		if (!plan_.user)
			fast_ = &w_.add_fast_mr(4096, &pd0);
		for (Player &p : players_) {
			p.qp->aim(*p.peer->qp);
			if (rnd(8))
				to_rts(p);
		}
	}

	void to_rts(Player &p)
	{
		/* Sometimes what the peer sends next is known, sometimes not. */
		if (use(*p.peer)) {
			uint32_t psn = p.peer->qp->query().sq_psn;

			p.qp->attr.rq_psn = psn ? psn : p.peer->qp->attr.sq_psn;
			p.peer->users--;
		}
		if (p.qp->to_init() == 0 && p.qp->to_rtr() == 0)
			(void)p.qp->to_rts();
	}

	/* --- what tasks do ---------------------------------------------------------- */

	bool use(Player &p)
	{
		if (p.dead)
			return false;
		p.users++;
		return true;
	}

	void play()
	{
		unsigned int steps = 3 + static_cast<unsigned int>(rnd(8));

		while (steps--) {
			Player &p = players_[rnd(4)];

			if (!use(p))
				continue;
			bool end = step(p);
			p.users--;
			if (end && !p.dead)
				destroy(p);
			m_.maybe_switch();
		}
	}

	void destroy(Player &p)
	{
		p.dead = true;
		while (p.users)
			m_.sleep(1000);
		uint64_t sends = p.next_send, recvs = p.next_recv;

		p.qp->destroy();
		no_more_of(p, sends + 1, recvs + 1);
	}

	void remove_device()
	{
		for (uint64_t i = rnd(4); i; i--)
			m_.sleep(rnd(100 * sim::us));
		for (Player &p : players_)
			if (p.qp->dev == w_.devs[1].get()) {
				if (!p.dead)
					destroy(p);
				while (p.qp->raw)
					m_.sleep(1000);
			}
		/* Nobody polls or resizes its queue, and nobody will. */
		while (resizing_[1] || polling_[1])
			m_.sleep(1000);
		resizing_[1] = polling_[1] = true;
		if (srq_) {
			Srq *srq = srq_;

			srq_ = nullptr;
			srq->destroy();
		}
		cqs_[1]->destroy();
		for (auto &mr : w_.mrs)
			if (mr->raw && mr->owner->dev == w_.devs[1].get())
				mr->destroy();
		for (auto &pd : w_.pds)
			if (pd->dev == w_.devs[1].get()) {
				rvt_core_pd_destroy(pd->raw);
				pd->raw = nullptr;
			}
		if (w_.devs[1]->destroy() != 0)
			m_.fail("something is left in the device");
	}

	/* True: destroy the queue pair. */
	bool step(Player &p)
	{
		switch (rnd(28)) {
		case 0:
			return true;
		case 1:
			reset(p);
			break;
		case 2:
			(void)p.qp->to(RVT_QPS_ERR);
			break;
		case 3:
			(void)p.qp->to(RVT_QPS_SQD, rnd(2) ? RVT_QP_EN_SQD_ASYNC_NOTIFY : 0);
			break;
		case 4:
			(void)p.qp->to(RVT_QPS_RTS);
			break;
		case 5:
			reset(p);
			to_rts(p);
			break;
		case 6:
			(void)p.qp->to_init();
			break;
		case 7:
			(void)p.qp->to_rtr();
			break;
		case 8:
			(void)p.qp->to_rts();
			break;
		case 9:
			check_view(p);
			break;
		case 10:
			replace_memory(rnd(2) ? p.send_mem : p.recv_mem, p);
			break;
		case 11:
			m_.sleep(rnd(200 * sim::us));
			break;
		case 12:
			poll(rnd(2));
			break;
		case 13: {
			/* The one of the queue pair, which keeps it alive. */
			p.qp->scq->arm(rnd(2), rnd(2));
			break;
		}
		case 14:
			resize(*p.qp->scq);
			break;
		case 15:
			if (p.qp->srq && rnd(2))
				resize_srq(*p.qp->srq);
			else if (p.qp->srq)
				(void)rvt_core_srq_set_limit(p.qp->srq->raw,
							     static_cast<uint32_t>(rnd(8)));
			break;
		case 16:
			rvt_core_qp_for_each(
				p.qp->dev->raw,
				[](rvt_core_qp *qp, void *) {
					rvt_qp_stat stat;

					rvt_core_qp_stat(qp, &stat);
				},
				nullptr);
			break;
		case 17:
			local(p);
			break;
		case 18:
		case 19:
		case 20:
			recv(p);
			break;
		default:
			post(p);
			break;
		}
		return false;
	}

	void reset(Player &p)
	{
		uint64_t sends = p.next_send, recvs = p.next_recv;

		p.was_reset = true;
		if (p.qp->to(RVT_QPS_RESET) != 0)
			m_.fail("RESET was refused");
		no_more_of(p, sends + 1, p.qp->srq ? 0 : recvs + 1);
	}

	/* From now on nothing with a lower number may come. */
	void no_more_of(Player &p, uint64_t sends, uint64_t recvs)
	{
		if (!plan_.user || resizing_[0] || resizing_[1] || polling_[0] || polling_[1])
			return;
		/* Without a switch: what is in the rings now has come in time. */
		for (unsigned int i = 0; i < 2; i++)
			poll(i);
		p.stale_sends = std::max(p.stale_sends, sends);
		p.stale_recvs = std::max(p.stale_recvs, recvs);
	}

	void recv(Player &p)
	{
		uint64_t id = ++p.next_recv;
		uint64_t at = id % (4096 / 128) * 128;
		std::vector<rvt_sge> sge;
		Mr &mr = *p.recv_mem;

		if (!mr.raw)
			return;
		if (plan_.type == RVT_QPT_UD)
			sge = {mr.sge(at, 40), mr.sge(at + 40, slot_bytes)};
		else
			sge = {mr.sge(at, 30), mr.sge(at + 30, slot_bytes - 30)};
		p.recvs.insert(id);
		int rc;

		if (p.qp->srq && plan_.user && srq_resizing_)
			rc = einval;
		else if (p.qp->srq)
			rc = p.qp->srq->recv(id, sge);
		else if (!plan_.user && p.qp->state() == RVT_QPS_RESET)
			rc = einval;
		else
			rc = p.qp->recv(id, sge);
		if (rc)
			p.recvs.erase(id);
		/* A user may write into the ring of a queue pair in RESET. */
	}

	void post(Player &p)
	{
		Player &peer = *p.peer;
		Mr &from = *p.send_mem;
		std::vector<Wr> chain;
		unsigned int n = 1 + static_cast<unsigned int>(rnd(3));

		if (!from.raw)
			return;
		while (n--) {
			uint32_t flags = rnd(4) ? RVT_SEND_SIGNALED : 0;
			uint32_t len = static_cast<uint32_t>(rnd(slot_bytes + (rnd(16) ? 1 : 20)));
			Mr &far = *peer.recv_mem;
			Wr wr;

			if (rnd(4) == 0)
				flags |= RVT_SEND_SOLICITED;
			switch (plan_.type == RVT_QPT_UD ? 0 : rnd(8)) {
			case 5:
				wr = wr_write(0, {from.sge(512, 8)}, far.iova + 4032, far.key,
					      flags);
				break;
			case 6:
				wr = plan_.type == RVT_QPT_RC
					     ? wr_read(0, {from.sge(520, 8)}, far.iova + 4040,
						       far.key, flags)
					     : wr_write(0, {}, 0, 0, flags);
				break;
			case 7:
				wr = plan_.type == RVT_QPT_RC ? wr_faa(0, from.sge(528, 8),
								       far.iova + 4048, far.key, 1)
							      : wr_write(0, {}, 0, 0, flags);
				wr.flags = flags;
				break;
			default:
				from.write(0, std::string(slot_bytes + 20, 'd'));
				wr = wr_send(
					0, {from.sge(0, len / 2), from.sge(len / 2, len - len / 2)},
					flags);
				break;
			}
			if (plan_.type == RVT_QPT_UD) {
				wr.ah = rvt_ah_attr{};
				wr.ah->port_num = 1;
				wr.ah->dlid = peer.qp->dev->lid;
				wr.remote_qpn = peer.qp->num;
				wr.qkey = peer.qp->attr.qkey;
			}
			chain.push_back(std::move(wr));
		}
		size_t posted;

		(void)p.qp->post(chain, &posted);
	}

	void local(Player &p)
	{
		if (plan_.user || plan_.type == RVT_QPT_UD || p.qp->pd != &w_.pd())
			return;
		(void)p.qp->post(rnd(2) ? wr_local_inv(0, fast_->key)
					: wr_reg(0, fast_->raw, fast_->key, access_all));
	}

	/* Take the memory away and put other memory in its place. */
	void replace_memory(Mr *&mr, Player &p)
	{
		Mr *old = mr;

		if (!old->raw)
			return;
		rvt_core_mr *raw = old->raw;

		old->raw = nullptr;
		old->mem->fill('d');
		rvt_core_mr_destroy(raw);
		/* Now no byte of it changes any more. */
		old->mem->fill('x');
		gone_.push_back(old);
		if (rnd(2))
			mr = &w_.add_mr(old->length, access_all, p.qp->pd);
	}

	void resize(Cq &cq)
	{
		if (resizing_[&cq == cqs_[1]])
			return;
		resizing_[&cq == cqs_[1]] = true;
		(void)cq.resize(static_cast<uint32_t>(1 + rnd(200)));
		resizing_[&cq == cqs_[1]] = false;
	}

	void resize_srq(Srq &srq)
	{
		/* A provider posts nothing meanwhile; the kernel's posters need no care. */
		if (srq_resizing_)
			return;
		srq_resizing_ = true;
		(void)srq.resize(static_cast<uint32_t>(1 + rnd(20)));
		srq_resizing_ = false;
	}

	/* --- what must hold -------------------------------------------------------------- */

	void poll(unsigned int i)
	{
		if (resizing_[i] || polling_[i] || !cqs_[i]->raw)
			return;
		polling_[i] = true;
		while (auto wc = cqs_[i]->poll_now())
			note(*wc, *cqs_[i]);
		polling_[i] = false;
	}

	void note(const rvt_wc &wc, const Cq &cq)
	{
		for (Player &p : players_) {
			if (p.qp->num != wc.qp_num || p.qp->scq != &cq)
				continue;
			if (wc.opcode & RVT_WC_RECV)
				note_recv(p, wc);
			else
				note_send(p, wc);
			return;
		}
		m_.fail("a completion of queue pair %u, which nobody made", wc.qp_num);
	}

	void note_send(Player &p, const rvt_wc &wc)
	{
		if (!p.sends.count(wc.wr_id))
			fail(p, "a send completed that was not posted", wc.wr_id);
		if (!p.sends_done.insert(wc.wr_id).second)
			fail(p, "a send completed twice", wc.wr_id);
		if (wc.wr_id < p.stale_sends)
			fail(p, "a send of an earlier life completed", wc.wr_id);
		if (wc.wr_id < p.last_send_done)
			fail(p, "sends completed out of order", wc.wr_id);
		if (wc.status == RVT_WC_SUCCESS && !p.sends[wc.wr_id])
			fail(p, "an unsignalled send completed with success", wc.wr_id);
		p.last_send_done = wc.wr_id;
	}

	void note_recv(Player &p, const rvt_wc &wc)
	{
		/* With an SRQ any of its queue pairs may have posted it. */
		Player *owner = nullptr;

		for (Player &other : players_)
			if (p.qp->srq ? other.qp->srq == p.qp->srq && other.recvs.count(wc.wr_id)
				      : &other == &p)
				owner = &other;
		if (!owner || !owner->recvs.count(wc.wr_id))
			fail(p, "a receive completed that was not posted", wc.wr_id);
		if (p.qp->srq) {
			if (wc.status == RVT_WC_SUCCESS && wc.byte_len > slot_bytes + 40)
				fail(p, "a receive is longer than its buffer", wc.byte_len);
			srq_done_++;
			return;
		}
		if (!p.recvs_done.insert(wc.wr_id).second)
			fail(p, "a receive completed twice", wc.wr_id);
		if (wc.wr_id < p.stale_recvs)
			fail(p, "a receive of an earlier life completed", wc.wr_id);
		/* The kernel's posters number theirs before they are in order. */
		if (plan_.user && wc.wr_id < p.last_recv_done)
			fail(p, "receives completed out of order", wc.wr_id);
		p.last_recv_done = wc.wr_id;
		if (wc.status == RVT_WC_SUCCESS) {
			uint32_t head = plan_.type == RVT_QPT_UD ? 40 : 0;

			if (wc.byte_len > slot_bytes + head)
				fail(p, "a receive is longer than its buffer", wc.byte_len);
			if (wc.src_qp != p.peer->qp->num)
				fail(p, "a message from a stranger", wc.src_qp);
		}
	}

	void check_view(Player &p)
	{
		rvt_qp_attr a = p.qp->query();
		rvt_qp_stat s = p.qp->stat();

		if (a.state > RVT_QPS_ERR || a.state != a.cur_state)
			m_.fail("state %u, current state %u", a.state, a.cur_state);
		if (a.sq_psn > 0xffffff || a.rq_psn > 0xffffff)
			m_.fail("a PSN has more than 24 bits");
		if (s.sq_head >= s.sq_size || s.sq_last >= s.sq_size || s.sq_cur >= s.sq_size)
			m_.fail("send ring positions %u %u %u of %u", s.sq_head, s.sq_last,
				s.sq_cur, s.sq_size);
		if (a.retry_cnt > 7 || a.rnr_retry > 7)
			m_.fail("retry counters %u %u", a.retry_cnt, a.rnr_retry);
	}

	void finish()
	{
		for (Player &p : players_)
			if (!p.dead) {
				check_view(p);
				if (p.qp->state() != RVT_QPS_RESET)
					w_.check(p.qp->to(RVT_QPS_ERR) == 0, "ERR was refused");
			}
		m_.advance(30 * sim::ms);
		for (unsigned int i = 0; i < 2; i++)
			poll(i);
		for (Player &p : players_) {
			bool overrun = !p.qp->scq->events.empty() || !p.qp->rcq->events.empty();

			for (Cq *cq : {p.qp->scq, p.qp->rcq})
				if (cq->events.size() > 1)
					m_.fail("CQ_ERR was raised %zu times", cq->events.size());
			if (p.was_reset || p.dead || overrun)
				continue;
			for (auto [id, signalled] : p.sends)
				if (signalled && !p.sends_done.count(id))
					fail(p, "a send never completed", id);
			if (p.qp->srq || p.qp->state() == RVT_QPS_RESET)
				continue;
			for (uint64_t id : p.recvs)
				if (!p.recvs_done.count(id))
					fail(p, "a receive never completed", id);
			if (p.qp->count(RVT_EVENT_QP_LAST_WQE_REACHED))
				m_.fail("LAST_WQE_REACHED without an SRQ");
		}
		for (Player &p : players_)
			if (p.qp->srq && !p.dead && !p.was_reset && p.qp->state() == RVT_QPS_ERR &&
			    p.qp->count(RVT_EVENT_QP_LAST_WQE_REACHED) != 1)
				m_.fail("LAST_WQE_REACHED %zu times",
					p.qp->count(RVT_EVENT_QP_LAST_WQE_REACHED));
		for (Mr *mr : gone_)
			for (size_t i = 0; i < mr->mem->size(); i++)
				if (*mr->mem->at(i) != 'x')
					m_.fail("memory changed after it was taken away");
	}

	Plan plan_;
	World w_;
	sim::Machine &m_;
	Player players_[4];
	std::vector<Cq *> cqs_;
	bool resizing_[2] = {};
	bool polling_[2] = {};
	Srq *srq_ = nullptr;
	bool srq_resizing_ = false;
	Mr *fast_ = nullptr;
	std::vector<Mr *> gone_;
	uint64_t srq_done_ = 0;
};

const Plan plans[] = {
	{"RcUser", RVT_QPT_RC, true, false, false, false},
	{"RcUserSrq", RVT_QPT_RC, true, true, false, false},
	{"RcUserRemoval", RVT_QPT_RC, true, true, true, true},
	{"RcKernel", RVT_QPT_RC, false, false, false, false},
	{"RcKernelTwoDevices", RVT_QPT_RC, false, true, true, false},
	{"RcKernelRemoval", RVT_QPT_RC, false, true, true, true},
	{"UcUser", RVT_QPT_UC, true, false, true, false},
	{"UcKernel", RVT_QPT_UC, false, false, false, false},
	{"UdUser", RVT_QPT_UD, true, false, false, false},
	{"UdKernelSrqRemoval", RVT_QPT_UD, false, true, true, true},
};

uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, nullptr, 0) : otherwise;
}

class Explore : public testing::TestWithParam<Plan>
{
};
INSTANTIATE_TEST_SUITE_P(Schedules, Explore, testing::ValuesIn(plans),
			 [](const auto &info) { return std::string(info.param.name); });

TEST_P(Explore, AllAgainstAll)
{
	uint64_t one = number_from("RVT_SEED", 0);
	uint64_t seeds = number_from("RVT_SEEDS", getenv("RVT_NIGHTLY") ? 65000 : 1500);
	uint64_t first = one ? one : number_from("RVT_SEED_BASE", 0) + 1;
	uint64_t switches = 0;

	if (one)
		seeds = 1;
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		Explorer explorer(GetParam(), seed);

		explorer.run();
		switches += explorer.switches();
	}
	printf("%llu schedules, %llu switches\n", static_cast<unsigned long long>(seeds),
	       static_cast<unsigned long long>(switches));
}

/* A region of adjacent pages. */
rvt_core_mr *in_one_piece(World &w, Pd &pd, void *mem, size_t bytes, uint64_t iova)
{
	const auto n = static_cast<uint32_t>((bytes + 4095) / 4096);
	rvt_core_mr *mr = nullptr;

	w.check(rvt_core_mr_create(pd.raw, RVT_MR_MEM, n, &mr) == 0, "no region");
	for (uint32_t i = 0; i < n; i++)
		w.check(rvt_core_mr_set_page(mr, i,
					     reinterpret_cast<uint64_t>(mem) + 4096ull * i) == 0,
			"page not set");
	w.check(rvt_core_mr_publish(mr, iova, bytes, n, 12, access_all) == 0,
		"region not published");
	return mr;
}

/*
 * Messages so long that other tasks run while they are copied: memory taken
 * away, queue pairs reset or destroyed under the copy.
 */
TEST(ExploreCopies, Case121_NoByteMovesAfterwards)
{
	const uint32_t bytes = 700 * 1024;
	void *from, *to;

	ASSERT_EQ(posix_memalign(&from, 4096, bytes), 0);
	ASSERT_EQ(posix_memalign(&to, 4096, bytes), 0);
	uint64_t seeds = number_from("RVT_SEEDS", getenv("RVT_NIGHTLY") ? 5000 : 300);
	uint64_t first = number_from("RVT_SEED_BASE", 0) + 1;

	if (uint64_t one = number_from("RVT_SEED", 0)) {
		first = one;
		seeds = 1;
	}
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		World w(seed % 2, 1, seed);
		/* Two: the end of a region takes each r_lock of its own domain's. */
		Pd *pd[2] = {&w.pd(), &w.add_pd()};
		auto [a, b] = w.pair(RVT_QPT_RC, {}, {.pd = pd[1]});
		rvt_core_mr *mr[2];
		uint64_t iova[2] = {0x10000000, 0x20000000};
		void *mem[2] = {from, to};
		uint64_t what = w.m.choose(6);

		w.m.set_replay_hint("RVT_SEED=" + std::to_string(seed) +
				    " tests/host/run --filter ExploreCopies");
		for (int i = 0; i < 2; i++)
			mr[i] = in_one_piece(w, *pd[i], mem[i], bytes, iova[i]);
		memset(from, 'f', bytes);
		memset(to, 't', bytes);
		rvt_sge out = {iova[0], bytes, rvt_core_mr_key(mr[0])};
		rvt_sge in = {iova[1], bytes, rvt_core_mr_key(mr[1])};

		ASSERT_EQ(b->recv(1, {in}), 0);
		w.m.spawn("sender", [&, a = a] {
			(void)a->post(w.m.choose(2) ? wr_send(2, {out})
						    : wr_write(2, {out}, in.addr, in.lkey));
		});
		w.m.spawn("breaker", [&, a = a, b = b] {
			for (uint64_t i = w.m.choose(20); i; i--)
				w.m.maybe_switch();
			switch (what) {
			case 0:
			case 1:
				rvt_core_mr_destroy(mr[what]);
				mr[what] = nullptr;
				memset(mem[what], 'x', bytes);
				break;
			case 2:
				(void)a->to(RVT_QPS_RESET);
				break;
			case 3:
				(void)b->to(RVT_QPS_RESET);
				memset(to, 'x', bytes);
				break;
			case 4:
				(void)b->to(RVT_QPS_ERR);
				break;
			default:
				(void)a->to(RVT_QPS_ERR);
				break;
			}
		});
		w.m.run();
		w.m.advance(100 * sim::ms);
		auto all = [](const void *p, char c) {
			auto *s = static_cast<const char *>(p);

			return s[0] == c && !memcmp(s, s + 1, bytes - 1);
		};
		if (what == 0)
			w.check(!memchr(to, 'x', bytes), "bytes read after the region was gone");
		if (what == 1)
			w.check(all(to, 'x'), "bytes written after the region was gone");
		if (what == 3)
			w.check(all(to, 'x'), "bytes arrived after RESET");
		for (Cq *cq : {a->scq, b->rcq}) {
			auto wc = cq->poll();

			w.check(!wc || !cq->poll(), "two completions");
			/* A success says that all bytes are there. */
			if (wc && wc->status == RVT_WC_SUCCESS && what != 0 && what != 1 &&
			    what != 3)
				w.check(all(to, 'f'), "SUCCESS without all the bytes");
		}
		for (rvt_core_mr *one : mr)
			if (one)
				rvt_core_mr_destroy(one);
	}
	free(from);
	free(to);
}

/* Who sees one of the last 8 bytes of a long write sees all before it. */
TEST(ExploreCopies, TheLastBytesComeLast)
{
	constexpr uint32_t bytes = 700 * 1024 + 3;
	constexpr size_t room = 704 * 1024;
	auto *from = static_cast<char *>(aligned_alloc(4096, room));
	auto *to = static_cast<char *>(aligned_alloc(4096, room));
	unsigned int under_way = 0;

	memset(from, 'f', bytes);
	for (uint64_t seed = 1; seed <= 30; seed++) {
		World w(true, 1, seed);
		auto [a, b] = w.pair(RVT_QPT_RC);
		rvt_core_mr *mr[2] = {in_one_piece(w, w.pd(), from, room, 0x10000000),
				      in_one_piece(w, w.pd(), to, room, 0x20000000)};
		auto arrived = [&](uint32_t n) {
			return to[0] == 'f' && !memcmp(to, to + 1, n - 1);
		};

		memset(to, 't', bytes);
		w.m.spawn("sender", [&, a = a] {
			(void)a->post(wr_write(1, {{0x10000000, bytes, rvt_core_mr_key(mr[0])}},
					       0x20000000, rvt_core_mr_key(mr[1])));
		});
		w.m.spawn("reader", [&] {
			for (int looks = 0; looks < 40; looks++) {
				for (uint32_t n = bytes; n > bytes - 8; n--)
					w.check(to[n - 1] == 't' || arrived(n),
						"a late byte before an early one");
				under_way += to[0] == 'f' && to[bytes - 1] == 't';
				w.m.maybe_switch();
			}
		});
		w.m.run();
		w.check(arrived(bytes), "bytes are missing");
		for (rvt_core_mr *one : mr)
			rvt_core_mr_destroy(one);
	}
	EXPECT_GT(under_way, 0u) << "nobody looked during a copy";
	free(from);
	free(to);
}

/* Several requesters add to one word: not one addition is lost. */
TEST(ExploreAtomics, Case135_TheSumIsWhole)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		World w(seed % 2, 1, seed);
		Mr &mr = w.add_mr(64);
		Mr &results = w.add_mr(1024);
		std::vector<std::pair<Qp *, Qp *>> pairs;
		std::set<uint64_t> seen;

		for (int i = 0; i < 3; i++)
			pairs.push_back(w.pair(RVT_QPT_RC));
		for (unsigned int t = 0; t < 3; t++)
			w.m.spawn("adder", [&, t] {
				for (unsigned int i = 0; i < 5; i++)
					EXPECT_EQ(pairs[t].first->post(
							  wr_faa(i, results.sge((t * 5 + i) * 8, 8),
								 mr.iova, mr.key, 1)),
						  0);
			});
		w.m.run();
		EXPECT_EQ(mr.word(0), 15u);
		for (unsigned int i = 0; i < 15; i++)
			EXPECT_TRUE(seen.insert(results.word(i * 8)).second);
	}
}

} // namespace
