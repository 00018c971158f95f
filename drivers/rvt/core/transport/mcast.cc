// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Joining and leaving multicast groups. A group exists while it has members.
#include "transport/mcast.h"

#include "base/memory.h"
#include "device.h"
#include "qp/qp.h"

namespace rvt
{

McastTable::Group::Group(const Gid &gid, Lid group_lid, Member *member)
	: prefix(gid.prefix), id(gid.id), lid(group_lid), first(member)
{
}

// The upper bits of a product depend on all bits of a factor.
size_t McastTable::hash(const Gid &gid)
{
	constexpr uint64_t odd = 0x9e3779b97f4a7c15; // 2^64 by the golden ratio

	return ((gid.prefix * odd ^ gid.id) * odd) >> (64 - hash_bits);
}

McastTable::Group *McastTable::find_gid(const Gid &gid) const
{
	Group *group = buckets_[hash(gid)].load();

	while (group && (group->prefix != gid.prefix || group->id != gid.id))
		group = group->next.load();
	return group;
}

const McastTable::Group *McastTable::find(const Gid &gid, Lid lid) const
{
	const Group *group = find_gid(gid);

	return group && group->lid == lid ? group : nullptr;
}

Errno McastTable::attach(Qp &qp, const Gid &gid, Lid lid)
{
	MutexGuard guard(lock_);
	Group *group = find_gid(gid);

	if (qp.qpn.is_special() || qp.state() == QpState::reset || !is_datagram(qp.type) ||
	    !gid.is_multicast() || (group && group->lid != lid))
		return Errno::inval;
	// At the end: members get their copies in the order they joined.
	std::atomic<Member *> *end = group ? &group->first : nullptr;
	for (Member *m; end && (m = end->load()); end = &m->next) {
		if (m->qp.get() == &qp)
			return Errno::ok;
	}
	if (group ? group->members >= RVT_MAX_MCAST_QP : groups_ >= RVT_MAX_MCAST_GRP)
		return Errno::nomem;

	Owned<Member> member(create<Member>(qp));
	if (!member)
		return Errno::nomem;
	if (group) {
		group->members++;
		end->store(member.release());
		return Errno::ok;
	}
	group = create<Group>(gid, lid, member.get());
	if (!group)
		return Errno::nomem;
	(void)member.release();
	groups_++;
	std::atomic<Group *> &first = buckets_[hash(gid)];
	group->next.store(first.load());
	first.store(group);
	return Errno::ok;
}

Errno McastTable::detach(Qp &qp, const Gid &gid, Lid lid)
{
	Owned<Member> member;
	Owned<Group> emptied;
	{
		MutexGuard guard(lock_);
		Group *group = find_gid(gid);

		if (!group || group->lid != lid)
			return Errno::inval;
		std::atomic<Member *> *link = &group->first;
		while (link->load() && link->load()->qp.get() != &qp)
			link = &link->load()->next;
		member = Owned<Member>(link->load());
		if (!member)
			return Errno::inval;
		link->store(member->next.load());
		if (--group->members == 0) {
			std::atomic<Group *> *at = &buckets_[hash(gid)];

			while (at->load() != group)
				at = &at->load()->next;
			at->store(group->next.load());
			emptied = Owned<Group>(group);
			groups_--;
		}
	}
	// Who is still reading the list, and delivering, has ended after this.
	rvt_os_read_synchronize();
	return Errno::ok;
}

} // namespace rvt

using namespace rvt;

extern "C" {

int rvt_core_mcast_attach(struct rvt_core_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	return to_int(qp->dev.mcast.attach(*qp, Gid::from_bytes(gid), Lid(lid)));
}

int rvt_core_mcast_detach(struct rvt_core_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	return to_int(qp->dev.mcast.detach(*qp, Gid::from_bytes(gid), Lid(lid)));
}
}
