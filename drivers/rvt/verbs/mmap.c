// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mmap.c - rings that a process maps.
 *
 * A ring is made together with its object and named to the process by an
 * offset, which the process gives to mmap() once. Offsets are never used
 * again. The mapping takes its own references to the pages, so object and
 * mapping may end in any order, a fork copies the mapping like any other,
 * and no code of this module is needed to end it.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "rvt.h"

/**
 * struct rvt_ring - memory that the kernel and one process share
 * @ref: one for the object, one while it is being mapped
 * @uc: where it waits for mmap
 * @pgoff: its name, in pages
 * @addr: kernel address
 * @npages: entries of @pages
 * @pages: the memory
 */
struct rvt_ring {
	struct kref ref;
	struct rvt_ib_ucontext *uc;
	unsigned long pgoff;
	void *addr;
	unsigned long npages;
	struct page *pages[];
};

static atomic64_t ring_last_pgoff = ATOMIC64_INIT(0);

static void ring_free(struct rvt_ring *ring, unsigned long npages)
{
	unsigned long i;

	vunmap(ring->addr);
	for (i = 0; i < npages; i++) {
		put_page(ring->pages[i]);
		if (!(i % 1024))
			cond_resched();
	}
	kvfree(ring);
}

static void ring_release(struct kref *ref)
{
	struct rvt_ring *ring = container_of(ref, struct rvt_ring, ref);

	ring_free(ring, ring->npages);
}

/**
 * rvt_ring_create - make a ring that the calling process can map
 * @udata: of the call that makes the object
 * @bytes: length; the memory is zeroed and charged to the caller
 *
 * Context: process. Return: the ring or an ERR_PTR.
 */
struct rvt_ring *rvt_ring_create(struct ib_udata *udata, size_t bytes)
{
	struct rvt_ib_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct rvt_ib_ucontext, ibuc);
	unsigned long npages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct rvt_ring *ring;
	unsigned long i;
	int ret;

	ring = kvzalloc(struct_size(ring, pages, npages), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	kref_init(&ring->ref);
	ring->uc = uc;
	ring->npages = npages;
	ring->pgoff = atomic64_inc_return(&ring_last_pgoff);

	for (i = 0; i < npages; i++) {
		ring->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!ring->pages[i] || fatal_signal_pending(current))
			break;
		if (!(i % 1024))
			cond_resched();
	}
	if (i < npages) {
		/* A page that came together with a fatal signal counts. */
		ring_free(ring, i + !!ring->pages[i]);
		return ERR_PTR(-ENOMEM);
	}

	ring->addr = vmap(ring->pages, npages, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	ret = ring->addr ? xa_insert(&uc->rings, ring->pgoff, ring, GFP_KERNEL) : -ENOMEM;
	if (ret) {
		ring_free(ring, npages);
		return ERR_PTR(ret);
	}
	return ring;
}

/**
 * rvt_ring_destroy - the object no longer uses the ring
 * @ring: may be NULL or an ERR_PTR
 *
 * It cannot be mapped any more; where it is mapped, the pages stay.
 * Context: process.
 */
void rvt_ring_destroy(struct rvt_ring *ring)
{
	if (IS_ERR_OR_NULL(ring))
		return;
	xa_erase(&ring->uc->rings, ring->pgoff);
	kref_put(&ring->ref, ring_release);
}

void *rvt_ring_memory(const struct rvt_ring *ring)
{
	return ring->addr;
}

/* What the process passes to mmap(). */
u64 rvt_ring_offset(const struct rvt_ring *ring)
{
	return (u64)ring->pgoff << PAGE_SHIFT;
}

/* Is there room in the response for the ring's offset? */
bool rvt_ring_wanted(const struct ib_udata *udata)
{
	return udata->outlen >= sizeof(u64);
}

/**
 * rvt_ring_respond - tell the process a ring's offset
 * @udata: of the call
 * @ring: NULL for "no ring": offset 0
 *
 * Return: 0 or -EFAULT.
 */
int rvt_ring_respond(struct ib_udata *udata, const struct rvt_ring *ring)
{
	u64 offset = ring ? rvt_ring_offset(ring) : 0;

	return ib_copy_to_udata(udata, &offset, sizeof(offset)) ? -EFAULT : 0;
}

/**
 * rvt_mmap - map a ring
 * @ibuc: the context, which has to be the ring's
 * @vma: shared, at most as long as the ring, at the ring's offset
 *
 * Context: process, the memory map is locked. Return: 0, -EINVAL, -ENOMEM.
 */
int rvt_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rvt_ib_ucontext *uc = to_rvt_uc(ibuc);
	struct rvt_ring *ring;
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;

	xa_lock(&uc->rings);
	ring = xa_load(&uc->rings, vma->vm_pgoff);
	if (!ring || vma_pages(vma) > ring->npages) {
		xa_unlock(&uc->rings);
		return -EINVAL;
	}
	__xa_erase(&uc->rings, vma->vm_pgoff);
	kref_get(&ring->ref);
	xa_unlock(&uc->rings);

	ret = remap_vmalloc_range(vma, ring->addr, 0);
	kref_put(&ring->ref, ring_release);
	return ret;
}
