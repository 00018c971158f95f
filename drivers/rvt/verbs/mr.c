// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mr.c - memory regions.
 *
 * The device has no bus, so ib_core's "DMA addresses" are kernel virtual
 * addresses (on x86-64 and arm64 each page has one for ever), and that is
 * what the core's page list holds.
 */
#include <linux/log2.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "rvt.h"

/* Rights that mean something here; windows bind nothing, as none exist. */
#define MR_ACCESS_KNOWN	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ACCESS_HUGETLB | \
			 IB_ZERO_BASED | IB_ACCESS_OPTIONAL)

/* Page sizes the core can index: all from the kernel's up. */
#define MR_PAGE_SIZES	GENMASK_ULL(31, PAGE_SHIFT)

static struct rvt_ib_mr *mr_create(struct ib_pd *ibpd, enum rvt_mr_kind kind, u32 max_pages)
{
	struct rvt_ib_mr *mr;
	int ret;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = rvt_core_mr_create(to_rvt_pd(ibpd)->core, kind, max_pages, &mr->core);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	mr->max_pages = max_pages;
	mr->ibmr.lkey = rvt_core_mr_key(mr->core);
	mr->ibmr.rkey = mr->ibmr.lkey;
	return mr;
}

static void mr_free(struct rvt_ib_mr *mr)
{
	rvt_core_mr_destroy(mr->core);
	ib_umem_release(mr->umem);
	kfree(mr);
}

/* All of kernel memory; the address is the kernel's. */
struct ib_mr *rvt_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct rvt_ib_mr *mr;
	int ret;

	if (to_rvt_pd(ibpd)->user)
		return ERR_PTR(-EPERM);
	mr = mr_create(ibpd, RVT_MR_DMA, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = rvt_core_mr_publish(mr->core, 0, U64_MAX, 0, PAGE_SHIFT, access);
	if (ret) {
		mr_free(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

/* --- user memory ------------------------------------------------------------ */

/**
 * struct mr_pages - pinned memory, and how to index it
 * @umem: the pages
 * @iova: address of the first byte
 * @size: of one page of the list
 * @count: pages in the list
 */
struct mr_pages {
	struct ib_umem *umem;
	u64 iova;
	u64 size;
	u32 count;
};

static int mr_pin(struct ib_device *ibdev, u64 start, u64 length, u64 iova, int access,
		  struct mr_pages *pages)
{
	u64 count;

	if (!length || iova + (length - 1) < iova)
		return -EINVAL;
	pages->umem = rvt_compat_umem_get(ibdev, start, length, access);
	if (IS_ERR(pages->umem))
		return PTR_ERR(pages->umem);

	pages->iova = iova;
	pages->size = ib_umem_find_best_pgsz(pages->umem, MR_PAGE_SIZES, iova);
	count = pages->size ? ib_umem_num_dma_blocks(pages->umem, pages->size) : 0;
	if (!count || count > U32_MAX) {
		/* No size fits when iova and start differ within a page, or iova wraps. */
		ib_umem_release(pages->umem);
		return -EINVAL;
	}
	pages->count = count;
	return 0;
}

/*
 * Page 0 holds the first byte; page n begins where the region's offset
 * reaches a multiple of the page size. Contiguous memory may come in several
 * pieces, pieces may hold several pages, pages may hold several pieces.
 */
static int mr_fill(struct rvt_core_mr *core, const struct mr_pages *pages)
{
	u64 first = ib_umem_offset(pages->umem);
	u64 head = pages->iova & (pages->size - 1);
	struct scatterlist *sg;
	u64 piece = 0; /* offset of this piece from the first page's start */
	u64 next = first; /* the same for page n */
	u32 n = 0;
	int i, ret;

	for_each_sgtable_dma_sg(&pages->umem->sgt_append.sgt, sg, i) {
		while (n < pages->count && next < piece + sg_dma_len(sg)) {
			ret = rvt_core_mr_set_page(core, n,
						   ALIGN_DOWN(sg_dma_address(sg) + next - piece,
							      pages->size));
			if (ret)
				return ret;
			n++;
			next = first + n * pages->size - head;
			if (!(n % 4096))
				cond_resched();
		}
		piece += sg_dma_len(sg);
	}
	return 0;
}

static int mr_publish(struct rvt_ib_mr *mr, u64 length, int access, const struct mr_pages *pages)
{
	int ret;

	ret = rvt_core_mr_publish(mr->core, pages->iova, length, pages->count,
				  ilog2(pages->size), access);
	if (ret)
		return ret;
	mr->umem = pages->umem;
	mr->access = access;
	mr->npages = pages->count;
	mr->page_shift = ilog2(pages->size);
	mr->ibmr.iova = pages->iova;
	mr->ibmr.length = length;
	mr->ibmr.page_size = pages->size;
	return 0;
}

/* A zero-based region begins at address 0, which has to begin a page. */
static int mr_zero_based(u64 start, int access, u64 *iova)
{
	if (!(access & IB_ZERO_BASED))
		return 0;
	if (start & ~PAGE_MASK)
		return -EINVAL;
	*iova = 0;
	return 0;
}

struct ib_mr *rvt_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
			      struct ib_udata *udata)
{
	struct mr_pages pages;
	struct rvt_ib_mr *mr;
	int ret;

	if (access & ~MR_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	ret = mr_zero_based(start, access, &iova);
	if (!ret)
		ret = mr_pin(ibpd->device, start, length, iova, access, &pages);
	if (ret)
		return ERR_PTR(ret);

	mr = mr_create(ibpd, RVT_MR_MEM, pages.count);
	if (IS_ERR(mr)) {
		ib_umem_release(pages.umem);
		return ERR_CAST(mr);
	}
	ret = mr_fill(mr->core, &pages);
	if (!ret)
		ret = mr_publish(mr, length, access, &pages);
	if (ret) {
		mr_free(mr);
		ib_umem_release(pages.umem);
		return ERR_PTR(ret);
	}
	ibdev_dbg(ibpd->device, "MR 0x%08x: %llu bytes at 0x%llx as 0x%llx, pages %u of %llu, access 0x%x\n",
		  mr->ibmr.rkey, length, start, iova, mr->npages, pages.size, access);
	return &mr->ibmr;
}

/* What the region is now, to be used again. */
static struct mr_pages mr_present(const struct rvt_ib_mr *mr)
{
	return (struct mr_pages){
		.umem = mr->umem,
		.iova = mr->umem->iova, /* uverbs writes over ibmr.iova */
		.size = BIT_ULL(mr->page_shift),
		.count = mr->npages,
	};
}

/* Key and object stay. On an error before the exchange nothing has changed. */
struct ib_mr *rvt_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 iova,
				int access, struct ib_pd *new_ibpd, struct ib_udata *udata)
{
	struct rvt_ib_mr *mr = to_rvt_mr(ibmr);
	struct ib_umem *old_umem = mr->umem;
	struct mr_pages pages = mr_present(mr);
	bool repin = flags & IB_MR_REREG_TRANS;
	int ret = 0;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (access & ~MR_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	if (!repin) {
		start = old_umem->address;
		length = ibmr->length;
		iova = old_umem->iova;
		/* Pages pinned for reading have to be pinned again to be written. */
		repin = ib_access_writable(access) && !old_umem->writable;
	}
	if (repin) {
		ret = mr_zero_based(start, access, &iova);
		if (!ret)
			ret = mr_pin(ibmr->device, start, length, iova, access, &pages);
		if (ret)
			return ERR_PTR(ret);
	}

	rvt_core_mr_unpublish(mr->core);
	if (repin) {
		ret = rvt_core_mr_set_max_pages(mr->core, pages.count);
		if (ret) {
			struct mr_pages old = mr_present(mr);

			ib_umem_release(pages.umem);
			/* Cannot fail: this is what it was, unless it was unusable. */
			WARN_ON(mr->npages && mr_publish(mr, ibmr->length, mr->access, &old));
			return ERR_PTR(ret);
		}
		mr->max_pages = pages.count;
		ret = mr_fill(mr->core, &pages);
	}
	if (flags & IB_MR_REREG_PD)
		rvt_core_mr_set_pd(mr->core, to_rvt_pd(new_ibpd)->core);
	if (!ret)
		ret = mr_publish(mr, length, access, &pages);
	if (ret) {
		/* Left unusable where it was, with its old pages still pinned. */
		rvt_core_mr_set_pd(mr->core, to_rvt_pd(ibmr->pd)->core);
		if (repin) {
			mr->npages = 0;
			ib_umem_release(pages.umem);
		}
		return ERR_PTR(ret);
	}
	if (repin)
		ib_umem_release(old_umem);
	ibdev_dbg(ibmr->device, "MR 0x%08x: changed, flags 0x%x, %llu bytes as 0x%llx, access 0x%x\n",
		  ibmr->rkey, flags, length, iova, access);
	return NULL;
}

/* --- fast registration --------------------------------------------------------- */

struct ib_mr *rvt_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct rvt_ib_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG || !max_num_sg || max_num_sg > RVT_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = mr_create(ibpd, RVT_MR_FAST, max_num_sg);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ibdev_dbg(ibpd->device, "MR 0x%08x: for fast registration of %u pages\n", mr->ibmr.rkey,
		  max_num_sg);
	return &mr->ibmr;
}

static int mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct rvt_ib_mr *mr = to_rvt_mr(ibmr);
	int ret;

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	ret = rvt_core_mr_set_page(mr->core, mr->npages, addr);
	if (!ret)
		mr->npages++;
	return ret;
}

int rvt_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		  unsigned int *sg_offset)
{
	struct rvt_ib_mr *mr = to_rvt_mr(ibmr);
	int mapped, ret;

	mr->npages = 0;
	mapped = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, mr_set_page);
	if (mapped <= 0)
		return mapped;
	ret = rvt_core_mr_map(mr->core, ibmr->iova, ibmr->length, mr->npages,
			      ilog2(ibmr->page_size));
	return ret ? ret : mapped;
}

int rvt_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	ibdev_dbg(ibmr->device, "MR 0x%08x: ends\n", ibmr->rkey);
	mr_free(to_rvt_mr(ibmr));
	return 0;
}
