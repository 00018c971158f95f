// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Moving through lists of pieces, and the copy.
#include "mr/bind.h"

#include <atomic>

namespace rvt
{

namespace
{

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
	__builtin_memcpy(to, from, n);
}

} // namespace

void SgeState::release_all()
{
	for (; cur < num; cur++) {
		if (sge[cur].mr)
			sge[cur].mr->unpin();
	}
	clear();
}

void copy_row_slowly(char *to, const char *from, size_t length, bool copy_last)
{
	const size_t tail = copy_last ? std::min(length, polled_tail) : 0;

	if (length > tail)
		copy_in_slices(to, from, length - tail);
	if (tail)
		copy_bytewise(to + length - tail, from + length - tail, tail);
}

namespace
{

// Use up the first bytes of a piece.
void shorten(Piece &piece, size_t n)
{
	piece.data += n;
	piece.size -= n;
}

// From list to list, as far as both reach; other tasks may run now and then. A
// piece is used up before the next is looked for: adjacent pages are found once,
// however short the other side's pieces are.
template <auto copy>
void move_pieces(SgeState &to, SgeState &from, size_t length, bool release)
{
	Piece source = {nullptr, 0}, target = {nullptr, 0};
	size_t since = 0;

	while (length) {
		if (!source.size)
			source = from.piece(std::min(length, copy_slice));
		if (!target.size)
			target = to.piece(std::min(length, copy_slice));

		const size_t n = std::min(source.size, target.size);

		if (!n)
			return;
		copy(target.data, source.data, n);
		shorten(source, n);
		shorten(target, n);
		from.advance(n, release);
		to.advance(n, release);
		length -= n;
		since += n;
		if (since >= copy_slice) {
			since = 0;
			rvt_os_resched();
		}
	}
}

} // namespace

void copy_list(SgeState &to, SgeState &from, size_t length, bool release, bool copy_last)
{
	const size_t tail = copy_last ? std::min(length, polled_tail) : 0;

	move_pieces<copy_bytes>(to, from, length - tail, release);
	move_pieces<copy_bytewise>(to, from, tail, release);
}

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

	if (char *to = ss->row(length)) {
		copy_row(to, static_cast<const char *>(data), length, copy_last);
		ss->advance(length, release);
		return;
	}
	BoundSge whole = {nullptr, reinterpret_cast<uint64_t>(data), length, 0};
	SgeState from;

	from.sge = &whole;
	from.set(1, length);
	copy_list(*ss, from, length, release, copy_last);
}
