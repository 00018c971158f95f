// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Moving through lists of pieces, and the copy.
#include "mr/bind.h"

#include <atomic>

namespace rvt
{

namespace
{

// One memcpy between two chances for other tasks.
constexpr size_t copy_slice = 256 * 1024;
constexpr size_t polled_tail = 8;

void copy_bytewise(char *to, const char *from, size_t n)
{
#pragma GCC unroll 8
	for (size_t i = 0; i < n; i++)
		std::atomic_ref<char>(to[i]).store(from[i], std::memory_order_release);
}

[[gnu::noinline]] void copy_in_slices(char *to, const char *from, size_t n)
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

void copy_bytes(char *to, const char *from, size_t n)
{
	if (n > copy_slice)
		copy_in_slices(to, from, n);
	else
		__builtin_memcpy(to, from, n);
}

template <auto copy>
void copy_to_pieces(SgeState &ss, const char *from, size_t length, bool release)
{
	while (length) {
		const Piece to = ss.piece(length);

		if (!to.size)
			return;
		copy(to.data, from, to.size);
		ss.advance(to.size, release);
		from += to.size;
		length -= to.size;
	}
}

[[gnu::noinline]] void scatter(SgeState &ss, const char *from, size_t body, size_t tail,
			       bool release)
{
	copy_to_pieces<copy_bytes>(ss, from, body, release);
	copy_to_pieces<copy_bytewise>(ss, from + body, tail, release);
}

} // namespace

bool bind_unusual(const Pd &pd, BoundSge &sge, uint32_t access)
{
	if (sge.key == 0)
		return !pd.user;

	Mr *mr = pd.dev.keys.slot(sge.key);

	if (!mr || !mr->pin(sge.key))
		return false;
	if (mr->grants(pd, sge.key, sge.addr, sge.length, access)) {
		sge.mr = mr;
		return true;
	}
	mr->unpin();
	return false;
}

} // namespace rvt

extern "C" void rvt_copy_sge(rvt::Qp *, rvt::SgeState *ss, const void *data, uint32_t length,
			     bool release, bool copy_last)
{
	using namespace rvt;

	const char *from = static_cast<const char *>(data);
	const size_t tail = copy_last ? std::min<size_t>(length, polled_tail) : 0;
	const size_t body = length - tail;

	if (char *to = ss->row(length)) {
		copy_bytes(to, from, body);
		if (tail)
			copy_bytewise(to + body, from + body, tail);
		ss->advance(length, release);
	} else {
		scatter(*ss, from, body, tail, release);
	}
}
