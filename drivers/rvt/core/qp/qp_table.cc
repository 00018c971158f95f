// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The table of queue pairs, and the walk over it.
#include "qp/qp_table.h"

#include "device.h"
#include "qp/qp.h"

namespace rvt
{

Errno QpTable::init()
{
	return heads_.allocate(buckets) ? Errno::ok : Errno::nomem;
}

Qp *QpTable::find(Qpn qpn) const
{
	Qp *qp = heads_[bucket(qpn)].load(std::memory_order_acquire);

	while (qp && qp->qpn < qpn)
		qp = qp->next.load(std::memory_order_acquire);
	return qp && qp->qpn == qpn ? qp : nullptr;
}

void QpTable::insert(Qp &qp)
{
	SpinGuard guard(lock_);
	std::atomic<Qp *> *link = &heads_[bucket(qp.qpn)];
	Qp *at;

	while ((at = link->load(std::memory_order_relaxed)) && at->qpn < qp.qpn)
		link = &at->next;
	qp.next.store(at, std::memory_order_relaxed);
	qp.ref();
	link->store(&qp, std::memory_order_release);
}

bool QpTable::remove(Qp &qp)
{
	SpinGuard guard(lock_);
	std::atomic<Qp *> *link = &heads_[bucket(qp.qpn)];
	Qp *at;

	while ((at = link->load(std::memory_order_relaxed)) && at != &qp)
		link = &at->next;
	if (!at)
		return false;
	// Its own link stays: a reader may stand here.
	link->store(qp.next.load(std::memory_order_relaxed), std::memory_order_release);
	return true;
}

Ref<Qp> QpTable::next(uint32_t &in, int64_t after)
{
	for (; in < buckets; in++, after = -1) {
		// Most buckets are empty: only look, do not keep interrupts off.
		if (!heads_[in].load(std::memory_order_relaxed))
			continue;

		SpinGuard guard(lock_);
		Qp *qp = heads_[in].load(std::memory_order_relaxed);

		while (qp && qp->qpn.value() <= after)
			qp = qp->next.load(std::memory_order_relaxed);
		if (qp)
			return Ref<Qp>(qp);
	}
	return {};
}

void QpTable::for_each(void (*fn)(Qp &qp, void *arg), void *arg)
{
	uint32_t in = 0;
	int64_t after = -1;

	for (Ref<Qp> qp = next(in, after); qp; qp = next(in, after)) {
		fn(*qp, arg);
		after = qp->qpn.value();
	}
}

} // namespace rvt

using namespace rvt;

extern "C" {

QpIter *rvt_qp_iter_init(Device *dev, uint64_t v, void (*cb)(Qp *qp, uint64_t v))
{
	QpIter *iter = create<QpIter>();

	if (iter) {
		iter->dev = dev;
		iter->v = v;
		iter->cb = cb;
	}
	return iter;
}

int rvt_qp_iter_next(QpIter *iter)
{
	iter->qp = iter->dev->qps.next(iter->bucket, iter->after);
	if (!iter->qp)
		return 1;
	iter->after = iter->qp->qpn.value();
	return 0;
}

void rvt_qp_iter_free(QpIter *iter)
{
	destroy(iter);
}

void rvt_qp_iter(Device *dev, uint64_t v, void (*cb)(Qp *qp, uint64_t v))
{
	struct Visit {
		void (*cb)(Qp *qp, uint64_t v);
		uint64_t v;
	} visit{cb, v};

	dev->qps.for_each(
		[](Qp &qp, void *arg) {
			const Visit &to = *static_cast<Visit *>(arg);
			to.cb(&qp, to.v);
		},
		&visit);
}

Errno rvt_driver_qp_init(Device *dev)
{
	if (Errno e = dev->qps.init(); failed(e))
		return e;
	return init_qpn_table(dev, &dev->qpns, 0, 0, 0);
}

void rvt_free_qp_cb(Qp *qp, uint64_t v)
{
	rvt_reset_qp(qp);
	++*reinterpret_cast<unsigned int *>(v);
}

unsigned int rvt_free_all_qps(Device *dev)
{
	unsigned int left = dev->mcast.empty() ? 0 : 1;

	rvt_qp_iter(dev, reinterpret_cast<uint64_t>(&left), rvt_free_qp_cb);
	return left;
}

unsigned int rvt_qp_exit(Device *dev)
{
	const unsigned int left = rvt_free_all_qps(dev);

	if (left)
		rvt_os_leak("queue pairs or multicast groups in use", left);
	free_qpn_table(&dev->qpns);
	return left;
}

void rvt_remove_qp(Device *dev, Qp *qp)
{
	if (!dev->qps.remove(*qp))
		return;
	qp->fold_counters();
	qp->put();
}

void rvt_core_qp_for_each(struct rvt_core_dev *dev, void (*fn)(struct rvt_core_qp *qp, void *arg),
			  void *arg)
{
	struct Visit {
		void (*fn)(Qp *qp, void *arg);
		void *arg;
	} visit{fn, arg};

	dev->qps.for_each(
		[](Qp &qp, void *v) {
			const Visit &to = *static_cast<Visit *>(v);
			to.fn(&qp, to.arg);
		},
		&visit);
}
}
