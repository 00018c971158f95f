// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The one timer of an RC requester: it waits for a receive at the responder
// (RNR), or for an answer.
#include <array>

#include "transport/engine.h"

namespace rvt
{

namespace
{

constexpr std::array<uint64_t, 32> make_rnr_table()
{
	// InfiniBand table 45, in units of 10 us; code 0 is the longest.
	constexpr std::array<uint32_t, 32> tens = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};
	std::array<uint64_t, 32> ns{};

	for (unsigned int i = 0; i < ns.size(); i++)
		ns[i] = tens[i] * 10'000ull;
	return ns;
}

constexpr auto rnr_table = make_rnr_table();

static_assert(rnr_table[0] == 655'360'000 && rnr_table[1] == 10'000);
static_assert(rnr_table[12] == 640'000 && rnr_table[31] == 491'520'000);

} // namespace

uint64_t rnr_ns(uint32_t code)
{
	return rnr_table[code & 0x1f];
}

void send_timer_expired(rvt_os_timer *timer)
{
	Qp &qp = WithOwner<rvt_os_timer, Qp>::of(timer);
	SpinGuard s(qp.s_lock);

	// Stopped meanwhile: nothing is waiting any more.
	if (!(qp.s_flags & s_waiting))
		return;
	if (qp.s_flags & s_wait_retry)
		qp.s_flags |= s_timed_out;
	rvt_stop_rnr_timer(&qp);
	schedule_send(qp);
}

} // namespace rvt

using namespace rvt;

extern "C" {

void rvt_add_rnr_timer(Qp *qp, uint32_t aeth)
{
	qp->s_flags |= s_wait_rnr;
	rvt_os_timer_start(&qp->s_timer.raw, rnr_ns(aeth >> 24));
}

void rvt_stop_rc_timers(Qp *qp)
{
	qp->s_flags &= ~s_timed_out;
	if (!(qp->s_flags & s_waiting))
		return;
	qp->s_flags &= ~s_waiting;
	rvt_os_timer_try_cancel(&qp->s_timer.raw);
}

void rvt_stop_rnr_timer(Qp *qp)
{
	qp->s_flags &= ~s_waiting;
}

void rvt_del_timers_sync(Qp *qp)
{
	rvt_os_timer_cancel_sync(&qp->s_timer.raw);
}
}
