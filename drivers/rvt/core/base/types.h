// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Types that cannot be confused, and the numbers of core.h as enum classes.
#ifndef RVT_BASE_TYPES_H
#define RVT_BASE_TYPES_H

#include <compare>
#include <cstddef>
#include <cstdint>

#include <rvt/core.h>

namespace rvt
{

// 0 or a negative errno, as the verbs return it.
enum class [[nodiscard]] Errno : int{
	ok = 0, nomem = -12, acces = -13, exist = -17, inval = -22, opnotsupp = -95,
};

constexpr bool failed(Errno e)
{
	return e != Errno::ok;
}

constexpr int to_int(Errno e)
{
	return static_cast<int>(e);
}

enum class QpType : uint8_t {
	smi = RVT_QPT_SMI,
	gsi = RVT_QPT_GSI,
	rc = RVT_QPT_RC,
	uc = RVT_QPT_UC,
	ud = RVT_QPT_UD,
};

// UD, SMI and GSI: every message carries its own address.
constexpr bool is_datagram(QpType t)
{
	return t != QpType::rc && t != QpType::uc;
}

// Queue pairs 0 and 1, which are the kernel's.
constexpr bool is_management(QpType t)
{
	return t == QpType::smi || t == QpType::gsi;
}

enum class QpState : uint8_t {
	reset = RVT_QPS_RESET,
	init = RVT_QPS_INIT,
	rtr = RVT_QPS_RTR,
	rts = RVT_QPS_RTS,
	sqd = RVT_QPS_SQD,
	sqe = RVT_QPS_SQE,
	err = RVT_QPS_ERR,
};

enum class MigState : uint8_t {
	migrated = RVT_MIG_MIGRATED,
	rearm = RVT_MIG_REARM,
	armed = RVT_MIG_ARMED,
};

// A packet sequence number: 24 bits, and it wraps (InfiniBand 9.7.2).
class Psn
{
public:
	static constexpr uint32_t mask = 0xffffff;

	constexpr Psn() = default;
	constexpr explicit Psn(uint32_t value) : value_(value & mask) {}
	constexpr uint32_t value() const { return value_; }
	constexpr Psn operator+(uint32_t n) const { return Psn(value_ + n); }
	constexpr bool operator==(const Psn &) const = default;

private:
	uint32_t value_ = 0;
};

static_assert((Psn(0xfffffe) + 3).value() == 1, "a PSN wraps at 24 bits");

// A queue pair number: 24 bits; 0 and 1 are the port's management QPs.
class Qpn
{
public:
	static constexpr uint32_t limit = 1u << 24;
	static constexpr uint32_t multicast = 0xffffff;

	constexpr Qpn() = default;
	constexpr explicit Qpn(uint32_t value) : value_(value) {}
	constexpr uint32_t value() const { return value_; }
	constexpr bool is_special() const { return value_ <= 1; }
	constexpr auto operator<=>(const Qpn &) const = default;

private:
	uint32_t value_ = 0;
};

// A port's identifier on the fabric.
class Lid
{
public:
	constexpr Lid() = default;
	constexpr explicit Lid(uint16_t value) : value_(value) {}
	constexpr uint16_t value() const { return value_; }
	constexpr bool is_multicast() const
	{
		return value_ >= RVT_MCAST_LID_BASE && value_ != RVT_PERMISSIVE_LID;
	}
	constexpr bool operator==(const Lid &) const = default;

private:
	uint16_t value_ = 0;
};

// The names of core.h's opaque structs inside the core.
using Device = ::rvt_core_dev;
using Pd = ::rvt_core_pd;
using Cq = ::rvt_core_cq;
using Srq = ::rvt_core_srq;
using Qp = ::rvt_core_qp;
using Mr = ::rvt_core_mr;

// Add one, and if equal to size then zero: ring sizes are not powers of two.
constexpr uint32_t ring_next(uint32_t i, uint32_t size)
{
	return i + 1 == size ? 0 : i + 1;
}

// Entries between tail and head.
constexpr uint32_t ring_count(uint32_t head, uint32_t tail, uint32_t size)
{
	return head >= tail ? head - tail : size - (tail - head);
}

} // namespace rvt

#endif
