// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rvt-count OPERATION N: so many messages, from post to all their completions,
 * and nothing else that depends on N. They have 8 bytes, those of write_pages 16
 * pages that lie scattered at both ends. scripts/bench-check counts the
 * instructions.
 */
#include "native/user.h"

#include <cstdint>
#include <string>

namespace
{

using namespace native;

constexpr uint32_t bytes = 8;
constexpr uint32_t many_bytes = 16 * 4096;
constexpr uint32_t grh = 40;
constexpr uint32_t qkey = 0x1111;

struct Bench {
	Device dev;
	Pair pair{dev};
	Qp ud_a{dev, RVT_QPT_UD, pair.scq, pair.rcq}, ud_b{dev, RVT_QPT_UD, pair.scq, pair.rcq};
	rvt_ah_attr ah = {};
	uint8_t *mem = static_cast<uint8_t *>(zeroed(8192, 4096));
	Mr mr{dev, mem, 8192};
	rvt_sge from = {mr.iova, bytes, mr.key};
	rvt_sge to = {mr.iova + 4096, bytes, mr.key};
	rvt_sge to_datagram = {mr.iova + 4096, grh + bytes, mr.key};
	uint8_t *pages = static_cast<uint8_t *>(zeroed(2 * many_bytes, 4096));
	Mr source{dev, pages, many_bytes, Pages::scattered};
	Mr target{dev, pages + many_bytes, many_bytes, Pages::scattered};
	rvt_sge from_pages = {source.iova, many_bytes, source.key};

	Bench()
	{
		ud_a.open(qkey);
		ud_b.open(qkey);
		ah.dlid = dev.lid;
		ah.port_num = 1;
	}
	~Bench()
	{
		free(mem);
		free(pages);
	}

	void completed(Cq &cq)
	{
		rvt_wc wc;

		must(cq.poll(&wc) && wc.status == RVT_WC_SUCCESS, "a completion");
	}

	void send()
	{
		pair.b.recv(2, to);
		pair.a.post(RVT_WR_SEND, &from, 1);
		completed(pair.rcq);
		completed(pair.scq);
	}

	void datagram()
	{
		ud_b.recv(2, to_datagram);
		ud_a.post_datagram(&from, 1, ah, ud_b.num, qkey);
		completed(pair.rcq);
		completed(pair.scq);
	}

	void one_sided(uint32_t opcode)
	{
		pair.a.post(opcode, &from, 1, to.addr, mr.key);
		completed(pair.scq);
	}

	void write_pages()
	{
		pair.a.post(RVT_WR_RDMA_WRITE, &from_pages, 1, target.iova, target.key);
		completed(pair.scq);
	}

	void once(const std::string &operation)
	{
		if (operation == "send")
			send();
		else if (operation == "write")
			one_sided(RVT_WR_RDMA_WRITE);
		else if (operation == "read")
			one_sided(RVT_WR_RDMA_READ);
		else if (operation == "fetch_add")
			one_sided(RVT_WR_ATOMIC_FETCH_AND_ADD);
		else if (operation == "ud_send")
			datagram();
		else if (operation == "write_pages")
			write_pages();
		else
			must(false, "to know the operation");
	}
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr,
			"usage: rvt-count send|write|read|fetch_add|ud_send|write_pages N\n");
		return 2;
	}
	Bench bench;
	const std::string operation = argv[1];

	for (long n = atol(argv[2]); n > 0; n--)
		bench.once(operation);
	return 0;
}
