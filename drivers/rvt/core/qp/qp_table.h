// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Queue pair number -> queue pair, for those that are not in RESET. Readers
// are inside a read section and take no lock.
//
// Chains are sorted by number: an iterator that knows only where it was can
// go on after anything was inserted or removed, and a reader that stands on
// a removed queue pair still finds the rest of its chain.
#ifndef RVT_QP_QP_TABLE_H
#define RVT_QP_QP_TABLE_H

#include <array>
#include <atomic>

#include "base/lock.h"
#include "base/memory.h"
#include "base/object.h"

namespace rvt
{

class QpTable
{
public:
	static constexpr uint32_t buckets = 1u << 16;

	Errno init();
	// Caller: inside a read section.
	Qp *find(Qpn qpn) const;
	void insert(Qp &qp) RVT_EXCLUDES(lock_);
	// False if it was not there.
	bool remove(Qp &qp) RVT_EXCLUDES(lock_);
	// The first with a number above @after in the buckets from @bucket on.
	Ref<Qp> next(uint32_t &bucket, int64_t after) RVT_EXCLUDES(lock_);
	// Each gets one visit, with a reference and no lock: @fn may sleep.
	void for_each(void (*fn)(Qp &qp, void *arg), void *arg);

private:
	// Numbers come in steps of two: the lowest bit moves up to the top.
	static uint32_t bucket(Qpn qpn)
	{
		return (qpn.value() >> 1 ^ (qpn.value() & 1) * (buckets / 2)) % buckets;
	}

	mutable SpinLock lock_{RVT_LOCK_TABLE};
	Array<std::atomic<Qp *>> heads_;
};

// A position in the walk over all queue pairs of a device.
struct QpIter {
	Device *dev;
	uint64_t v;
	void (*cb)(Qp *qp, uint64_t v);
	uint32_t bucket = 0;
	int64_t after = -1;
	Ref<Qp> qp;
};

} // namespace rvt

extern "C" {

/**
 * rvt_qp_iter_init - begin a walk over the queue pairs of a device
 * @dev: the device
 * @v: handed to @cb
 * @cb: for rvt_qp_iter(); may be null for one who calls rvt_qp_iter_next()
 *
 * Context: process. Return: the iterator, to be freed with rvt_qp_iter_free();
 * null without memory.
 */
rvt::QpIter *rvt_qp_iter_init(rvt::Device *dev, uint64_t v, void (*cb)(rvt::Qp *qp, uint64_t v));

/**
 * rvt_qp_iter_next - go to the next queue pair
 * @iter: its qp is the next one afterwards, with a reference
 *
 * Queue pairs in RESET are not in the table. One that comes or goes during
 * the walk may be missed, none is seen twice. Context: process.
 * Return: 0, or 1 at the end.
 */
int rvt_qp_iter_next(rvt::QpIter *iter);
void rvt_qp_iter_free(rvt::QpIter *iter);

/**
 * rvt_qp_iter - visit every queue pair
 * @dev: the device
 * @v: handed to @cb
 * @cb: called with a reference held and no lock; may sleep, may reset the QP
 *
 * Context: process.
 */
void rvt_qp_iter(rvt::Device *dev, uint64_t v, void (*cb)(rvt::Qp *qp, uint64_t v));

/**
 * rvt_driver_qp_init - make a device's queue pair tables
 * @dev: the device
 *
 * Context: process. Return: ok, nomem, inval.
 */
rvt::Errno rvt_driver_qp_init(rvt::Device *dev);

/**
 * rvt_free_qp_cb - visitor of the shutdown: resets the queue pair, counts it
 * @qp: the queue pair
 * @v: address of the unsigned int to count in
 *
 * Context: process, a reference to @qp held.
 */
void rvt_free_qp_cb(rvt::Qp *qp, uint64_t v);

/**
 * rvt_free_all_qps - reset what is left at shutdown
 * @dev: the device
 *
 * Context: process. Return: multicast trees that are not empty (at most 1
 * per port) plus queue pairs that had to be reset; expected 0.
 */
unsigned int rvt_free_all_qps(rvt::Device *dev);

/**
 * rvt_qp_exit - end a device's queue pair tables
 * @dev: the device
 *
 * Reports what rvt_free_all_qps() still found. Context: process, after the
 * device left ib_core. Return: what rvt_free_all_qps() returned.
 */
unsigned int rvt_qp_exit(rvt::Device *dev);

/**
 * rvt_remove_qp - take a queue pair out of the table, if it is in it
 * @dev: the device
 * @qp: the queue pair
 *
 * Readers that found it before may use it until their read section ends.
 * Context: process. Locks: takes the table's.
 */
void rvt_remove_qp(rvt::Device *dev, rvt::Qp *qp);
}

#endif
