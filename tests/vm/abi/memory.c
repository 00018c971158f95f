// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* memory.c - memory regions */
#include "abi.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* --- memory regions -------------------------------------------------------- */

TEST(reg_mr_refused)
{
	void *read_only = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *readable;

	yes(read_only != MAP_FAILED);
	fails(ibv_reg_mr(pd, buf, 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	fails(ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	fails(ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	fails(ibv_reg_mr(pd, read_only, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	fails(ibv_reg_mr(pd, (void *)0x1000, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	/* The first byte and the region's own address have to agree within a page. */
	fails(ibv_reg_mr_iova(pd, buf, PAGE, 0x7010, ALL_ACCESS), EINVAL);
	readable = ibv_reg_mr(pd, read_only, PAGE, IBV_ACCESS_REMOTE_READ);
	yes(readable);
	is(ibv_dereg_mr(readable), 0);
}

/* WRITE and READ "bytes" at an odd offset through a region at its own address. */
static void through_iova(struct ends *e, uint64_t iova, size_t start, uint32_t at, uint32_t bytes)
{
	unsigned char *region = buf + BUF_BYTES / 4, *from = buf + BUF_BYTES / 2;
	unsigned char *back = buf + 3 * BUF_BYTES / 4;
	struct ibv_mr *m;

	memset(region, 0, 64 * 1024);
	memset(back, 0, 64 * 1024);
	for (uint32_t i = 0; i < bytes; i++)
		from[i] = i * 7 + 1;
	m = ibv_reg_mr_iova(pd, region + start, 20000, iova, ALL_ACCESS);
	yes(m);
	is(post_rdma(e->a, IBV_WR_RDMA_WRITE, from, bytes, iova + at, m->rkey), 0);
	completes(e->scq, 0, IBV_WC_SUCCESS);
	is(memcmp(region + start + at, from, bytes), 0);
	is(region[start + at - 1], 0);
	is(region[start + at + bytes], 0);
	is(post_rdma(e->a, IBV_WR_RDMA_READ, back, bytes, iova + at, m->rkey), 0);
	completes(e->scq, 0, IBV_WC_SUCCESS);
	is(memcmp(back, from, bytes), 0);
	is(back[bytes], 0);
	is(ibv_dereg_mr(m), 0);
}

TEST(rdma_through_iova)
{
	struct ends e = make_ends(&usual, NULL);

	through_iova(&e, 0x7000, 0, 3, 5000);
	through_iova(&e, 0x7064, 100, 1, 19999 - 1);
	through_iova(&e, 0xfffffffff0000064, 100, 4093, 9001);
	through_iova(&e, 0x10fff, 4095, 8191, 1);
	through_iova(&e, (uintptr_t)buf + 8, 8, 4088, 8);
	end_ends(&e);
}

/* Both ends of a region are its ends. */
TEST(region_ends)
{
	unsigned char *region = buf + BUF_BYTES / 4 + 100;
	const int64_t outside[] = { -1, 5000 - 7, 5000 };
	struct ibv_mr *m = ibv_reg_mr(pd, region, 5000, ALL_ACCESS);

	yes(m);
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		struct ends e = make_ends(&usual, NULL);

		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)region, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)region + 4992, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)region + outside[i],
			     m->rkey), 0);
		completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
		end_ends(&e);
	}
	is(ibv_dereg_mr(m), 0);
}

/* Each page of it holds its own offset; read some of them back. */
static void read_all_over(unsigned char *at, size_t bytes, size_t step)
{
	struct ibv_mr *m = ibv_reg_mr(pd, at, bytes, ALL_ACCESS);
	struct ends e = make_ends(&usual, NULL);

	yes(m);
	for (size_t i = 0; i < bytes; i += step) {
		is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)at + i, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(*(uint64_t *)buf, i);
	}
	is(ibv_dereg_mr(m), 0);
	end_ends(&e);
}

static void fill_pages(unsigned char *at, size_t bytes, size_t first, size_t step)
{
	for (size_t i = first * PAGE; i < bytes; i += step * PAGE)
		*(uint64_t *)(at + i) = i;
}

TEST(scattered_64_mib)
{
	size_t bytes = 64UL << 20;
	unsigned char *at = anonymous(bytes);

	/* Touched out of order, so that neighbours in here are none in memory. */
	is(madvise(at, bytes, MADV_NOHUGEPAGE) && errno != EINVAL, 0);
	for (size_t first = 7; first--; )
		fill_pages(at, bytes, first, 7);
	read_all_over(at, bytes, 61 * PAGE);
}

TEST(huge_pages)
{
	size_t bytes = 4UL << 20;
	unsigned char *at;

	if (put("/proc/sys/vm/nr_hugepages", "4"))
		skip("the kernel has no huge pages");
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		  -1, 0);
	if (at == MAP_FAILED)
		skip("there is no memory for huge pages");
	fill_pages(at, bytes, 0, 1);
	read_all_over(at, bytes, 13 * PAGE);
}

/* Memory that may not be written can be read, by peers too. */
TEST(read_only_region)
{
	unsigned char *at = anonymous(3 * PAGE);
	struct ends e = make_ends(&usual, NULL);
	struct ibv_mr *m;

	fill_pages(at, 3 * PAGE, 0, 1);
	is(mprotect(at, 3 * PAGE, PROT_READ), 0);
	m = ibv_reg_mr(pd, at, 3 * PAGE, IBV_ACCESS_REMOTE_READ);
	yes(m);
	for (int i = 0; i < 3; i++) {
		is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)at + i * PAGE, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(*(uint64_t *)buf, i * PAGE);
	}
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)at, m->rkey), 0);
	completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
	is(*(uint64_t *)at, 0);
	is(ibv_dereg_mr(m), 0);
	end_ends(&e);
}

/* The same pages twice, at two addresses and from two regions. */
TEST(shared_pages)
{
	int fd = memfd_create("shared", 0);
	struct ends e = make_ends(&usual, NULL);
	unsigned char *at[2];
	struct ibv_mr *m[2];

	is(ftruncate(fd, 4 * PAGE), 0);
	for (int i = 0; i < 2; i++) {
		at[i] = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		yes(at[i] != MAP_FAILED);
		m[i] = ibv_reg_mr(pd, at[i], 4 * PAGE, ALL_ACCESS);
		yes(m[i]);
	}
	memset(buf, 0x5a, 3 * PAGE);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 3 * PAGE, (uintptr_t)at[0] + 100, m[0]->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(memcmp(at[1] + 100, buf, 3 * PAGE), 0);
	is(ibv_dereg_mr(m[0]), 0);
	is(post_rdma(e.a, IBV_WR_RDMA_READ, buf + 4 * PAGE, 3 * PAGE, (uintptr_t)at[1] + 100,
		     m[1]->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(memcmp(buf + 4 * PAGE, buf, 3 * PAGE), 0);
	is(ibv_dereg_mr(m[1]), 0);
	end_ends(&e);
}

/*
 * A region of 8 GiB, of few pages mapped over and over. That the kernel's
 * watchdogs do not bark is seen in its log.
 */
TEST(many_gib)
{
	const size_t chunk = 32UL << 20, bytes = 8UL << 30;
	int fd = memfd_create("chunk", 0);
	unsigned char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ends e = make_ends(&usual, NULL);
	struct ibv_mr *m;

	yes(at != MAP_FAILED);
	is(ftruncate(fd, chunk), 0);
	for (size_t i = 0; i < bytes; i += chunk)
		yes(mmap(at + i, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    at + i);
	fill_pages(at, chunk, 0, 1);
	m = ibv_reg_mr(pd, at, bytes, ALL_ACCESS);
	yes(m);
	for (size_t where = 5 * PAGE; where < bytes; where += (1UL << 30) + 7 * PAGE) {
		is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)at + where, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(*(uint64_t *)buf, where % chunk);
	}
	is(ibv_dereg_mr(m), 0);
	end_ends(&e);
}

/* --- rereg_mr, which the stock provider does not send ---------------------------- */

static int bare_rereg_mr(struct ibv_mr *m, int flags, void *start, size_t length,
			 struct ibv_pd *to, int access)
{
	struct ib_uverbs_rereg_mr_resp answer = { 0 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr cmd;
	} request = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(request) / 4,
			.out_words = sizeof(answer) / 4,
		},
		.cmd = {
			.response = (uintptr_t)&answer,
			.mr_handle = m->handle,
			.flags = flags,
			.start = (uintptr_t)start,
			.length = length,
			.hca_va = (uintptr_t)start,
			.pd_handle = to->handle,
			.access_flags = access,
		},
	};

	if (write(ctx->cmd_fd, &request, sizeof(request)) != sizeof(request))
		return errno;
	m->lkey = answer.lkey;
	m->rkey = answer.rkey;
	return 0;
}

/* One access from queue pairs that are made in a protection domain for it. */
static void rdma_in(struct ibv_pd *in, enum ibv_wr_opcode opcode, void *at, const struct ibv_mr *m,
		    enum ibv_wc_status status)
{
	struct ibv_pd *usual_pd = pd;
	struct ibv_mr *usual_mr = mr;
	struct ends e;

	pd = in;
	mr = ibv_reg_mr(pd, buf, BUF_BYTES, ALL_ACCESS);
	yes(mr);
	e = make_ends(&usual, NULL);
	is(post_rdma(e.a, opcode, buf, 8, (uintptr_t)at, m->rkey), 0);
	completes(e.scq, 0, status);
	end_ends(&e);
	is(ibv_dereg_mr(mr), 0);
	mr = usual_mr;
	pd = usual_pd;
}

TEST(rereg_mr)
{
	const size_t small = 2 * PAGE, large = 5 * PAGE;
	const int readable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	unsigned char *first = anonymous(large), *second = anonymous(large);
	struct ibv_pd *other = ibv_alloc_pd(ctx);

	yes(other);
	for (int flags = 1; flags < 8; flags++) {
		bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		bool writable = flags & IBV_REREG_MR_CHANGE_ACCESS;
		struct ibv_pd *in = flags & IBV_REREG_MR_CHANGE_PD ? other : pd;
		struct ibv_mr *m = ibv_reg_mr(pd, first, small, readable);
		unsigned char *at = moves ? second : first;
		uint64_t *word = (uint64_t *)(at + small - 8);

		yes(m);
		*(uint64_t *)(first + small - 8) = 111;
		*(uint64_t *)(second + small - 8) = 222;
		is(bare_rereg_mr(m, flags, second, large, other, ALL_ACCESS), 0);
		rdma_in(in, IBV_WR_RDMA_READ, word, m, IBV_WC_SUCCESS);
		is(*(uint64_t *)buf, moves ? 222 : 111);
		rdma_in(in == pd ? other : pd, IBV_WR_RDMA_READ, word, m, IBV_WC_REM_ACCESS_ERR);
		/* The new end, and the old place. */
		rdma_in(in, IBV_WR_RDMA_READ, at + large - 8, m,
			moves ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		rdma_in(in, IBV_WR_RDMA_READ, moves ? first : second, m, IBV_WC_REM_ACCESS_ERR);
		*(uint64_t *)buf = 333;
		rdma_in(in, IBV_WR_RDMA_WRITE, word, m,
			writable ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		is(*word, writable ? 333 : moves ? 222 : 111);
		is(ibv_dereg_mr(m), 0);
	}
	is(ibv_dealloc_pd(other), 0);
}

/* What is refused leaves the region as it was. */
TEST(rereg_mr_refused)
{
	unsigned char *at = anonymous(2 * PAGE);
	void *nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *m = ibv_reg_mr(pd, at, PAGE, IBV_ACCESS_REMOTE_READ);

	yes(m && nothing != MAP_FAILED);
	is(munmap(nothing, PAGE), 0);
	*(uint64_t *)at = 77;
	is(bare_rereg_mr(m, 0, at, PAGE, pd, 0), EINVAL);
	is(bare_rereg_mr(m, 8, at, PAGE, pd, 0), EOPNOTSUPP);
	is(bare_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, at, 0, pd, 0), EINVAL);
	is(bare_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, nothing, PAGE, pd, 0), EFAULT);
	is(bare_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, at, PAGE, pd, IBV_ACCESS_REMOTE_WRITE),
	   EINVAL);
	rdma_in(pd, IBV_WR_RDMA_READ, at, m, IBV_WC_SUCCESS);
	is(*(uint64_t *)buf, 77);
	is(ibv_dereg_mr(m), 0);
}

/* --- addresses that begin at zero ---------------------------------------------------- */

TEST(zero_based)
{
	const int access = ALL_ACCESS | IBV_ACCESS_ZERO_BASED;
	unsigned char *at = anonymous(3 * PAGE);
	struct ibv_mr *m = ibv_reg_mr(pd, at, 3 * PAGE, access), *usual_mr = mr;
	struct ends e = make_ends(&usual, NULL);

	yes(m);
	/* The region's first byte has address 0 for peers, */
	memset(buf, 0x5a, 2 * PAGE);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 2 * PAGE, 0, m->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(memcmp(at, buf, 2 * PAGE), 0);
	is(at[2 * PAGE], 0);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, 3 * PAGE - 8, m->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(at[3 * PAGE - 1], 0x5a);
	/* and for its owner. */
	memset(at + 100, 0xa5, 8);
	mr = m;
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, (void *)100, 8, (uintptr_t)buf, usual_mr->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(buf[7], 0xa5);
	is(buf[8], 0x5a);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, at, 8, (uintptr_t)buf, usual_mr->rkey), EINVAL);
	mr = usual_mr;
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, 3 * PAGE - 7, m->rkey), 0);
	completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
	end_ends(&e);
	is(ibv_dereg_mr(m), 0);
	/* That it begins within a page cannot be said then. */
	fails(ibv_reg_mr(pd, at + 100, PAGE, access), EINVAL);
}

/* --- rights ------------------------------------------------------------------------- */

/* What a region was not registered for its owner cannot do either. */
TEST(local_rights)
{
	struct ibv_mr *readable = ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_REMOTE_READ), *whole = mr;
	struct ends e = make_ends(&usual, NULL);
	uint64_t remote = (uintptr_t)buf + BUF_BYTES / 2;

	yes(readable);
	mr = readable;
	is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, remote, whole->rkey), EINVAL);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, remote, whole->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	nothing_more(e.scq);
	/* Into a receive of it nothing is written. */
	post_receives(e.b, NULL, 3, 1);
	mr = whole;
	is(post_send(e.a, 1, buf + BUF_BYTES / 2, 8, 0), 0);
	completes(e.scq, 1, IBV_WC_REM_OP_ERR);
	completes(e.rcq, 3, IBV_WC_LOC_PROT_ERR);
	end_ends(&e);
	is(ibv_dereg_mr(readable), 0);
}

/* Each right of a region, and of a queue pair, is one of its own. */
static const struct {
	enum ibv_wr_opcode opcode;
	int right;
} remote_accesses[] = {
	{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
	{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
};

static int post_access(struct ends *e, enum ibv_wr_opcode opcode, const struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)buf, 8, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->addr;
		wr.wr.atomic.rkey = to->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
		wr.wr.rdma.rkey = to->rkey;
	}
	return ibv_post_send(e->a, &wr, &bad);
}

TEST(case_114_rights)
{
	unsigned char *at = anonymous(PAGE);

	for (int rights = 0; rights < 16; rights += 2) {
		struct ibv_mr *m = ibv_reg_mr(pd, at, PAGE, IBV_ACCESS_LOCAL_WRITE | rights);

		yes(m);
		for (size_t i = 0; i < ARRAY_SIZE(remote_accesses); i++) {
			bool granted = rights & remote_accesses[i].right;
			struct ends e = make_ends(&usual, NULL);

			is(post_access(&e, remote_accesses[i].opcode, m), 0);
			completes(e.scq, 0, granted ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
			end_ends(&e);

			access_flags = rights;
			e = make_ends(&usual, NULL);
			access_flags = ALL_ACCESS;
			is(post_access(&e, remote_accesses[i].opcode, mr), 0);
			completes(e.scq, 0, granted ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
			end_ends(&e);
		}
		is(ibv_dereg_mr(m), 0);
	}
}

/* A key of another protection domain opens nothing, on either side. */
TEST(case_116_keys_of_another_pd)
{
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_mr *foreign = ibv_reg_mr(other, buf, BUF_BYTES, ALL_ACCESS), *own = mr;
	struct ends e = make_ends(&usual, NULL);

	yes(other && foreign);
	mr = foreign;
	is(post_send(e.a, 1, buf, 8, 0), EINVAL);
	is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)buf, own->rkey), EINVAL);
	post_receives(e.b, NULL, 2, 1);
	mr = own;
	is(post_send(e.a, 1, buf, 8, 0), 0);
	completes(e.scq, 1, IBV_WC_REM_OP_ERR);
	completes(e.rcq, 2, IBV_WC_LOC_PROT_ERR);
	end_ends(&e);
	for (size_t i = 0; i < ARRAY_SIZE(remote_accesses); i++) {
		e = make_ends(&usual, NULL);
		is(post_access(&e, remote_accesses[i].opcode, foreign), 0);
		completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
		end_ends(&e);
	}
	is(ibv_dereg_mr(foreign), 0);
	is(ibv_dealloc_pd(other), 0);
}

/* A region's key is of no use when it has gone, and its number is not taken soon again. */
TEST(case_119_old_key)
{
	uint64_t remote = (uintptr_t)buf + BUF_BYTES / 2;
	uint32_t key;

	for (int i = 0; i < 50; i++) {
		struct ibv_mr *m = ibv_reg_mr(pd, (void *)remote, PAGE, ALL_ACCESS);

		yes(m);
		yes(!i || m->rkey != key);
		key = m->rkey;
		is(ibv_dereg_mr(m), 0);
	}
	for (int again = 0; again < 2; again++) {
		struct ibv_mr *m = ibv_reg_mr(pd, (void *)remote, PAGE, ALL_ACCESS);
		struct ends e = make_ends(&usual, NULL);

		yes(m && m->rkey != key);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, remote, again ? m->rkey : key), 0);
		completes(e.scq, 0, again ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		end_ends(&e);
		is(ibv_dereg_mr(m), 0);
	}
}

/* --- memory of other devices ----------------------------------------------------------- */

/* Register a dma-buf without the provider: 0 or an errno. */
static int bare_reg_dmabuf(int fd, uint64_t length)
{
	uint32_t lkey, rkey;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[9];
	} request = {
		.hdr = {
			.length = sizeof(request),
			.object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_REG_DMABUF_MR,
			.num_attrs = 9,
			.driver_id = RDMA_DRIVER_HFI1,
		},
		.attr = {
			{ UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, UVERBS_ATTR_F_MANDATORY },
			{ UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, UVERBS_ATTR_F_MANDATORY,
			  .data = pd->handle },
			{ UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, UVERBS_ATTR_F_MANDATORY },
			{ UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, UVERBS_ATTR_F_MANDATORY,
			  .data = length },
			{ UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, UVERBS_ATTR_F_MANDATORY },
			{ UVERBS_ATTR_REG_DMABUF_MR_FD, 4, UVERBS_ATTR_F_MANDATORY,
			  .data = fd },
			{ UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 8, UVERBS_ATTR_F_MANDATORY,
			  .data = ALL_ACCESS },
			{ UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, UVERBS_ATTR_F_MANDATORY,
			  .data = (uintptr_t)&lkey },
			{ UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, UVERBS_ATTR_F_MANDATORY,
			  .data = (uintptr_t)&rkey },
		},
	};

	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &request) ? errno : 0;
}

/* A dma-buf of memory that holds its offsets; without udmabuf, that memory itself. */
static int make_dmabuf(size_t bytes)
{
	int fd = memfd_create("dmabuf", MFD_ALLOW_SEALING), maker = open("/dev/udmabuf", O_RDWR);
	unsigned char *at;

	is(ftruncate(fd, bytes), 0);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	yes(at != MAP_FAILED);
	fill_pages(at, bytes, 0, 1);
	is(munmap(at, bytes), 0);
	if (maker >= 0) {
		struct udmabuf_create create = { .memfd = fd, .size = bytes };

		is(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		fd = ioctl(maker, UDMABUF_CREATE, &create);
		yes(fd >= 0);
		close(maker);
	}
	printf("this is %s\n", maker >= 0 ? "a dma-buf" : "no dma-buf: the kernel makes none");
	return fd;
}

/* It is refused as a dma-buf; what can be mapped and pinned is memory like other. */
TEST(dmabuf)
{
	const size_t bytes = 4 * PAGE;
	int fd = make_dmabuf(bytes);
	struct ibv_mr *m;
	struct ends e;
	void *at;

	fails(ibv_reg_dmabuf_mr(pd, 0, bytes, 0, fd, ALL_ACCESS), EOPNOTSUPP);
	is(bare_reg_dmabuf(fd, bytes), EOPNOTSUPP);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	yes(at != MAP_FAILED);
	errno = 0;
	m = ibv_reg_mr(pd, at, bytes, ALL_ACCESS);
	if (!m) {
		is(errno, EFAULT);
		puts("its mapping cannot be pinned in this kernel");
		return;
	}
	e = make_ends(&usual, NULL);
	is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)at + 3 * PAGE, m->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(*(uint64_t *)buf, 3 * PAGE);
	end_ends(&e);
	is(ibv_dereg_mr(m), 0);
}
