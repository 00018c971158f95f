// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A position in a list of pieces of registered memory, and the copy that
// moves it.
#ifndef RVT_MR_SGE_H
#define RVT_MR_SGE_H

#include "mr/mr.h"

namespace rvt
{

// A piece as posted, and the region that grants it. Without a region the
// address is the kernel's own (inline data).
struct BoundSge {
	Mr *mr;
	uint64_t addr;
	uint32_t length;
	uint32_t key;
};

// Resolved inside a read section, and used up inside the same.
struct SgeState {
	BoundSge *sge = nullptr; // room for the list
	uint32_t num = 0;
	uint32_t cur = 0;    // the entry in use ...
	uint32_t used = 0;   // ... and how many of its bytes are done
	uint64_t length = 0; // of all entries

	// Begin again with an empty list in the same room.
	void clear() { num = cur = used = 0, length = 0; }
	void add(const BoundSge &entry)
	{
		sge[num++] = entry;
		length += entry.length;
	}
	// The next piece in one row of memory, at most @want bytes; size 0 at the end.
	Piece piece(size_t want) const;
	// Go on by so many bytes; with @release regions that are done are unpinned.
	void advance(size_t bytes, bool release);
	// Unpin what is still in use; the list is empty afterwards.
	void release();
};

// The region that grants this access to these bytes, pinned; null if none
// does. Key 0 names all memory, for kernel PDs only. In a read section.
Mr *bind_sge(const Pd &pd, uint32_t key, uint64_t addr, uint64_t length, uint32_t access);

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
