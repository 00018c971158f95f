// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Real threads under ThreadSanitizer: what the simulated machine cannot see,
 * because there one instruction follows the other. Threads send to and fro,
 * move queue pairs through their states, take memory away and make new, make
 * and destroy queue pairs, for some seconds.
 *
 *	rvt-stress [SECONDS]
 */
#include "native/user.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace
{

using namespace native;

struct Shared {
	Device dev;
	std::atomic<bool> stop{false};
	std::atomic<uint64_t> messages{0}, errors{0}, lives{0};
};

uint32_t next(uint32_t &x)
{
	x = x * 1664525 + 1013904223;
	return x >> 8;
}

int modify(rvt_core_qp *qp, rvt_qp_state state)
{
	rvt_qp_attr a = {};

	a.state = state;
	return rvt_core_qp_modify(qp, &a, RVT_QP_STATE);
}

rvt_qp_state state_of(Qp &qp)
{
	rvt_qp_attr attr;

	rvt_core_qp_query(qp.raw, &attr);
	return attr.state;
}

/* One thread's pair and memory; it posts, polls, and breaks things. */
void sender(Shared &s, uint32_t seed)
{
	uint8_t *mem = static_cast<uint8_t *>(zeroed(8192, 4096));

	while (!s.stop) {
		Pair pair(s.dev, 16, 1);
		auto mr = std::make_unique<Mr>(s.dev, mem, 8192);
		rvt_wc wc;

		for (int i = 0; i < 300 && !s.stop; i++) {
			rvt_sge from = {mr->iova, 64, mr->key}, to = {mr->iova + 4096, 64, mr->key};

			pair.b.recv(1, to);
			switch (next(seed) % 4) {
			case 0:
				pair.a.post(RVT_WR_SEND, &from, 1);
				break;
			case 1:
				pair.a.post(RVT_WR_RDMA_WRITE, &from, 1, to.addr, mr->key);
				break;
			case 2:
				from.length = 8;
				pair.a.post(RVT_WR_ATOMIC_FETCH_AND_ADD, &from, 1, to.addr,
					    mr->key);
				break;
			default:
				pair.a.post(RVT_WR_RDMA_READ, &from, 1, to.addr, mr->key);
				break;
			}
			while (pair.scq.poll(&wc) || pair.rcq.poll(&wc))
				(wc.status ? s.errors : s.messages)++;
			if (next(seed) % 64 == 0)
				mr = std::make_unique<Mr>(s.dev, mem, 8192);
			if (next(seed) % 50 == 0)
				modify(pair.b.raw, RVT_QPS_ERR);
			if (next(seed) % 8 == 0 &&
			    (state_of(pair.a) == RVT_QPS_ERR || state_of(pair.b) == RVT_QPS_ERR)) {
				modify(pair.a.raw, RVT_QPS_RESET);
				modify(pair.b.raw, RVT_QPS_RESET);
				pair.a.connect(pair.b.num);
				pair.b.connect(pair.a.num);
			}
		}
		s.lives++;
	}
	free(mem);
}

/* Two threads on the two ends of one pair, and a third that resets it. */
void contended(Shared &s)
{
	uint8_t *mem = static_cast<uint8_t *>(zeroed(16384, 4096));
	{
		Mr mr(s.dev, mem, 16384);
		Cq acq(s.dev, 200), bcq(s.dev, 200);
		Qp a(s.dev, RVT_QPT_RC, acq, acq, 16, 1), b(s.dev, RVT_QPT_RC, bcq, bcq, 16, 1);

		a.connect(b.num);
		b.connect(a.num);
		auto end = [&](Qp &qp, Cq &cq, uint32_t place) {
			uint32_t seed = place;
			rvt_wc wc;

			while (!s.stop) {
				rvt_sge from = {mr.iova + place * 4096, 8, mr.key};
				rvt_sge to = {mr.iova + (place + 1) * 4096, 8, mr.key};

				qp.recv(1, to);
				/* Atomics may meet; plain bytes of two threads may not. */
				if (next(seed) % 2)
					qp.post(RVT_WR_SEND, &from, 1);
				else
					qp.post(RVT_WR_ATOMIC_FETCH_AND_ADD, &from, 1,
						mr.iova + 1024, mr.key);
				while (cq.poll(&wc))
					(wc.status ? s.errors : s.messages)++;
			}
		};
		std::thread t1(end, std::ref(a), std::ref(acq), 0),
			t2(end, std::ref(b), std::ref(bcq), 2);
		uint32_t seed = 99;

		while (!s.stop) {
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
			rvt_core_qp *qp = next(seed) % 2 ? a.raw : b.raw;
			rvt_qp_attr attr;
			uint64_t counters[RVT_COUNTERS];

			rvt_core_qp_query(qp, &attr);
			rvt_core_counters_read(s.dev.raw, counters);
			switch (next(seed) % 4) {
			case 0:
				modify(qp, RVT_QPS_SQD);
				modify(qp, RVT_QPS_RTS);
				break;
			case 1:
				modify(qp, RVT_QPS_ERR);
				break;
			default:
				break;
			}
			if (state_of(a) == RVT_QPS_ERR) {
				modify(a.raw, RVT_QPS_RESET);
				modify(b.raw, RVT_QPS_RESET);
				a.connect(b.num);
				b.connect(a.num);
			}
		}
		t1.join();
		t2.join();
	}
	free(mem);
}

} // namespace

int main(int argc, char **argv)
{
	const int seconds = argc > 1 ? atoi(argv[1]) : 10;
	Shared s;
	std::vector<std::thread> threads;

	for (uint32_t i = 0; i < 3; i++)
		threads.emplace_back(sender, std::ref(s), i + 1);
	threads.emplace_back(contended, std::ref(s));
	std::this_thread::sleep_for(std::chrono::seconds(seconds));
	s.stop = true;
	for (std::thread &t : threads)
		t.join();
	printf("%llu messages, %llu failed or flushed, %llu lives, no data race\n",
	       static_cast<unsigned long long>(s.messages),
	       static_cast<unsigned long long>(s.errors), static_cast<unsigned long long>(s.lives));
	return 0;
}
