/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* trace.h - the core's trace events, recorded for tests. */
#ifndef RVT_HOST_TRACE_H
#define RVT_HOST_TRACE_H

#include <rvt/trace.h>

#include <string>
#include <vector>

/*
 * While one exists, the events asked for are recorded, each as a line: its
 * name, then "name=number" for each field in the order of rvt/trace.h.
 */
class TraceRecorder
{
public:
	explicit TraceRecorder(std::initializer_list<rvt_trace_event> events);
	~TraceRecorder();
	TraceRecorder(const TraceRecorder &) = delete;

	/* What was recorded since the last call. */
	std::vector<std::string> take();
};

#endif
