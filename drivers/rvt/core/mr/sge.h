// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A position in a list of pieces of registered memory, and the copy that
// moves it.
#ifndef RVT_MR_SGE_H
#define RVT_MR_SGE_H

#include <algorithm>

#include "mr/mr.h"

namespace rvt
{

// A piece as posted; once bound, with the region that grants it. Bytes that
// lie in one row of memory are found at once, and then need no region: the
// address is the kernel's own, as it is for inline data.
struct BoundSge {
	Mr *mr;
	uint64_t addr;
	uint32_t length;
	uint32_t key;
};

// What is left of an entry: bytes of a region, or, without one, a row of memory.
struct Extent {
	const Mr *mr;
	uint64_t addr;
	size_t size;

	// The bytes, if they lie in one row whatever their number; else null.
	char *flat() const { return mr ? mr->flat(addr) : reinterpret_cast<char *>(addr); }
	// What of them lies in one row, from the first on.
	Piece piece() const
	{
		if (!mr)
			return {reinterpret_cast<char *>(addr), size};
		return piece_of_region();
	}
	Piece piece_of_region() const;
};

// Resolved inside a read section, and used up inside the same.
struct SgeState {
	BoundSge *sge = nullptr; // room for the list
	uint32_t num = 0;
	uint32_t cur = 0;  // the entry in use ...
	uint32_t used = 0; // ... and how many of its bytes are done

	// Begin again with an empty list in the same room.
	void clear() { set(0); }
	// Begin with so many entries, which are there already.
	void set(uint32_t entries)
	{
		num = entries;
		cur = used = 0;
	}
	// The entry behind the last one; add() makes it part of the list.
	BoundSge &spare() const { return sge[num]; }
	void add() { num++; }
	void add(const BoundSge &entry)
	{
		spare() = entry;
		add();
	}
	// What is left of the entry in use, at most @want bytes; size 0 at the end.
	Extent extent(size_t want) const
	{
		if (cur == num)
			return {nullptr, 0, 0};

		const BoundSge &s = sge[cur];

		return {s.mr, s.addr + used, std::min<size_t>(s.length - used, want)};
	}
	// What of it lies in one row of memory.
	Piece piece(size_t want) const { return extent(want).piece(); }
	// Where the next @bytes are, if all are in one row that is known already;
	// else null.
	char *row(size_t bytes) const
	{
		if (cur == num || sge[cur].mr || sge[cur].length - used < bytes)
			return nullptr;
		return reinterpret_cast<char *>(sge[cur].addr) + used;
	}
	// Go on by so many bytes; with @release regions that are done are unpinned.
	void advance(size_t bytes, bool release)
	{
		used += static_cast<uint32_t>(bytes);
		if (used < sge[cur].length)
			return;
		if (release && sge[cur].mr) {
			sge[cur].mr->unpin();
			sge[cur].mr = nullptr;
		}
		cur++;
		used = 0;
	}
	// Unpin what is still in use; the list is empty afterwards.
	void release()
	{
		if (cur < num && (num > 1 || sge[0].mr)) [[unlikely]]
			release_all();
		else
			clear();
	}
	void release_all();
};

// One memcpy between two chances for other tasks.
inline constexpr size_t copy_slice = 256 * 1024;

// Many bytes, or such that somebody waits for by looking at the last one.
void copy_row_slowly(char *to, const char *from, size_t length, bool copy_last);
// Copy bytes that are in one row at both ends; see rvt_copy_sge().
inline void copy_row(char *to, const char *from, size_t length, bool copy_last)
{
	if (length <= copy_slice && !copy_last)
		__builtin_memcpy(to, from, length);
	else
		copy_row_slowly(to, from, length, copy_last);
}

// Copy from list to list, as far as both reach, and move on in both.
void copy_list(SgeState &to, SgeState &from, size_t length, bool release, bool copy_last);

} // namespace rvt

extern "C" {

/**
 * rvt_copy_sge - scatter bytes to a list of pieces, and move on in the list
 * @qp: the queue pair the list belongs to
 * @ss: where to; moves on by what was copied
 * @data: where from, kernel memory
 * @length: bytes
 * @release: unpin a region when its piece is used up
 * @copy_last: the last 8 bytes (all, if there are not more) are written after
 *             all others, one by one in rising order, so that who polls the
 *             last byte sees the rest
 *
 * Copies no further than the list reaches. Large copies let other tasks run.
 * Context: process, inside the read section in which @ss was resolved.
 */
void rvt_copy_sge(rvt::Qp *qp, rvt::SgeState *ss, const void *data, uint32_t length, bool release,
		  bool copy_last);
}

#endif
