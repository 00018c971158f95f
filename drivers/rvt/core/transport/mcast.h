// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A device's multicast groups: which queue pairs get a message to a group.
#ifndef RVT_TRANSPORT_MCAST_H
#define RVT_TRANSPORT_MCAST_H

#include <array>
#include <atomic>

#include "base/lock.h"
#include "base/object.h"
#include "qp/qp.h"

namespace rvt
{

struct Gid;

class McastTable
{
public:
	McastTable() = default;
	McastTable(const McastTable &) = delete;
	McastTable &operator=(const McastTable &) = delete;

	Errno attach(Qp &qp, const Gid &gid, Lid lid) RVT_EXCLUDES(lock_);
	Errno detach(Qp &qp, const Gid &gid, Lid lid) RVT_EXCLUDES(lock_);
	// Visit the members. Caller: inside a read section, which a detach waits
	// for; no lock is held, so @visit may take one.
	template <class Visit>
	void for_members(const Gid &gid, Lid lid, Visit visit) const
	{
		const Group *group = find(gid, lid);

		for (const Member *m = group ? group->first.load() : nullptr; m; m = m->next.load())
			visit(*m->qp);
	}
	bool empty() RVT_EXCLUDES(lock_)
	{
		MutexGuard guard(lock_);
		return groups_ == 0;
	}

private:
	struct Member {
		explicit Member(Qp &member) : qp(&member) {}

		std::atomic<Member *> next{nullptr};
		Ref<Qp> qp;
	};
	struct Group {
		Group(const Gid &gid, Lid group_lid, Member *member);

		std::atomic<Group *> next{nullptr}; // of those with the same hash
		const uint64_t prefix, id;	    // the group's GID
		const Lid lid;
		std::atomic<Member *> first;
		uint32_t members = 1;
	};

	static constexpr unsigned int hash_bits = 8;

	static size_t hash(const Gid &gid);
	const Group *find(const Gid &gid, Lid lid) const;
	Group *find_gid(const Gid &gid) const;

	Mutex lock_{RVT_LOCK_DEVICE};
	// Changed under the lock, read inside read sections.
	std::array<std::atomic<Group *>, 1 << hash_bits> buckets_{};
	uint32_t groups_ RVT_GUARDED_BY(lock_) = 0;
};

} // namespace rvt

#endif
