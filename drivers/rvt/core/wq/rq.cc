// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Receive rings: posting, taking, exchanging.
#include "wq/rq.h"

#include "base/shared.h"
#include "mr/bind.h"

namespace rvt
{

void rvt_rq::init(RqMemory &&memory)
{
	memory_ = std::move(memory);
	size_ = memory_.size;
	mapped_ = memory_.mapped();
}

rvt_rwqe *rvt_rq::entry(uint32_t index) const
{
	return reinterpret_cast<rvt_rwqe *>(memory_.ring->data +
					    static_cast<size_t>(index) * rvt_rwqe_size(max_sge));
}

bool rvt_rq::head(uint32_t &index) const
{
	index = get_rvt_head(memory_.ring);
	return index < size_;
}

inline void rvt_rq::advance(uint32_t from)
{
	const uint32_t tail = ring_next(from, size_);

	taken_++;
	tail_.store(tail, std::memory_order_release);
	store_release(memory_.ring->tail, tail);
}

Errno rvt_rq::post(uint64_t wr_id, const rvt_sge *sge, uint32_t num_sge)
{
	if (!exists() || mapped_ || num_sge > max_sge)
		return Errno::inval;

	SpinGuard guard(producer_);
	const uint32_t at = memory_.ring->head;
	const uint32_t next = ring_next(at, size_);

	if (next == tail_.load(std::memory_order_acquire))
		return Errno::nomem;
	auto *wqe = reinterpret_cast<rvt_rwqe *>(memory_.ring->data +
						 static_cast<size_t>(at) * rvt_rwqe_size(max_sge));
	wqe->wr_id = wr_id;
	wqe->num_sge = static_cast<uint8_t>(num_sge);
	for (uint32_t i = 0; i < num_sge; i++)
		wqe->sge[i] = sge[i];
	store_release(memory_.ring->head, next);
	return Errno::ok;
}

// Empty pieces are left out, their keys not looked at. As adapters do, only what the
// message writes has to be granted; of what is behind it, only the place. @bytes:
// the message's, and then those for which there is no room. False: a key does not
// grant it.
[[gnu::always_inline]] inline bool rvt_rq::take_pieces(const rvt_rwqe &wqe, uint32_t num_sge,
						       SgeState &to, const Pd &pd,
						       uint32_t &bytes) const
{
	BoundSge *piece = to.sge;
	uint32_t left = bytes;
	uint32_t num = 0;
	bool granted = true;

	for (uint32_t i = 0; i < num_sge; i++) {
		// The compiler must not read the user's memory twice.
		const volatile rvt_sge &raw = wqe.sge[i];

		*piece = {nullptr, raw.addr, raw.length, raw.lkey};
		if (!piece->length)
			continue;
		if (!left) [[unlikely]] {
			granted &= names_place(pd, *piece, RVT_ACCESS_LOCAL_WRITE);
			continue;
		}
		if (piece->length > left)
			piece->length = left;
		left -= piece->length;
		if (!bind_sge(pd, *piece, RVT_ACCESS_LOCAL_WRITE)) [[unlikely]]
			granted = false;
		piece++;
		num++;
	}
	to.set(num);
	bytes = left;
	return granted;
}

[[gnu::noinline]] Take rvt_rq::take_shared(uint64_t &wr_id, SgeState *to, const Pd *pd,
					   Incoming message)
{
	SpinGuard guard(consumer_);

	return take_next(wr_id, to, pd, message);
}

Take rvt_rq::take_next(uint64_t &wr_id, SgeState *to, const Pd *pd, Incoming message)
{
	const uint32_t at = tail_now();
	Take result = Take::got;
	uint32_t end;

	if (!exists() || !head(end) || end == at)
		return Take::empty;

	const rvt_rwqe &wqe = *entry(at);
	const uint32_t num_sge =
		std::atomic_ref(const_cast<uint8_t &>(wqe.num_sge)).load(std::memory_order_relaxed);

	wr_id = wqe.wr_id;
	if (num_sge > max_sge) {
		result = Take::malformed;
	} else if (to) {
		const bool granted = take_pieces(wqe, num_sge, *to, *pd, message.bytes);

		if (!granted || message.bytes) [[unlikely]] {
			result = message.bytes ? Take::too_small : Take::denied;
			to->release_all();
			if (result == Take::too_small && message.keep)
				return result;
		}
	}
	advance(at);
	return result;
}

void rvt_rq::empty()
{
	SpinGuard guard(consumer_);
	uint32_t end;

	if (!exists())
		return;
	if (!head(end)) {
		// Nothing the user wrote can be kept; begin afresh.
		end = 0;
		store_release(memory_.ring->head, 0);
	}
	tail_.store(end, std::memory_order_release);
	store_release(memory_.ring->tail, end);
}

uint32_t rvt_rq::count()
{
	SpinGuard guard(consumer_);
	uint32_t end;

	if (!exists() || !head(end))
		return 0;
	return ring_count(end, tail_now(), size_);
}

// Copy entries [from, end) to the new ring, beginning at place @to there.
void rvt_rq::copy_entries(RqMemory &memory, uint32_t from, uint32_t end, uint32_t &to) const
{
	const size_t stride = rvt_rwqe_size(max_sge);

	for (; from != end; from = ring_next(from, size_), to = ring_next(to, memory.size))
		__builtin_memcpy(memory.ring->data + to * stride,
				 memory_.ring->data + from * stride, stride);
}

// What is posted now is copied with the locks free, since a ring may hold
// 200 MB. Meanwhile some may be taken and others posted: the former are left
// behind by the new tail, the latter copied under the locks. One call at a
// time.
Errno rvt_rq::exchange(RqMemory &memory)
{
	uint32_t from, end, to = 0;
	uint64_t taken_before;

	if (!exists() || memory.mapped() != mapped_)
		return Errno::inval;
	{
		SpinGuard consumer(consumer_);

		from = tail_now();
		taken_before = taken_;
		if (!head(end) || ring_count(end, from, size_) >= memory.size)
			return Errno::inval;
	}
	const uint32_t copied = ring_count(end, from, size_);

	copy_entries(memory, from, end, to);
	from = end;

	SpinGuard consumer(consumer_);
	SpinGuard producer(producer_);
	const uint64_t taken = taken_ - taken_before;

	if (!head(end) || ring_count(end, tail_now(), size_) >= memory.size)
		return Errno::inval;
	uint32_t tail = static_cast<uint32_t>(taken);
	if (taken > copied) {
		// All of the copies are stale: begin afresh with what is left.
		from = tail_now();
		tail = to = 0;
	}
	copy_entries(memory, from, end, to);
	tail_.store(tail % memory.size, std::memory_order_release);
	memory.ring->head = to;
	memory.ring->tail = tail_now();
	std::swap(memory_, memory);
	size_ = memory_.size;
	return Errno::ok;
}

rvt_ring_stat rvt_rq::stat()
{
	SpinGuard guard(consumer_);

	return {size_, head_now(), tail_now()};
}

bool rvt_rq::seems_empty() const
{
	return !exists() || head_now() == tail_now();
}

uint32_t rvt_rq::head_now() const
{
	return exists() ? get_rvt_head(memory_.ring) : 0;
}

} // namespace rvt

using namespace rvt;

extern "C" {

Errno rvt_alloc_rq(RqMemory *memory, uint32_t max_wr, uint32_t max_sge, rvt_rq_ring *user_ring)
{
	if (user_ring) {
		memory->ring = user_ring;
	} else {
		if (!memory->own.allocate(rvt_rq_ring_size(max_wr, max_sge)))
			return Errno::nomem;
		memory->ring = reinterpret_cast<rvt_rq_ring *>(memory->own.get());
	}
	memory->size = max_wr + 1;
	return Errno::ok;
}

uint32_t get_rvt_head(const rvt_rq_ring *ring)
{
	return load_acquire(const_cast<rvt_rq_ring *>(ring)->head);
}
}
