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

Piece Extent::piece_of_region() const
{
	if (char *data = mr->flat(addr))
		return {data, size};
	const Piece row = mr->walk(addr).row(size);

	return {row.data, std::min(row.size, size)};
}

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

// Offers other tasks the processor from time to time.
class Pause
{
public:
	void copied(size_t n)
	{
		since_ += n;
		if (since_ < copy_slice) [[likely]]
			return;
		since_ = 0;
		rvt_os_resched();
	}

private:
	size_t since_ = 0;
};

// One side of a copy of @length bytes, and the row of memory it has come to. A row is
// used up before the next is looked for: adjacent pages are found once, however short
// the other side's rows are. No page is looked at for more bytes than are to be copied.
class Rows
{
public:
	Rows(const Extent &extent, size_t length)
		: enough_(std::min(length, copy_slice)), row_{extent.flat(), length}
	{
		if (!row_.data) {
			walk_ = extent.mr->walk(extent.addr);
			row_ = walk_.row(enough_);
		}
	}
	char *data() const { return row_.data; }
	// Bytes in this row.
	size_t size()
	{
		if (!row_.size)
			row_ = walk_.row(enough_);
		return row_.size;
	}
	void use(size_t n)
	{
		row_.data += n;
		row_.size -= n;
	}

private:
	const size_t enough_;
	Piece row_;
	PageWalk walk_;
};

template <auto copy>
void move_extent(const Extent &to, const Extent &from, size_t length, Pause &pause)
{
	Rows source(from, length), target(to, length);

	while (length) {
		const size_t row = std::min(source.size(), target.size());
		const size_t n = std::min({row, length, copy_slice});

		copy(target.data(), source.data(), n);
		source.use(n);
		target.use(n);
		length -= n;
		pause.copied(n);
	}
}

// From list to list, as far as both reach.
template <auto copy>
void move_list(SgeState &to, SgeState &from, size_t length, bool release)
{
	Pause pause;

	while (length) {
		const Extent source = from.extent(length), target = to.extent(length);
		const size_t n = std::min(source.size, target.size);

		if (!n)
			return;
		move_extent<copy>(target, source, n, pause);
		from.advance(n, release);
		to.advance(n, release);
		length -= n;
	}
}

} // namespace

void copy_list(SgeState &to, SgeState &from, size_t length, bool release, bool copy_last)
{
	const size_t tail = copy_last ? std::min(length, polled_tail) : 0;

	move_list<copy_bytes>(to, from, length - tail, release);
	move_list<copy_bytewise>(to, from, tail, release);
}

bool names_place(const Pd &pd, const BoundSge &sge, uint32_t access)
{
	if (sge.key == 0)
		return !pd.user;
	return granting(pd, {sge.addr, 0, sge.key}, access) != nullptr;
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
	from.set(1);
	copy_list(*ss, from, length, release, copy_last);
}
