// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Which queue pair numbers are in use: a bitmap of the 24-bit space whose
// pages are made when first needed.
#ifndef RVT_QP_QPN_H
#define RVT_QP_QPN_H

#include <array>
#include <atomic>

#include "base/lock.h"
#include "base/types.h"

namespace rvt
{

class QpnMap
{
public:
	static constexpr uint32_t page_bits = 32768;
	static constexpr uint32_t pages = Qpn::limit / page_bits;
	// Even numbers first, then odd ones: a freed number rests for long.
	static constexpr uint32_t step = 2;

	QpnMap() = default;
	~QpnMap();

	// As init_qpn_table(), alloc_qpn(), rvt_free_qpn() say.
	Errno init(uint32_t start, uint32_t reserved_from, uint32_t reserved_to);
	Errno alloc(QpType type, Qpn &qpn) RVT_EXCLUDES(lock_);
	void free(Qpn qpn) RVT_EXCLUDES(lock_);
	void clear();

private:
	struct Page {
		std::array<uint64_t, page_bits / 64> word;
	};

	// The page that holds a number; made if need be, null without memory.
	Page *page(uint32_t number) RVT_REQUIRES(lock_);
	bool take(uint32_t number, bool &no_memory) RVT_REQUIRES(lock_);

	Mutex lock_{RVT_LOCK_DEVICE};
	std::array<Page *, pages> map_ RVT_GUARDED_BY(lock_){};
	uint32_t last_ RVT_GUARDED_BY(lock_) = 0;
	uint32_t special_ RVT_GUARDED_BY(lock_) = 0; // bits 0, 1: QP0, QP1
};

} // namespace rvt

extern "C" {

/**
 * init_qpn_table - prepare the map of queue pair numbers
 * @dev: the device
 * @table: the map
 * @start: the number after which allocation begins
 * @reserved_from: first number never to be given out
 * @reserved_to: last of them, inclusive; equal to 0 with @reserved_from 0: none
 *
 * Context: process. Return: ok; inval (the range ends before it begins);
 * nomem (free_qpn_table() cleans up).
 */
rvt::Errno init_qpn_table(rvt::Device *dev, rvt::QpnMap *table, uint32_t start,
			  uint32_t reserved_from, uint32_t reserved_to);

/**
 * free_qpn_table - free the map's pages
 * @table: the map
 *
 * Context: process; nobody uses the map any more. NULL pages are fine.
 */
void free_qpn_table(rvt::QpnMap *table);

/**
 * alloc_qpn - take a queue pair number
 * @dev: the device
 * @table: the map
 * @type: SMI and GSI have the numbers 0 and 1, once per port
 * @port: port number, 1
 * @qpn: result
 *
 * Numbers run upwards by two, even ones first, then odd ones, so that a
 * freed number is not used again before the space of 2^24 wrapped.
 * Context: process. Locks: takes the map's.
 * Return: ok; inval (QP0 or QP1 in use, port unknown); nomem (no memory, or
 * all numbers in use).
 */
rvt::Errno alloc_qpn(rvt::Device *dev, rvt::QpnMap *table, rvt::QpType type, uint8_t port,
		     rvt::Qpn *qpn);

/**
 * rvt_free_qpn - give a queue pair number back; also QP0 and QP1
 * @table: the map
 * @qpn: the number
 *
 * A number that is not in use is ignored. Context: process.
 */
void rvt_free_qpn(rvt::QpnMap *table, rvt::Qpn qpn);
}

#endif
