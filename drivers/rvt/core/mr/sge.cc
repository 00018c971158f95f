// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Moving through lists of pieces, and the copy.
#include "mr/sge.h"

#include <algorithm>
#include <atomic>

#include "device.h"
#include "pd.h"

namespace rvt
{

namespace
{

// One memcpy between two chances for other tasks.
constexpr size_t copy_slice = 256 * 1024;
constexpr size_t polled_tail = 8;

void copy_bytewise(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		std::atomic_ref<char>(to[i]).store(from[i], std::memory_order_release);
}

void copy_sliced(char *to, const char *from, size_t n)
{
	while (n > copy_slice) {
		__builtin_memcpy(to, from, copy_slice);
		to += copy_slice;
		from += copy_slice;
		n -= copy_slice;
		rvt_os_resched();
	}
	__builtin_memcpy(to, from, n);
}

void copy(SgeState &ss, const char *from, size_t length, bool release)
{
	while (length) {
		const Piece to = ss.piece(length);

		if (!to.size)
			return;
		copy_sliced(to.data, from, to.size);
		ss.advance(to.size, release);
		from += to.size;
		length -= to.size;
	}
}

} // namespace

Mr *bind_sge(const Pd &pd, uint32_t key, uint64_t addr, uint64_t length, uint32_t access)
{
	if (key == 0)
		return pd.user ? nullptr : pd.all_memory();

	Mr *mr = pd.dev.keys.slot(key);

	if (!mr || !mr->pin(key))
		return nullptr;
	if (mr->grants(pd, key, addr, length, access))
		return mr;
	mr->unpin();
	return nullptr;
}

Piece SgeState::piece(size_t want) const
{
	if (cur == num)
		return {nullptr, 0};

	const BoundSge &s = sge[cur];
	const size_t left = std::min<size_t>(s.length - used, want);

	if (!s.mr)
		return {reinterpret_cast<char *>(s.addr) + used, left};
	return s.mr->at(s.addr + used, left);
}

void SgeState::advance(size_t bytes, bool release)
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

void SgeState::release()
{
	for (; cur < num; cur++) {
		if (sge[cur].mr)
			sge[cur].mr->unpin();
	}
	clear();
}

} // namespace rvt

extern "C" void rvt_copy_sge(rvt::Qp *, rvt::SgeState *ss, const void *data, uint32_t length,
			     bool release, bool copy_last)
{
	using namespace rvt;

	const char *from = static_cast<const char *>(data);
	size_t tail = copy_last ? std::min<size_t>(length, polled_tail) : 0;

	copy(*ss, from, length - tail, release);
	from += length - tail;
	while (tail) {
		const Piece to = ss->piece(tail);

		if (!to.size)
			return;
		copy_bytewise(to.data, from, to.size);
		ss->advance(to.size, release);
		from += to.size;
		tail -= to.size;
	}
}
