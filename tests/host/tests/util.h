/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the tests share. */
#ifndef RVT_TESTS_UTIL_H
#define RVT_TESTS_UTIL_H

#include "world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

constexpr int einval = -22;
constexpr int enomem = -12;
constexpr int eopnotsupp = -95;

/* The line of the test that called (clang 14 has no std::source_location). */
struct Where {
	const char *file;
	int number;

	static constexpr Where here(const char *file = __builtin_FILE(),
				    int number = __builtin_LINE())
	{
		return {file, number};
	}
	const char *file_name() const { return file; }
	int line() const { return number; }
};

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
rvt_wc expect_wc(Cq &cq, const Want &want, Where where = Where::here());
/* The queue is empty, also after all work is done. */
void expect_none(Cq &cq, Where where = Where::here());
/* Everything in @ids completes in this order with @status. */
void expect_run(Cq &cq, const std::vector<uint64_t> &ids, uint32_t status,
		Where where = Where::here());
void expect_state(Qp &qp, rvt_qp_state state, Where where = Where::here());
/* A message goes from a to b and arrives: both are in working order. */
void expect_works(Qp &a, Qp &b, Where where = Where::here());

/* Two attribute sets of a queue pair are the same. */
void expect_same(const rvt_qp_attr &a, const rvt_qp_attr &b, Where where = Where::here());

uint64_t rnr_ns(unsigned int code);
inline uint64_t timeout_ns(unsigned int code)
{
	return 4096ull << code;
}

#endif
