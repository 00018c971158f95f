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

void ErrorWatch::add(Qp &qp)
{
	SpinGuard guard(lock_);

	if (!qp.err_listed) {
		qp.err_listed = true;
		qp.err_prev = nullptr;
		qp.err_next = first_;
		if (first_)
			first_->err_prev = &qp;
		first_ = &qp;
	}
	if (!running_) {
		running_ = true;
		rvt_os_timer_start(&timer_.raw, period_ns);
	}
}

void ErrorWatch::remove(Qp &qp)
{
	SpinGuard guard(lock_);

	if (!qp.err_listed)
		return;
	qp.err_listed = false;
	(qp.err_prev ? qp.err_prev->err_next : first_) = qp.err_next;
	if (qp.err_next)
		qp.err_next->err_prev = qp.err_prev;
}

// One that this round has not seen and that has something to flush.
Ref<Qp> ErrorWatch::next(unsigned int pass)
{
	SpinGuard guard(lock_);

	for (Qp *qp = first_; qp; qp = qp->err_next) {
		if (qp->err_pass == pass)
			continue;
		qp->err_pass = pass;
		if (!qp->rq.seems_empty())
			return Ref<Qp>(qp);
	}
	return {};
}

void ErrorWatch::look()
{
	pass_++;
	for (Ref<Qp> qp = next(pass_); qp; qp = next(pass_)) {
		// A kernel consumer's posts announce themselves: no need to watch
		// further. Off first, so that a post from now on puts it on again.
		if (!qp->rq.mapped())
			remove(*qp);
		flush_late_receives(*qp);
	}

	SpinGuard guard(lock_);

	running_ = first_ != nullptr;
	if (running_)
		rvt_os_timer_start(&timer_.raw, period_ns);
}

} // namespace rvt
