// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the core costs, on this machine as it is: Google Benchmark. */
#include "native/user.h"

#include <benchmark/benchmark.h>

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

void plain_memcpy(benchmark::State &state)
{
	const auto n = static_cast<size_t>(state.range(0));
	void *from = zeroed(n, 4096), *to = zeroed(n, 4096);

	for (auto _ : state) {
		memcpy(to, from, n);
		benchmark::ClobberMemory();
	}
	state.SetBytesProcessed(state.iterations() * state.range(0));
	free(from);
	free(to);
}
BENCHMARK(plain_memcpy)->Apply(sizes);

void write_bytes(benchmark::State &state, uint32_t pieces, bool scattered)
{
	const auto n = static_cast<size_t>(state.range(0));
	void *from = zeroed(n, 4096), *to = zeroed(n, 4096);
	{
		Device dev;
		Pair pair(dev, 8, pieces);
		Mr source(dev, from, n, scattered), target(dev, to, n, scattered);
		std::vector<rvt_sge> sge;
		rvt_wc wc;

		for (uint32_t i = 0; i < pieces; i++)
			sge.push_back({source.iova + i * (n / pieces),
				       static_cast<uint32_t>(n / pieces), source.key});
		for (auto _ : state) {
			pair.a.post(RVT_WR_RDMA_WRITE, sge.data(), pieces, target.iova, target.key);
			must(pair.scq.poll(&wc) && wc.status == RVT_WC_SUCCESS, "completion");
		}
	}
	state.SetBytesProcessed(state.iterations() * state.range(0));
	free(from);
	free(to);
}
BENCHMARK_CAPTURE(write_bytes, one_piece, 1u, false)->Apply(sizes);
BENCHMARK_CAPTURE(write_bytes, sixteen_pieces, 16u, false)->Apply(sizes);
BENCHMARK_CAPTURE(write_bytes, scattered_pages, 1u, true)->Apply(sizes);

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
BENCHMARK(among_queue_pairs)->Arg(10)->Arg(1000)->Arg(100000);

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
BENCHMARK(among_regions)->Arg(10)->Arg(1000)->Arg(100000);

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

} // namespace

BENCHMARK_MAIN();
