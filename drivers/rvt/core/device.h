// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A device: its tables, its port, its counts. And the fabric, which is all
// devices of this machine: one LID each.
#ifndef RVT_DEVICE_H
#define RVT_DEVICE_H

#include <array>
#include <atomic>

#include "base/lock.h"
#include "base/memory.h"
#include "base/object.h"
#include "mr/key_table.h"
#include "qp/qp_table.h"
#include "qp/qpn.h"
#include "transport/mcast.h"

namespace rvt
{

// A global identifier: subnet prefix and interface id, host order.
struct Gid {
	uint64_t prefix = 0;
	uint64_t id = 0;

	static Gid from_bytes(const uint8_t *raw);
	void to_bytes(uint8_t *raw) const;
	constexpr bool operator==(const Gid &) const = default;
	constexpr bool is_zero() const { return prefix == 0 && id == 0; }
	constexpr bool is_multicast() const { return prefix >> 56 == 0xff; }
};

constexpr uint64_t link_local_prefix = 0xfe80000000000000;

// Whether two P_Keys may talk: same partition, at least one a full member
// (InfiniBand 10.9.3).
constexpr bool pkeys_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) != 0 && ((a | b) & 0x8000) != 0;
}

// The queue pairs in ERR whose users may still write receives into the
// mapped ring: nobody tells the kernel, so the device looks every few
// milliseconds while there are any, and flushes what it finds.
class ErrorWatch
{
public:
	ErrorWatch();
	~ErrorWatch();
	// Any lock may be held.
	void add(Qp &qp);
	// Afterwards the watch has no use for the queue pair; no lock held.
	void remove(Qp &qp);

private:
	static constexpr uint64_t period_ns = 5'000'000;
	using Timer = WithOwner<rvt_os_timer, ErrorWatch>;
	using Work = WithOwner<rvt_os_work, ErrorWatch>;

	void look();
	Ref<Qp> next(unsigned int pass);
	void append(Qp &qp) RVT_REQUIRES(lock_);
	void unlink(Qp &qp) RVT_REQUIRES(lock_);

	Timer timer_;
	Work work_;
	SpinLock lock_{RVT_LOCK_TABLE};
	Qp *first_ RVT_GUARDED_BY(lock_) = nullptr;
	Qp *last_ RVT_GUARDED_BY(lock_) = nullptr;
	bool running_ RVT_GUARDED_BY(lock_) = false;
	unsigned int pass_ = 0; // of the work item only
};

} // namespace rvt

struct rvt_core_dev {
	rvt_core_dev(const rvt_core_ops &upcalls, uint64_t port_guid);
	~rvt_core_dev();

	bool owns(const rvt::Gid &gid) const;
	rvt::Gid gid(unsigned int index) const;
	uint16_t pkey(unsigned int index) const
	{
		return pkeys_[index].load(std::memory_order_relaxed);
	}
	rvt::Errno set_gid(unsigned int index, const rvt::Gid &gid);
	void set_pkey(unsigned int index, uint16_t pkey)
	{
		pkeys_[index].store(pkey, std::memory_order_relaxed);
	}

	// For what the port counts, not a queue pair: rare, and asked for often.
	void count(rvt_counter which)
	{
		past_counters[which].fetch_add(1, std::memory_order_relaxed);
	}

	const rvt_core_ops ops;
	const uint64_t guid;
	rvt::Lid lid;

	rvt::KeyTable keys;
	rvt::QpTable qps;
	rvt::QpnMap qpns;
	rvt::McastTable mcast;
	rvt::ErrorWatch errors;
	rvt_os_waitq waitq;

	std::atomic<uint32_t> n_pds{0}, n_cqs{0}, n_srqs{0}, n_qps{0};
	// What destroyed queue pairs had counted, and what the port counts itself.
	std::array<std::atomic<uint64_t>, RVT_COUNTERS> past_counters{};
	std::array<std::atomic<uint64_t>, RVT_COUNTERS> told_counters{}; // the most that was read

private:
	struct GidEntry {
		std::atomic<uint64_t> prefix{0}, id{0};
	};
	std::array<GidEntry, RVT_MAX_GIDS> gids_;
	std::array<std::atomic<uint16_t>, RVT_MAX_PKEYS> pkeys_{};
};

namespace rvt
{

// All devices of the machine. Look-ups are for callers in a read section.
class Fabric
{
public:
	constexpr Fabric() = default;
	// Give the device a LID; false when all are taken.
	bool attach(Device &dev);
	// Waits until no look-up uses the device any more.
	void detach(Device &dev);
	Device *find(Lid lid) const
	{
		const unsigned int index = lid.value() - 1u;

		return index < devices_.size() ? devices_[index].load(std::memory_order_acquire)
					       : nullptr;
	}
	// Where an address leads: by GID if it has a GRH, else by LID.
	Device *route(const rvt_ah_attr &ah) const
	{
		Device *by_lid = find(Lid(ah.dlid));

		return ah.has_grh ? route_by_gid(by_lid, ah.dgid) : by_lid;
	}
	// Whose port has this GID; null also for the zero one.
	Device *owner(const Gid &gid) const;
	// The @i-th place; null if no device is there.
	Device *at(unsigned int i) const { return devices_[i].load(std::memory_order_acquire); }

private:
	Device *route_by_gid(Device *by_lid, const uint8_t *dgid) const;

	std::array<std::atomic<Device *>, RVT_MAX_DEVICES> devices_{};
};

extern Fabric fabric;

} // namespace rvt

#endif
