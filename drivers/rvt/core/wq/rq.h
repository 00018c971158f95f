// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A ring of receives: a queue pair's own, or an SRQ's. A user's ring lies in
// mapped memory: each entry is read once into private memory, checked, then
// used, and only the head is ever taken from the user.
#ifndef RVT_WQ_RQ_H
#define RVT_WQ_RQ_H

#include "base/lock.h"
#include "base/memory.h"
#include "base/types.h"
#include "mr/sge.h"

namespace rvt
{

// What take() found.
enum class Take : uint8_t {
	got, // an entry; it is off the ring
	empty,
	too_small, // the entry at the tail has less room than the message has bytes
	malformed, // the user wrote nonsense; it is off the ring, its wr_id is known
	denied,	   // a key does not grant writing there; as above
};

// What a message wants of a receive.
struct Incoming {
	uint32_t bytes = 0;
	bool keep = false; // a receive that is too small stays where it is (datagrams)
};

// The memory of a ring: mapped and the caller's, or the core's own.
struct RqMemory {
	rvt_rq_ring *ring = nullptr;
	Array<uint8_t> own;
	uint32_t size = 0; // entries, one always empty

	bool mapped() const { return ring && !own; }
};

struct rvt_rq {
	// Only one shared by queue pairs needs a lock to take entries: who takes
	// from the others holds the queue pair's r_lock.
	rvt_rq(uint32_t sge, bool is_shared) : max_sge(sge), shared(is_shared) {}

	// @memory from rvt_alloc_rq(); an empty one for a QP with an SRQ.
	void init(RqMemory &&memory);

	Errno post(uint64_t wr_id, const rvt_sge *sge, uint32_t num_sge);
	// Take the next entry for @message. Its pieces, found by the keys of @pd, go to
	// @to unless that is null; when nothing was got, the list is empty. With a list:
	// in a read section.
	// Locks: r_lock of the queue pair whose ring it is, none for an SRQ's.
	Take take(uint64_t &wr_id, SgeState *to, const Pd *pd, Incoming message) RVT_NO_TSA
	{
		return shared ? take_shared(wr_id, to, pd, message)
			      : take_next(wr_id, to, pd, message);
	}
	// Take only the cookie, of whatever is next.
	bool take_id(uint64_t &wr_id) { return take(wr_id, nullptr, nullptr, {}) != Take::empty; }
	// Throw all entries away.
	void empty();
	// Entries posted, as far as the user's head can be believed.
	uint32_t count();
	// Move what is posted to a new ring, in order. inval: does not fit, or the
	// indices are nonsense. On success @memory holds the old ring.
	Errno exchange(RqMemory &memory);

	bool exists() const { return size_ != 0; }
	bool mapped() const { return mapped_; }
	uint32_t max_wr() const { return size_ ? size_ - 1 : 0; }
	rvt_ring_stat stat();
	// For a look without the locks.
	bool seems_empty() const;
	uint32_t head_now() const;
	uint32_t tail_now() const { return tail_.load(std::memory_order_relaxed); }

	const uint32_t max_sge;
	const bool shared;

private:
	rvt_rwqe *entry(uint32_t index) const RVT_REQUIRES(consumer_);
	// The poster's index; false if it points outside.
	bool head(uint32_t &index) const RVT_REQUIRES(consumer_);
	Take take_shared(uint64_t &wr_id, SgeState *to, const Pd *pd, Incoming message)
		RVT_EXCLUDES(consumer_);
	Take take_next(uint64_t &wr_id, SgeState *to, const Pd *pd, Incoming message)
		RVT_REQUIRES(consumer_);
	bool take_pieces(const rvt_rwqe &wqe, uint32_t num_sge, SgeState &to, const Pd &pd,
			 uint32_t &bytes) const;
	void advance(uint32_t from) RVT_REQUIRES(consumer_);
	void copy_entries(RqMemory &memory, uint32_t from, uint32_t end, uint32_t &to) const;

	SpinLock consumer_{RVT_LOCK_RQ_CONSUMER};
	SpinLock producer_{RVT_LOCK_RQ_PRODUCER};
	// Changed (exchange) with both locks held, so either is enough to read.
	RqMemory memory_;
	std::atomic<uint32_t> tail_{0};
	uint64_t taken_ RVT_GUARDED_BY(consumer_) = 0; // receives taken so far
	uint32_t size_ = 0;
	bool mapped_ = false;
};

} // namespace rvt

extern "C" {

/**
 * rvt_alloc_rq - get the memory of a receive ring
 * @memory: result
 * @max_wr: receives that fit
 * @max_sge: pieces of each
 * @user_ring: the user's zeroed, mapped ring of rvt_rq_ring_size() bytes; or
 *             null for a ring of the core's own
 *
 * Context: process. Return: ok or nomem.
 */
rvt::Errno rvt_alloc_rq(rvt::RqMemory *memory, uint32_t max_wr, uint32_t max_sge,
			rvt_rq_ring *user_ring);

/**
 * get_rvt_head - the poster's index of a ring
 * @ring: the ring
 *
 * Not to be believed if the ring is mapped. Context: any. Return: the index.
 */
uint32_t get_rvt_head(const rvt_rq_ring *ring);
}

#endif
