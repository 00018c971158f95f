// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "trace.h"

#include <mutex>
#include <sstream>
#include <utility>

unsigned int rvt_trace_watched;

namespace
{

std::mutex lock;
std::vector<std::string> lines;

struct Field {
	const char *name;
	uint64_t value;
};

void record(const char *event, std::initializer_list<Field> fields)
{
	std::ostringstream line;

	line << event;
	for (const Field &field : fields)
		line << ' ' << field.name << '=' << field.value;
	std::lock_guard guard(lock);

	lines.push_back(line.str());
}

} // namespace

TraceRecorder::TraceRecorder(std::initializer_list<rvt_trace_event> events)
{
	for (rvt_trace_event event : events)
		rvt_trace_watched |= 1u << event;
}

TraceRecorder::~TraceRecorder()
{
	rvt_trace_watched = 0;
	take();
}

std::vector<std::string> TraceRecorder::take()
{
	std::lock_guard guard(lock);

	return std::exchange(lines, {});
}

extern "C" {

void rvt_trace_post_send(uint16_t lid, uint32_t qpn, const struct rvt_swqe *wqe)
{
	record("post_send", {{"lid", lid},
			     {"qpn", qpn},
			     {"wr_id", wqe->wr_id},
			     {"opcode", wqe->opcode},
			     {"bytes", wqe->length}});
}

void rvt_trace_post_recv(uint16_t lid, uint32_t qpn, uint64_t wr_id, uint32_t num_sge)
{
	record("post_recv", {{"lid", lid}, {"qpn", qpn}, {"wr_id", wr_id}, {"num_sge", num_sge}});
}

void rvt_trace_execute(uint16_t lid, uint32_t qpn, const struct rvt_swqe *wqe, uint32_t dest_qpn)
{
	record("execute", {{"lid", lid},
			   {"qpn", qpn},
			   {"wr_id", wqe->wr_id},
			   {"opcode", wqe->opcode},
			   {"bytes", wqe->length},
			   {"dest", dest_qpn}});
}

void rvt_trace_wait(uint16_t lid, uint32_t qpn, enum rvt_trace_wait_for what, uint64_t wr_id,
		    uint64_t ns, uint32_t left)
{
	record("wait", {{"lid", lid},
			{"qpn", qpn},
			{"for", what},
			{"wr_id", wr_id},
			{"ns", ns},
			{"left", left}});
}

void rvt_trace_complete(uint16_t lid, const void *, const struct rvt_wc *wc)
{
	record("complete", {{"lid", lid},
			    {"qpn", wc->qp_num},
			    {"wr_id", wc->wr_id},
			    {"opcode", wc->opcode},
			    {"status", wc->status},
			    {"bytes", wc->byte_len}});
}

void rvt_trace_qp_state(uint16_t lid, uint32_t qpn, enum rvt_qp_state from, enum rvt_qp_state to)
{
	record("qp_state", {{"lid", lid}, {"qpn", qpn}, {"from", from}, {"to", to}});
}

void rvt_trace_qp_error(uint16_t lid, uint32_t qpn, enum rvt_trace_cause cause,
			enum rvt_wc_status status)
{
	record("qp_error", {{"lid", lid}, {"qpn", qpn}, {"cause", cause}, {"status", status}});
}

void rvt_trace_mr(uint16_t lid, enum rvt_trace_mr_event what, uint32_t key, uint64_t iova,
		  uint64_t length, uint32_t access)
{
	record("mr", {{"lid", lid},
		      {"what", what},
		      {"key", key},
		      {"iova", iova},
		      {"length", length},
		      {"access", access}});
}

void rvt_trace_cq(uint16_t lid, const void *, enum rvt_trace_cq_event what, uint32_t cqe)
{
	record("cq", {{"lid", lid}, {"what", what}, {"cqe", cqe}});
}
}
