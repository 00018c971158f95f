// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Devices and the fabric between them.
#include "device.h"

#include "base/memory.h"
#include "base/shared.h"
#include "qp/qp.h"

namespace rvt
{

constinit Fabric fabric;

Gid Gid::from_bytes(const uint8_t *raw)
{
	Gid gid;

	for (unsigned int i = 0; i < 8; i++) {
		gid.prefix = gid.prefix << 8 | raw[i];
		gid.id = gid.id << 8 | raw[8 + i];
	}
	return gid;
}

void Gid::to_bytes(uint8_t *raw) const
{
	for (unsigned int i = 0; i < 8; i++) {
		raw[i] = static_cast<uint8_t>(prefix >> (56 - 8 * i));
		raw[8 + i] = static_cast<uint8_t>(id >> (56 - 8 * i));
	}
}

bool Fabric::attach(Device &dev)
{
	for (unsigned int i = 0; i < devices_.size(); i++) {
		Device *none = nullptr;

		dev.lid = Lid(static_cast<uint16_t>(i + 1));
		if (devices_[i].compare_exchange_strong(none, &dev))
			return true;
	}
	dev.lid = Lid();
	return false;
}

void Fabric::detach(Device &dev)
{
	devices_[dev.lid.value() - 1u].store(nullptr);
	rvt_os_read_synchronize();
}

Device *Fabric::route_by_gid(Device *by_lid, const uint8_t *dgid) const
{
	const Gid gid = Gid::from_bytes(dgid);

	if (by_lid && by_lid->owns(gid))
		return by_lid;
	return owner(gid);
}

Device *Fabric::owner(const Gid &gid) const
{
	for (const auto &place : devices_) {
		Device *dev = place.load(std::memory_order_acquire);

		if (dev && dev->owns(gid))
			return dev;
	}
	return nullptr;
}

} // namespace rvt

using namespace rvt;

rvt_core_dev::rvt_core_dev(const rvt_core_ops &upcalls, uint64_t port_guid)
	: ops(upcalls), guid(port_guid)
{
	rvt_os_waitq_init(&waitq);
	gids_[0].prefix.store(link_local_prefix, std::memory_order_relaxed);
	gids_[0].id.store(port_guid, std::memory_order_relaxed);
	set_pkey(0, RVT_DEFAULT_PKEY);
}

rvt_core_dev::~rvt_core_dev() = default;

Gid rvt_core_dev::gid(unsigned int index) const
{
	return {gids_[index].prefix.load(std::memory_order_relaxed),
		gids_[index].id.load(std::memory_order_relaxed)};
}

bool rvt_core_dev::owns(const Gid &wanted) const
{
	if (wanted.is_zero())
		return false;
	for (unsigned int i = 0; i < RVT_MAX_GIDS; i++) {
		if (gid(i) == wanted)
			return true;
	}
	return false;
}

Errno rvt_core_dev::set_gid(unsigned int index, const Gid &gid)
{
	if (index == 0 || index >= RVT_MAX_GIDS || gid.is_multicast())
		return Errno::inval;
	if (gid == this->gid(index))
		return Errno::ok;
	{
		ReadSection alive;

		if (fabric.owner(gid))
			return Errno::exist;
	}
	gids_[index].prefix.store(gid.prefix, std::memory_order_relaxed);
	gids_[index].id.store(gid.id, std::memory_order_relaxed);
	return Errno::ok;
}

namespace
{

constexpr std::array<const char *, RVT_COUNTERS> counter_names = {
	"loop_packets",	    "loop_bytes",     "sent_packets",	  "sent_bytes",
	"received_packets", "received_bytes", "sends_completed",  "receives_completed",
	"rnr_naks",	    "retries",	      "drops_no_qp",	  "drops_psn",
	"drops_pkey",	    "drops_qkey",     "drops_no_receive", "drops_length",
	"errors_local",	    "errors_remote",  "errors_retry",	  "flushed",
	"cq_overruns",
};

// Report what is still there; each kind on its own line.
unsigned int report_left(const char *what, uint32_t count)
{
	if (count)
		rvt_os_leak(what, count);
	return count;
}

} // namespace

extern "C" {

int rvt_core_init(void)
{
	return 0;
}

void rvt_core_exit(void) {}

struct rvt_core_dev *rvt_core_dev_create(const struct rvt_core_ops *ops, uint64_t guid,
					 uint16_t *lid)
{
	Owned<Device> dev(create<Device>(*ops, guid));

	if (!dev || failed(rvt_driver_qp_init(dev.get())) || !fabric.attach(*dev))
		return nullptr;
	*lid = dev->lid.value();
	return dev.release();
}

unsigned int rvt_core_dev_destroy(struct rvt_core_dev *dev)
{
	unsigned int left = 0;

	fabric.detach(*dev);
	left += rvt_qp_exit(dev);
	left += report_left("queue pairs", dev->n_qps.load());
	left += report_left("shared receive queues", dev->n_srqs.load());
	left += report_left("completion queues", dev->n_cqs.load());
	left += report_left("memory regions", dev->keys.count());
	left += report_left("protection domains", dev->n_pds.load());
	if (!left)
		destroy(dev);
	return left;
}

int rvt_core_gid_set(struct rvt_core_dev *dev, unsigned int index, const uint8_t *gid)
{
	return to_int(dev->set_gid(index, gid ? Gid::from_bytes(gid) : Gid()));
}

int rvt_core_gid_get(struct rvt_core_dev *dev, unsigned int index, uint8_t *gid)
{
	if (index >= RVT_MAX_GIDS)
		return to_int(Errno::inval);
	dev->gid(index).to_bytes(gid);
	return 0;
}

int rvt_core_pkey_set(struct rvt_core_dev *dev, unsigned int index, uint16_t pkey)
{
	if (index >= RVT_MAX_PKEYS)
		return to_int(Errno::inval);
	dev->set_pkey(index, pkey);
	return 0;
}

int rvt_core_pkey_get(struct rvt_core_dev *dev, unsigned int index, uint16_t *pkey)
{
	if (index >= RVT_MAX_PKEYS)
		return to_int(Errno::inval);
	*pkey = dev->pkey(index);
	return 0;
}

const char *rvt_core_counter_name(enum rvt_counter counter)
{
	return counter_names[counter];
}

void rvt_core_counters_read(struct rvt_core_dev *dev, uint64_t value[RVT_COUNTERS])
{
	struct Sum {
		uint64_t *value;
	} sum{value};

	for (unsigned int i = 0; i < RVT_COUNTERS; i++)
		value[i] = dev->past_counters[i].load(std::memory_order_relaxed);
	dev->qps.for_each(
		[](Qp &qp, void *arg) { qp.add_counters(static_cast<Sum *>(arg)->value); }, &sum);
	// Missed is what was added to past_counters since the first line: a queue
	// pair that left. A counter does not go back because of that.
	for (unsigned int i = 0; i < RVT_COUNTERS; i++)
		value[i] = raise(dev->told_counters[i], value[i]);
}

uint64_t rvt_core_violations(struct rvt_core_dev *dev, enum rvt_counter which)
{
	return dev->past_counters[which].load(std::memory_order_relaxed);
}

int rvt_core_ah_check(struct rvt_core_dev *dev, const struct rvt_ah_attr *ah, bool multicast)
{
	const Lid dlid(ah->dlid);

	// The permissive LID is fine: directed routes lead to a neighbour by it. No
	// port of this fabric has one. The rates have the numbers 0 (the port's own) and 2 to 23.
	if (ah->port_num != 1 || ah->dlid == 0 || ah->sl > 15 || ah->static_rate == 1 ||
	    ah->static_rate > 23)
		return to_int(Errno::inval);
	if (dlid.is_multicast() && (!multicast || !ah->has_grh))
		return to_int(Errno::inval);
	if (ah->has_grh && (ah->sgid_index >= RVT_MAX_GIDS || dev->gid(ah->sgid_index).is_zero()))
		return to_int(Errno::inval);
	return 0;
}
}
