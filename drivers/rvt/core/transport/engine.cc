// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The send engine.
#include "transport/engine.h"

#include "cq/cq.h"
#include "device.h"
#include "mr/bind.h"
#include "outbox.h"
#include "pd.h"

namespace rvt
{

namespace
{

// How long one call may hold a CPU; the rest goes to the work queue.
class Budget
{
public:
	void spend(uint32_t length)
	{
		requests_--;
		bytes_ -= length;
	}
	bool spent() const { return requests_ <= 0 || bytes_ <= 0; }

private:
	int requests_ = 128;
	int64_t bytes_ = 1 << 20;
};

enum class Next : uint8_t { idle, flush, execute };

Next pick(Qp &qp) RVT_REQUIRES(qp.s_lock)
{
	const StateInfo &allows = state_info(qp.state());
	const uint32_t last = qp.s_last.load(std::memory_order_relaxed);

	if (last == qp.s_head.load(std::memory_order_acquire))
		return Next::idle;
	// What was queued when SQE began is flushed even if the consumer has
	// brought the queue pair back to RTS meanwhile.
	if (qp.s_flags & s_flush_some && last == qp.s_flush_end)
		qp.s_flags &= ~s_flush_some;
	if (allows.flush_send || qp.s_flags & s_flush_some)
		return Next::flush;
	const bool in_progress = qp.s_cur != last;
	if (allows.start_send || (allows.continue_send && in_progress))
		return Next::execute;
	return Next::idle;
}

// Enter the engine, unless another thread is in it or it has to wait.
bool claim(Qp &qp) RVT_REQUIRES(qp.s_lock)
{
	if (qp.s_flags & (s_busy | s_waiting))
		return false;
	qp.s_flags |= s_busy;
	return true;
}

void leave(Qp &qp) RVT_REQUIRES(qp.s_lock)
{
	const bool wake = qp.s_flags & s_wanted_idle;

	qp.s_flags &= ~(s_busy | s_wanted_idle);
	if (wake)
		rvt_os_wake(&qp.dev.waitq);
}

[[gnu::noinline]] void count_failure(Qp &qp, rvt_wc_status status)
{
	switch (status) {
	case RVT_WC_WR_FLUSH_ERR:
		qp.count_shared(RVT_CNT_FLUSHED);
		break;
	case RVT_WC_RETRY_EXC_ERR:
	case RVT_WC_RNR_RETRY_EXC_ERR:
		qp.count(RVT_CNT_ERR_RETRY);
		break;
	case RVT_WC_REM_INV_REQ_ERR:
	case RVT_WC_REM_ACCESS_ERR:
	case RVT_WC_REM_OP_ERR:
		qp.count(RVT_CNT_ERR_REMOTE);
		break;
	default:
		qp.count(RVT_CNT_ERR_LOCAL);
		break;
	}
}

// Complete the oldest request. Its slot is free before its completion is
// seen, so whoever polls it may post. False: the queue is overrun.
[[nodiscard]] bool finish(Qp &qp, rvt_wc_status status, Outbox &out) RVT_REQUIRES(qp.s_lock)
{
	const uint32_t last = qp.s_last.load(std::memory_order_relaxed);
	const uint32_t next = ring_next(last, qp.sq.size);
	const rvt_swqe &wqe = qp.swqe(last);
	const bool success = status == RVT_WC_SUCCESS;
	const bool tell = qp.sig_all || wqe.flags & RVT_SEND_SIGNALED || !success;
	rvt_wc wc{};

	wc.wr_id = wqe.wr_id;
	wc.status = status;
	wc.opcode = wr_info(wqe.opcode).wc;
	wc.byte_len = wqe.length;
	wc.qp_num = qp.qpn.value();
	if (success) [[likely]]
		qp.count(RVT_CNT_SENDS);
	else
		count_failure(qp, status);

	// Progress: all retries are available again.
	qp.s_retry = qp.attr.retry_cnt;
	qp.s_rnr_retry = qp.attr.rnr_retry;
	if (qp.s_cur == last)
		qp.s_cur = next;
	qp.s_last.store(next, std::memory_order_release);
	if (!tell || qp.send_cq.enter(wc, qp.ctx, !success, out))
		return true;
	qp.count_shared(RVT_CNT_CQ_OVERRUNS);
	return false;
}

void trace_execute(const Qp &qp, const rvt_swqe &wqe, const Path &path)
{
	if (!rvt_traced(RVT_TRACE_EXECUTE))
		return;
	const bool local = wr_info(wqe.opcode).is_local();
	const uint32_t dest = is_datagram(qp.type) ? wqe.ud.remote_qpn : path.dest.value();

	rvt_trace_execute(qp.dev.lid.value(), qp.qpn.value(), &wqe, local ? 0 : dest);
}

// An attempt at the oldest request came to nothing; @left more may be made.
void trace_wait(const Qp &qp, rvt_trace_wait_for what, uint64_t ns, uint32_t left)
	RVT_REQUIRES(qp.s_lock)
{
	if (rvt_traced(RVT_TRACE_WAIT))
		rvt_trace_wait(qp.dev.lid.value(), qp.qpn.value(), what,
			       qp.swqe(qp.s_last.load(std::memory_order_relaxed)).wr_id, ns, left);
}

// Bring the requester to ERR, or a UC or UD one with a local error to SQE.
// With @status the request in progress completes with it first.
void fail(Qp &qp, const rvt_wc_status *status, Outbox &out)
{
	MutexGuard r(qp.r_lock);
	SpinGuard s(qp.s_lock);
	bool overrun = !status;

	if (qp.state() == QpState::reset)
		return;
	if (status)
		overrun = !finish(qp, *status, out);
	if (qp.type == QpType::rc || overrun) {
		const int last_wqe =
			rvt_error_qp(&qp, status ? *status : RVT_WC_WR_FLUSH_ERR,
				     overrun ? RVT_TRACE_CAUSE_OVERRUN : RVT_TRACE_CAUSE_SEND, out);

		s.unlock();
		finish_error(qp, last_wqe, out);
	} else if (qp.state() == QpState::rts || qp.state() == QpState::sqd) {
		qp.set_state(QpState::sqe);
		qp.s_flags |= s_flush_some;
		qp.s_flush_end = qp.s_head.load();
	}
}

// The path gave no answer: is there another one, armed? Then go on there,
// with all retries.
bool take_alternate(Qp &qp, Outbox &out)
{
	MutexGuard r(qp.r_lock);
	SpinGuard s(qp.s_lock);

	if (qp.mig.load() != MigState::armed || !state_info(qp.state()).continue_send)
		return false;
	migrate(qp, out);
	qp.s_retry = qp.attr.retry_cnt;
	return true;
}

constexpr uint64_t retry_unit_ns = 4096;
// Without a limit there is no schedule: look for the peer this often.
constexpr unsigned int unlimited_exponent = 14;

// Nobody answered: begin to wait for the timeout.
void wait_for_answer(Qp &qp) RVT_REQUIRES(qp.s_lock)
{
	const unsigned int t = qp.attr.timeout ? qp.attr.timeout : unlimited_exponent;

	trace_wait(qp, RVT_TRACE_WAIT_ANSWER, retry_unit_ns << t, qp.s_retry);
	qp.s_flags |= s_wait_retry;
	rvt_os_timer_start(&qp.s_timer.raw, retry_unit_ns << t);
}

// The timeout is over: one more attempt? False: all are used up.
bool take_retry(Qp &qp) RVT_REQUIRES(qp.s_lock)
{
	if (!(qp.s_flags & s_timed_out))
		return true;
	qp.s_flags &= ~s_timed_out;
	if (qp.attr.timeout) {
		if (qp.s_retry == 0)
			return false;
		qp.s_retry--;
	}
	qp.count(RVT_CNT_RETRIES);
	return true;
}

// The responder has no receive: begin to wait. False: no more attempts.
bool wait_for_receive(Qp &qp, uint8_t timer) RVT_REQUIRES(qp.s_lock)
{
	constexpr uint8_t endless = 7;

	qp.count(RVT_CNT_RNR_NAKS);
	if (qp.s_rnr_retry == 0)
		return false;
	trace_wait(qp, RVT_TRACE_WAIT_RNR, rnr_ns(timer), qp.s_rnr_retry);
	if (qp.attr.rnr_retry != endless)
		qp.s_rnr_retry--;
	rvt_add_rnr_timer(&qp, static_cast<uint32_t>(timer) << 24);
	return true;
}

enum class Stop : uint8_t {
	idle,	 // nothing more to do, or a wait began
	upcalls, // deliver what has gathered, then go on
	budget,	 // the work queue goes on
};

// What follows from a verdict.
enum class After : uint8_t { go_on, wait, overrun, rnr_exhausted };

After conclude(Qp &qp, const Verdict &verdict, Outbox &out) RVT_REQUIRES(qp.s_lock)
{
	const QpState state = qp.state();

	if (state == QpState::reset)
		return After::go_on; // the requests are gone, and so is the result
	if (verdict.kind == Verdict::Kind::done)
		return finish(qp, verdict.status, out) ? After::go_on : After::overrun;
	if (state_info(state).flush_send)
		return After::go_on; // no more waiting: it will be flushed
	if (verdict.kind == Verdict::Kind::no_answer) {
		wait_for_answer(qp);
		return After::wait;
	}
	return wait_for_receive(qp, verdict.rnr_timer) ? After::wait : After::rnr_exhausted;
}

Stop run_slice(Qp &qp, Transport transport, Budget &budget, Outbox &out, int section)
{
	ReadSection alive(section);
	Stop why = Stop::idle;
	{
		SpinGuard s(qp.s_lock);

		if (!claim(qp))
			return why;
		for (;;) {
			const Next next = pick(qp);

			if (next == Next::idle) {
				if (qp.state() == QpState::sqd) [[unlikely]]
					note_drained(qp, out);
				break;
			}
			if (budget.spent() || out.has_events()) {
				why = budget.spent() ? Stop::budget : Stop::upcalls;
				break;
			}
			if (next == Next::flush) {
				if (!finish(qp, RVT_WC_WR_FLUSH_ERR, out) &&
				    qp.state() != QpState::err) {
					s.unlock();
					fail(qp, nullptr, out);
					s.lock();
				}
				budget.spend(0);
				continue;
			}

			rvt_swqe &wqe = qp.swqe(qp.s_last.load(std::memory_order_relaxed));
			const Path path = {Qpn(qp.attr.dest_qpn), fabric.route(qp.attr.ah),
					   qp.attr.pkey_index, qp.attr.qkey};
			const bool retry = take_retry(qp);

			qp.s_cur = ring_next(qp.s_last.load(std::memory_order_relaxed), qp.sq.size);
			s.unlock();
			out.completions();

			if (!retry && take_alternate(qp, out)) {
				s.lock();
				continue;
			}
			Verdict verdict = Verdict::done(RVT_WC_RETRY_EXC_ERR);
			if (retry) {
				trace_execute(qp, wqe, path);
				verdict = transport(qp, wqe, path, out);
			}
			budget.spend(wqe.length);
			if (verdict.kind == Verdict::Kind::done &&
			    verdict.status != RVT_WC_SUCCESS) {
				fail(qp, &verdict.status, out);
				s.lock();
				continue;
			}
			s.lock();
			const After after = conclude(qp, verdict, out);
			if (after == After::wait)
				break;
			if (after != After::go_on) {
				const rvt_wc_status status = RVT_WC_RNR_RETRY_EXC_ERR;

				s.unlock();
				fail(qp, after == After::overrun ? nullptr : &status, out);
				s.lock();
			}
		}
		if (why == Stop::budget)
			schedule_send(qp);
		leave(qp);
	}
	out.completions();
	return why;
}

} // namespace

void note_drained(Qp &qp, Outbox &out)
{
	if (qp.state() != QpState::sqd || !(qp.s_flags & s_drain_notify) ||
	    qp.s_cur != qp.s_last.load(std::memory_order_relaxed))
		return;
	qp.s_flags &= ~s_drain_notify;
	out.event(qp, RVT_EVENT_SQ_DRAINED);
}

void run_engine(Qp &qp, int section)
{
	const Transport transport = is_datagram(qp.type) ? carry_datagram : carry_connected;
	Budget budget;

	for (;; section = rvt_os_read_lock()) {
		Outbox out;

		if (run_slice(qp, transport, budget, out, section) != Stop::upcalls)
			return;
	}
}

bool bind_pieces(Qp &qp, rvt_swqe &wqe, const WrInfo &info)
{
	const uint32_t access = info.writes_local ? RVT_ACCESS_LOCAL_WRITE : 0;
	const rvt_sge *sge = qp.swqe_sge(wqe);
	SgeState &to = qp.s_sge;

	to.clear();
	if (wqe.flags & RVT_SEND_INLINE) {
		to.add({nullptr, reinterpret_cast<uint64_t>(rvt_swqe_inline(&wqe)), wqe.length, 0});
		return true;
	}
	for (uint32_t i = 0; i < wqe.num_sge; i++) {
		if (!sge[i].length)
			continue;
		to.spare() = {nullptr, sge[i].addr, sge[i].length, sge[i].lkey};
		if (!bind_sge(qp.pd, to.spare(), access)) {
			to.release();
			return false;
		}
		to.add();
	}
	return true;
}

void count_between(Qp &from, Qp &to, uint32_t packets, uint32_t bytes)
{
	from.count_shared(RVT_CNT_SENT_PKTS, packets);
	from.count_shared(RVT_CNT_SENT_BYTES, bytes);
	to.count_shared(RVT_CNT_RCVD_PKTS, packets);
	to.count_shared(RVT_CNT_RCVD_BYTES, bytes);
}

Verdict do_local(Qp &qp, const rvt_swqe &wqe)
{
	const bool enable = wr_info(wqe.opcode).kind == WrKind::reg_mr;
	const uint32_t key = enable ? wqe.reg.key : wqe.rkey;
	Mr *mr = qp.dev.keys.slot(key);
	Errno e = Errno::inval;

	// The region posted may be gone meanwhile: only what the table has counts.
	if (mr && enable && mr == wqe.reg.mr)
		e = mr->enable(qp.pd, key, wqe.reg.access);
	else if (mr && !enable)
		e = mr->invalidate(qp.pd, key);
	return Verdict::done(failed(e) ? RVT_WC_LOC_PROT_ERR : RVT_WC_SUCCESS);
}

void schedule_send(Qp &qp)
{
	rvt_os_work_queue(&qp.s_work.raw);
}

void send_work(rvt_os_work *work)
{
	rvt_do_send(&WithOwner<rvt_os_work, Qp>::of(work));
}

} // namespace rvt

using namespace rvt;

extern "C" {

void rvt_do_send(Qp *qp)
{
	run_engine(*qp, rvt_os_read_lock());
}

void rvt_ruc_loopback(Qp *qp)
{
	rvt_do_send(qp);
}

void rvt_ud_loopback(Qp *qp)
{
	rvt_do_send(qp);
}
}
