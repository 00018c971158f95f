// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Allocation of queue pair numbers.
#include "qp/qpn.h"

#include "base/memory.h"

namespace rvt
{

QpnMap::~QpnMap()
{
	clear();
}

void QpnMap::clear()
{
	MutexGuard guard(lock_);

	for (Page *&p : map_) {
		destroy(p);
		p = nullptr;
	}
}

Errno QpnMap::init(uint32_t start, uint32_t reserved_from, uint32_t reserved_to)
{
	MutexGuard guard(lock_);
	bool no_memory = false;

	if (reserved_to < reserved_from || reserved_to >= Qpn::limit)
		return Errno::inval;
	last_ = start;
	for (uint32_t n = reserved_from; reserved_to && n <= reserved_to; n++) {
		take(n, no_memory);
		if (no_memory)
			return Errno::nomem;
	}
	return Errno::ok;
}

QpnMap::Page *QpnMap::page(uint32_t number)
{
	Page *&p = map_[number / page_bits];

	if (!p)
		p = create<Page>();
	return p;
}

bool QpnMap::take(uint32_t number, bool &no_memory)
{
	if (number == Qpn::multicast)
		return false;
	Page *p = page(number);

	if (!p) {
		no_memory = true;
		return false;
	}
	uint64_t &word = p->word[number % page_bits / 64];
	const uint64_t bit = 1ull << (number % 64);

	if (word & bit)
		return false;
	word |= bit;
	return true;
}

Errno QpnMap::alloc(QpType type, Qpn &qpn)
{
	MutexGuard guard(lock_);

	if (is_management(type)) {
		const uint32_t number = type == QpType::gsi ? 1 : 0;

		if (special_ & 1u << number)
			return Errno::inval;
		special_ |= 1u << number;
		qpn = Qpn(number);
		return Errno::ok;
	}

	bool no_memory = false;
	uint32_t number = last_;
	for (uint32_t tries = 0; tries < Qpn::limit; tries++) {
		number += step;
		// At the end of the space the other parity has its turn, after 0 and 1.
		if (number >= Qpn::limit)
			number = step | ((number & 1) ^ 1);
		if (take(number, no_memory)) {
			last_ = number;
			qpn = Qpn(number);
			return Errno::ok;
		}
		if (no_memory)
			break;
	}
	return Errno::nomem;
}

void QpnMap::free(Qpn qpn)
{
	MutexGuard guard(lock_);

	if (qpn.is_special()) {
		special_ &= ~(1u << qpn.value());
		return;
	}
	if (Page *p = map_[qpn.value() / page_bits])
		p->word[qpn.value() % page_bits / 64] &= ~(1ull << (qpn.value() % 64));
}

} // namespace rvt

using namespace rvt;

extern "C" {

Errno init_qpn_table(Device *, QpnMap *table, uint32_t start, uint32_t reserved_from,
		     uint32_t reserved_to)
{
	return table->init(start, reserved_from, reserved_to);
}

void free_qpn_table(QpnMap *table)
{
	table->clear();
}

Errno alloc_qpn(Device *, QpnMap *table, QpType type, uint8_t port, Qpn *qpn)
{
	if (is_management(type) && port != 1)
		return Errno::inval;
	return table->alloc(type, *qpn);
}

void rvt_free_qpn(QpnMap *table, Qpn qpn)
{
	table->free(qpn);
}
}
