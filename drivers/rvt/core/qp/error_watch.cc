// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The watch over queue pairs in ERR: receives that arrive in their rings
// without a system call are flushed within two periods.
#include "device.h"
#include "qp/qp.h"

namespace rvt
{

ErrorWatch::ErrorWatch() : timer_{{}, this}, work_{{}, this}
{
	rvt_os_timer_init(&timer_.raw, [](rvt_os_timer *timer) {
		rvt_os_work_queue(&Timer::of(timer).work_.raw);
	});
	rvt_os_work_init(&work_.raw, [](rvt_os_work *work) { Work::of(work).look(); });
}

// No queue pair is left, so nothing starts the timer again.
ErrorWatch::~ErrorWatch()
{
	rvt_os_timer_cancel_sync(&timer_.raw);
	rvt_os_work_cancel_sync(&work_.raw);
	rvt_os_timer_cancel_sync(&timer_.raw);
}

void ErrorWatch::append(Qp &qp)
{
	qp.err_listed = true;
	qp.err_next = nullptr;
	qp.err_prev = last_;
	(last_ ? last_->err_next : first_) = &qp;
	last_ = &qp;
}

void ErrorWatch::unlink(Qp &qp)
{
	qp.err_listed = false;
	(qp.err_prev ? qp.err_prev->err_next : first_) = qp.err_next;
	(qp.err_next ? qp.err_next->err_prev : last_) = qp.err_prev;
}

void ErrorWatch::add(Qp &qp)
{
	SpinGuard guard(lock_);

	if (!qp.err_listed)
		append(qp);
	if (!running_) {
		running_ = true;
		rvt_os_timer_start(&timer_.raw, period_ns);
	}
}

void ErrorWatch::remove(Qp &qp)
{
	SpinGuard guard(lock_);

	if (qp.err_listed)
		unlink(qp);
}

// One that this round has not seen and that has something to flush. Those
// seen go to the end, so the round is over when the first has been seen.
Ref<Qp> ErrorWatch::next(unsigned int pass)
{
	constexpr unsigned int at_once = 64; // with interrupts off
	bool more = true;

	while (more) {
		SpinGuard guard(lock_);

		for (unsigned int n = 0; n < at_once; n++) {
			Qp *qp = first_;

			if (!qp || qp->err_pass == pass) {
				more = false;
				break;
			}
			qp->err_pass = pass;
			unlink(*qp);
			// A kernel consumer's posts announce themselves: no need to watch
			// further. A post from now on puts it on again.
			if (qp->rq.mapped())
				append(*qp);
			if (!qp->rq.seems_empty())
				return Ref<Qp>(qp);
		}
	}
	return {};
}

void ErrorWatch::look()
{
	pass_++;
	for (Ref<Qp> qp = next(pass_); qp; qp = next(pass_))
		flush_late_receives(*qp);

	SpinGuard guard(lock_);

	running_ = first_ != nullptr;
	if (running_)
		rvt_os_timer_start(&timer_.raw, period_ns);
}

} // namespace rvt
