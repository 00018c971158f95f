/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the tests share. */
#ifndef RVT_TESTS_UTIL_H
#define RVT_TESTS_UTIL_H

#include "world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <source_location>

constexpr int einval = -22;
constexpr int enomem = -12;
constexpr int eopnotsupp = -95;

constexpr int rc_ok = 0;

/* What a completion must say; what is left out is not looked at. */
struct Want {
	uint64_t id;
	uint32_t status = RVT_WC_SUCCESS;
	std::optional<uint32_t> opcode = {};
	std::optional<uint32_t> byte_len = {};
	std::optional<uint32_t> flags = {};
	std::optional<uint32_t> imm = {};
	std::optional<uint32_t> qp_num = {};
	std::optional<uint32_t> src_qp = {};
	std::optional<uint16_t> slid = {};
	std::optional<uint8_t> port = {};
};

const char *status_name(uint32_t status);

/* The next completion is there and says what is wanted. */
rvt_wc expect_wc(Cq &cq, const Want &want,
		 std::source_location where = std::source_location::current());
/* The queue is empty, also after all work is done. */
void expect_none(Cq &cq, std::source_location where = std::source_location::current());
/* Everything in @ids completes in this order with @status. */
void expect_run(Cq &cq, const std::vector<uint64_t> &ids, uint32_t status,
		std::source_location where = std::source_location::current());
void expect_state(Qp &qp, rvt_qp_state state,
		  std::source_location where = std::source_location::current());
/* A message goes from a to b and arrives: both are in working order. */
void expect_works(Qp &a, Qp &b, std::source_location where = std::source_location::current());

/* Two attribute sets of a queue pair are the same. */
void expect_same(const rvt_qp_attr &a, const rvt_qp_attr &b,
		 std::source_location where = std::source_location::current());

uint64_t rnr_ns(unsigned int code);
inline uint64_t timeout_ns(unsigned int code)
{
	return 4096ull << code;
}

#endif
