// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// From a piece as posted to the memory that it names.
#ifndef RVT_MR_BIND_H
#define RVT_MR_BIND_H

#include "device.h"
#include "mr/sge.h"
#include "pd.h"

namespace rvt
{

// The region by which a user's key grants this access to these bytes; else
// null. In a read section.
inline const Mr *granting(const Pd &pd, const rvt_sge &sge, uint32_t access)
{
	const Mr *mr = pd.dev.keys.slot(sge.lkey);

	return mr && mr->grants(pd, sge.lkey, sge.addr, sge.length, access) ? mr : nullptr;
}

// Is where a piece begins, whatever its length, memory that its key grants?
[[nodiscard]] bool names_place(const Pd &pd, const BoundSge &sge, uint32_t access);

// Other regions than of registered pages, and key 0.
[[nodiscard]] bool bind_unusual(const Pd &pd, BoundSge &sge, uint32_t access);

// Find the bytes of a piece as posted, and pin their region. False: the key
// does not grant this access. Key 0 names all memory, for kernel PDs only. In
// a read section.
[[nodiscard]] inline bool bind_sge(const Pd &pd, BoundSge &sge, uint32_t access)
{
	Mr *mr = pd.dev.keys.slot(sge.key);

	if (!mr || mr->kind != RVT_MR_MEM)
		return bind_unusual(pd, sge, access);
	if (!mr->grants(pd, sge.key, sge.addr, sge.length, access))
		return false;
	if (char *row = mr->row(sge.addr, sge.length))
		sge.addr = reinterpret_cast<uint64_t>(row);
	else
		sge.mr = mr;
	return true;
}

} // namespace rvt

#endif
