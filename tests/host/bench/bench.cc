// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the core costs, on this machine as it is: Google Benchmark. */
#include "device.h"
#include "mr/bind.h"
#include "native/user.h"

#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <thread>

namespace
{

using namespace native;

constexpr size_t small = 8;

/* --- one 8-byte message, from post to both completions ------------------------ */

struct Ping {
	Device dev;
	Pair pair{dev};
	uint8_t *mem = static_cast<uint8_t *>(zeroed(8192, 4096));
	Mr mr{dev, mem, 8192};
	rvt_sge from = {mr.iova, small, mr.key};
	rvt_sge to = {mr.iova + 4096, small, mr.key};

	~Ping() { free(mem); }

	void completed(Cq &cq)
	{
		rvt_wc wc;

		if (!cq.poll(&wc) || wc.status != RVT_WC_SUCCESS) {
			fprintf(stderr, "no completion\n");
			abort();
		}
		benchmark::DoNotOptimize(wc);
	}
};

void send_8_bytes(benchmark::State &state)
{
	Ping p;

	for (auto _ : state) {
		p.pair.b.recv(2, p.to);
		p.pair.a.post(RVT_WR_SEND, &p.from, 1);
		p.completed(p.pair.rcq);
		p.completed(p.pair.scq);
	}
	state.SetItemsProcessed(state.iterations());
}
BENCHMARK(send_8_bytes);

void one_sided(benchmark::State &state, uint32_t opcode)
{
	Ping p;

	for (auto _ : state) {
		p.pair.a.post(opcode, &p.from, 1, p.to.addr, p.mr.key);
		p.completed(p.pair.scq);
	}
	state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(one_sided, write_8_bytes, uint32_t(RVT_WR_RDMA_WRITE));
BENCHMARK_CAPTURE(one_sided, read_8_bytes, uint32_t(RVT_WR_RDMA_READ));
BENCHMARK_CAPTURE(one_sided, fetch_add, uint32_t(RVT_WR_ATOMIC_FETCH_AND_ADD));
BENCHMARK_CAPTURE(one_sided, compare_swap, uint32_t(RVT_WR_ATOMIC_CMP_AND_SWP));

/* --- many bytes, beside memcpy ---------------------------------------------------- */

void sizes(benchmark::internal::Benchmark *b)
{
	for (int64_t n = 64; n <= 64 << 20; n *= 4)
		b->Arg(n);
	b->Unit(benchmark::kMicrosecond);
}

/* The same for all: where pages lie makes a difference. */
struct Buffers {
	static constexpr size_t bytes = 64 << 20;
	uint8_t *from = static_cast<uint8_t *>(zeroed(bytes, 4096));
	uint8_t *to = static_cast<uint8_t *>(zeroed(bytes, 4096));
};

Buffers &buffers()
{
	static Buffers b;

	return b;
}

void plain_memcpy(benchmark::State &state)
{
	const auto n = static_cast<size_t>(state.range(0));

	for (auto _ : state) {
		memcpy(buffers().to, buffers().from, n);
		benchmark::ClobberMemory();
	}
	state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(plain_memcpy)->Apply(sizes);

/* Into a list as the engine hands it over: its keys resolved, its end not reached. */
void copy_sge(benchmark::State &state, uint32_t pieces)
{
	const auto n = static_cast<size_t>(state.range(0));
	const auto each = static_cast<uint32_t>(n / pieces);
	Device dev;
	Mr target(dev, buffers().to, n);
	std::vector<rvt::BoundSge> room(pieces);
	rvt::SgeState list;
	const int section = rvt_os_read_lock();

	list.sge = room.data();
	list.clear();
	for (uint32_t i = 0; i < pieces; i++) {
		list.spare() = {nullptr, target.iova + i * each, each, target.key};
		must(rvt::bind_sge(*dev.pd, list.spare(), RVT_ACCESS_LOCAL_WRITE), "bind_sge");
		list.add();
	}
	for (auto _ : state) {
		list.set(pieces);
		rvt_copy_sge(nullptr, &list, buffers().from, static_cast<uint32_t>(n), false,
			     false);
		benchmark::ClobberMemory();
	}
	rvt_os_read_unlock(section);
	state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(copy_sge, one_piece, 1u)->Apply(sizes);
BENCHMARK_CAPTURE(copy_sge, sixteen_pieces, 16u)->Apply(sizes);

/* A whole message, beside them. */
void write_bytes(benchmark::State &state, uint32_t pieces, Pages from, Pages to)
{
	const auto n = static_cast<size_t>(state.range(0));
	Device dev;
	Pair pair(dev, 8, pieces);
	Mr source(dev, buffers().from, n, from), target(dev, buffers().to, n, to);
	std::vector<rvt_sge> sge;
	rvt_wc wc;

	for (uint32_t i = 0; i < pieces; i++)
		sge.push_back({source.iova + i * (n / pieces), static_cast<uint32_t>(n / pieces),
			       source.key});
	for (auto _ : state) {
		pair.a.post(RVT_WR_RDMA_WRITE, sge.data(), pieces, target.iova, target.key);
		must(pair.scq.poll(&wc) && wc.status == RVT_WC_SUCCESS, "completion");
	}
	state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(write_bytes, one_piece, 1u, Pages::in_a_row, Pages::in_a_row)->Apply(sizes);
BENCHMARK_CAPTURE(write_bytes, sixteen_pieces, 16u, Pages::in_a_row, Pages::in_a_row)->Apply(sizes);
BENCHMARK_CAPTURE(write_bytes, scattered_pages, 1u, Pages::scattered, Pages::scattered)
	->Apply(sizes);
BENCHMARK_CAPTURE(write_bytes, scattered_target, 1u, Pages::nearly_in_a_row, Pages::scattered)
	->Apply(sizes);

/* --- look-ups -------------------------------------------------------------------------- */

constexpr size_t many = 1000;

void find_queue_pair(benchmark::State &state)
{
	Device dev;
	Cq cq(dev, 16);
	std::vector<std::unique_ptr<Qp>> qps;
	size_t at = 0;

	for (size_t i = 0; i < many; i++) {
		qps.push_back(std::make_unique<Qp>(dev, RVT_QPT_RC, cq, cq, 1, 1));
		qps.back()->connect(qps.back()->num);
	}
	for (auto _ : state) {
		const int section = rvt_os_read_lock();

		benchmark::DoNotOptimize(dev.raw->qps.find(rvt::Qpn(qps[at]->num)));
		rvt_os_read_unlock(section);
		at = (at + 7) % many;
	}
}
BENCHMARK(find_queue_pair);

void find_region(benchmark::State &state)
{
	Device dev;
	std::vector<std::unique_ptr<Mr>> regions;
	size_t at = 0;

	for (size_t i = 0; i < many; i++)
		regions.push_back(std::make_unique<Mr>(dev, buffers().to, 8192));
	for (auto _ : state) {
		const int section = rvt_os_read_lock();
		const Mr &mr = *regions[at];
		rvt::BoundSge piece = {nullptr, mr.iova, small, mr.key};

		benchmark::DoNotOptimize(rvt::bind_sge(*dev.pd, piece, RVT_ACCESS_LOCAL_WRITE));
		benchmark::DoNotOptimize(piece);
		rvt_os_read_unlock(section);
		at = (at + 7) % many;
	}
}
BENCHMARK(find_region);

/* --- flat: the cost of a message among many objects -------------------------------- */

void among_queue_pairs(benchmark::State &state)
{
	Device dev;
	std::vector<std::unique_ptr<Qp>> others;
	Cq cq(dev, 16);
	uint8_t *mem = static_cast<uint8_t *>(zeroed(8192, 4096));
	{
		Mr mr(dev, mem, 8192);
		const size_t n = static_cast<size_t>(state.range(0));

		/* In the table, and in use in turn. */
		for (size_t i = 0; i < n; i++)
			others.push_back(std::make_unique<Qp>(dev, RVT_QPT_RC, cq, cq, 1, 1));
		for (size_t i = 0; i + 1 < n; i += 2) {
			others[i]->connect(others[i + 1]->num);
			others[i + 1]->connect(others[i]->num);
		}
		rvt_sge from = {mr.iova, small, mr.key};
		size_t at = 0;
		rvt_wc wc;

		for (auto _ : state) {
			others[at]->post(RVT_WR_RDMA_WRITE, &from, 1, mr.iova + 4096, mr.key);
			must(cq.poll(&wc) && wc.status == RVT_WC_SUCCESS, "completion");
			/* A few of them, far apart: what counts is the look-up. */
			at = (at + n / 4 / 2 * 2) % n / 2 * 2;
		}
		others.clear();
	}
	free(mem);
}
BENCHMARK(among_queue_pairs)->RangeMultiplier(10)->Range(10, 100000);

void among_regions(benchmark::State &state)
{
	Device dev;
	Pair pair(dev);
	uint8_t *mem = static_cast<uint8_t *>(zeroed(8192, 4096));
	std::vector<std::unique_ptr<Mr>> regions;
	const size_t n = static_cast<size_t>(state.range(0));
	size_t at = 0;
	rvt_wc wc;

	for (size_t i = 0; i < n; i++)
		regions.push_back(std::make_unique<Mr>(dev, mem, 8192));
	for (auto _ : state) {
		Mr &mr = *regions[at];
		rvt_sge from = {mr.iova, small, mr.key};

		pair.a.post(RVT_WR_RDMA_WRITE, &from, 1, mr.iova + 4096, mr.key);
		must(pair.scq.poll(&wc) && wc.status == RVT_WC_SUCCESS, "completion");
		at = (at + n / 4) % n;
	}
	regions.clear();
	free(mem);
}
BENCHMARK(among_regions)->RangeMultiplier(10)->Range(1, 100000);

/* Receives that wait, on as many queue pairs as hold them; one more comes and goes. */
void among_posted(benchmark::State &state)
{
	constexpr uint32_t most = RVT_MAX_QP_WR - 1;
	Ping p;
	std::vector<std::unique_ptr<Qp>> senders, receivers;
	size_t at = 0;

	for (auto left = static_cast<uint32_t>(state.range(0)); left;) {
		const uint32_t n = std::min(left, most);

		senders.push_back(
			std::make_unique<Qp>(p.dev, RVT_QPT_RC, p.pair.scq, p.pair.rcq, 1, 1));
		receivers.push_back(
			std::make_unique<Qp>(p.dev, RVT_QPT_RC, p.pair.scq, p.pair.rcq, n + 1, 1));
		senders.back()->connect(receivers.back()->num);
		receivers.back()->connect(senders.back()->num);
		for (uint32_t i = 0; i < n; i++)
			must(receivers.back()->recv(2, p.to), "room");
		left -= n;
	}
	for (auto _ : state) {
		receivers[at]->recv(2, p.to);
		senders[at]->post(RVT_WR_SEND, &p.from, 1);
		p.completed(p.pair.rcq);
		p.completed(p.pair.scq);
		at = (at + 1) % senders.size();
	}
}
BENCHMARK(among_posted)->RangeMultiplier(10)->Range(1, 100000);

/* --- life of a queue pair ------------------------------------------------------------- */

void create_destroy(benchmark::State &state)
{
	Device dev;
	Cq cq(dev, 16);

	for (auto _ : state)
		Qp qp(dev, RVT_QPT_RC, cq, cq, 64, 1);
}
BENCHMARK(create_destroy);

void create_connect_destroy(benchmark::State &state)
{
	Device dev;
	Cq cq(dev, 16);

	for (auto _ : state) {
		Qp qp(dev, RVT_QPT_RC, cq, cq, 64, 1);

		qp.connect(qp.num);
	}
}
BENCHMARK(create_connect_destroy);

/* RESET, INIT, RTR, RTS and back. */
void modify_there_and_back(benchmark::State &state)
{
	Device dev;
	Cq cq(dev, 16);
	Qp qp(dev, RVT_QPT_RC, cq, cq, 64, 1);
	const rvt_qp_attr reset = {};

	for (auto _ : state) {
		qp.connect(qp.num);
		must(rvt_core_qp_modify(qp.raw, &reset, RVT_QP_STATE) == 0, "RESET");
	}
}
BENCHMARK(modify_there_and_back);

/* --- two CPUs ---------------------------------------------------------------------------- */

/* Each thread has a pair of its own on one device. */
void write_by_threads(benchmark::State &state)
{
	static Device *dev;

	if (state.thread_index() == 0)
		dev = new Device;
	/* The first iteration of the loop waits for all threads. */
	std::unique_ptr<Pair> pair;
	std::unique_ptr<Mr> mr;
	uint8_t *mem = static_cast<uint8_t *>(zeroed(8192, 4096));
	rvt_wc wc;

	for (auto _ : state) {
		if (!pair) {
			pair = std::make_unique<Pair>(*dev);
			mr = std::make_unique<Mr>(*dev, mem, 8192);
		}
		rvt_sge from = {mr->iova, small, mr->key};

		pair->a.post(RVT_WR_RDMA_WRITE, &from, 1, mr->iova + 4096, mr->key);
		must(pair->scq.poll(&wc) && wc.status == RVT_WC_SUCCESS, "completion");
	}
	mr.reset();
	pair.reset();
	free(mem);
	state.SetItemsProcessed(state.iterations());
	/* The device stays: the other thread may still be on its way out. */
}
BENCHMARK(write_by_threads)->Threads(1)->Threads(2)->UseRealTime();

/* One end of a ping-pong of 8-byte SENDs, with a completion queue of its own. */
struct Player {
	Cq cq;
	Qp qp;
	rvt_sge from, to;

	Player(Device &dev, const Mr &mr, size_t at) : cq(dev, 64), qp(dev, RVT_QPT_RC, cq, cq)
	{
		from = {mr.iova + at, small, mr.key};
		to = {mr.iova + at + small, small, mr.key};
		must(qp.recv(2, to), "room for a receive");
	}
	void serve() { must(qp.post(RVT_WR_SEND, &from, 1) == 0, "a send"); }
	/* Has the ball come? */
	bool catches()
	{
		rvt_wc wc;

		if (!cq.poll(&wc))
			return false;
		must(wc.status == RVT_WC_SUCCESS, "a completion");
		if (wc.opcode != RVT_WC_RECV)
			return false;
		must(qp.recv(2, to), "room for a receive");
		return true;
	}
};

/* A round trip, both ends on one CPU, or each on its own. */
void pingpong(benchmark::State &state)
{
	const bool alone = state.range(0) == 1;
	uint8_t *mem = static_cast<uint8_t *>(zeroed(8192, 4096));
	Device dev;
	Mr mr(dev, mem, 8192);
	Player a(dev, mr, 0), b(dev, mr, 4096);
	std::atomic<bool> over = false;
	std::thread other;

	a.qp.connect(b.qp.num);
	b.qp.connect(a.qp.num);
	if (!alone) {
		other = std::thread([&] {
			while (!over.load(std::memory_order_relaxed)) {
				if (b.catches())
					b.serve();
			}
		});
	}
	for (auto _ : state) {
		a.serve();
		if (alone) {
			while (!b.catches()) {
			}
			b.serve();
		}
		while (!a.catches()) {
		}
	}
	over = true;
	if (other.joinable())
		other.join();
	free(mem);
}
BENCHMARK(pingpong)->ArgName("cpus")->Arg(1)->Arg(2)->UseRealTime();

} // namespace

BENCHMARK_MAIN();
