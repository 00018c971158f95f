// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* memory.c - regions of every kind, and their memory taken away */
#include "torture.h"

#include <sys/mman.h>

#define HUGE	(2UL << 20)

/* --- memory ----------------------------------------------------------------- */

static const size_t sizes[] = {
	PAGE, PAGE, 2 * PAGE, 16 * PAGE, 16 * PAGE, 64 * PAGE, 64 * PAGE, 256 * PAGE, HUGE,
};

/* Memory of the kind that the dice say; NULL when there is none. */
static void *some_memory(struct dice *d, size_t bytes)
{
	int protection = PROT_READ | PROT_WRITE, flags = MAP_ANONYMOUS | MAP_PRIVATE, fd = -1;
	void *at;

	switch (below(d, 8)) {
	case 0:
		flags = MAP_ANONYMOUS | MAP_SHARED;
		break;
	case 1:
		flags |= bytes == HUGE ? MAP_HUGETLB : MAP_NORESERVE;
		break;
	case 2:
		protection = PROT_READ;
		break;
	case 3:
		fd = memfd_create("torture", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, bytes - (one_in(d, 4) ? PAGE : 0)))
			wrong("memfd: %s", strerror(errno));
		flags = one_in(d, 2) ? MAP_SHARED : MAP_PRIVATE;
		break;
	}
	at = mmap(NULL, bytes, protection, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

void forget_memory(struct slot *slot)
{
	if (slot->memory)
		munmap(slot->memory, slot->bytes);
	slot->memory = NULL;
}

/* --- regions ---------------------------------------------------------------- */

static int some_access(struct dice *d)
{
	static const int access[] = {
		ALL_ACCESS, ALL_ACCESS, ALL_ACCESS, ALL_ACCESS, ALL_ACCESS, 0,
		IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, ALL_ACCESS | IBV_ACCESS_MW_BIND,
		ALL_ACCESS | IBV_ACCESS_ZERO_BASED, ALL_ACCESS | IBV_ACCESS_HUGETLB,
		ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_ON_DEMAND,
	};

	return one_in(d, 15) ? (int)nonsense(d) : one_of(d, access);
}

/* Others may use it: they find it on the board. */
static void publish(const struct thread *t, const struct slot *slot, const struct ibv_mr *mr)
{
	struct line *line = &board->region[slot->line];

	atomic_store(&line->at, slot->iova);
	atomic_store(&line->bytes, mr->length);
	atomic_store(&line->device, t->home->device);
	atomic_store(&line->number, mr->rkey);
}

ACT(make_region)
{
	struct slot *pd = use(t, PD), *slot = pd ? vacant(t, REGION) : NULL;
	size_t bytes = one_of(&t->dice, sizes), offset = 0, length = bytes;
	void *memory = some_memory(&t->dice, bytes);
	int access = some_access(&t->dice);
	uint64_t iova = (uintptr_t)memory;
	bool done = false;

	if (one_in(&t->dice, 4)) {
		offset = below(&t->dice, PAGE);
		length = 1 + below(&t->dice, bytes - offset);
	}
	/* Whatever lies behind it in this process: nobody may write there. */
	if (one_in(&t->dice, 20)) {
		length = nonsense(&t->dice);
		access = IBV_ACCESS_REMOTE_READ;
	}
	iova += offset;
	if (one_in(&t->dice, 5)) {
		iova = one_in(&t->dice, 4) ? draw(&t->dice) :
					     below(&t->dice, 1 << 20) * PAGE + offset;
		access &= ~IBV_ACCESS_ZERO_BASED;
	}
	if (slot && memory) {
		struct ibv_mr *mr = ibv_reg_mr_iova(pd->it, (char *)memory + offset, length, iova,
						    access);

		done = mr;
		if (done) {
			slot->it = mr;
			slot->memory = memory;
			slot->bytes = bytes;
			slot->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
			publish(t, slot, mr);
		}
	}
	if (memory && !done)
		munmap(memory, bytes);
	release(slot);
	release(pd);
	return done;
}

/* The memory goes or changes under a region; the device keeps the pages that it has. */
ACT(take_memory)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTFORK,
		MADV_DOFORK, MADV_REMOVE, MADV_MERGEABLE, MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED,
	};
	static const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
	struct slot *slot = own(t, REGION);
	int ret = -1;

	if (slot && slot->memory) {
		switch (below(&t->dice, 4)) {
		case 0:
			forget_memory(slot);
			ret = 0;
			break;
		case 1:
			ret = mprotect(slot->memory, slot->bytes, one_of(&t->dice, protections));
			break;
		case 2:
			ret = madvise(slot->memory, slot->bytes, one_of(&t->dice, advice));
			break;
		case 3: {
			void *at = mremap(slot->memory, slot->bytes, slot->bytes, MREMAP_MAYMOVE);

			/* Other memory where the region's was. */
			ret = at == MAP_FAILED ||
			      mmap(at, slot->bytes, PROT_READ | PROT_WRITE,
				   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
			if (at != MAP_FAILED)
				slot->memory = at;
			break;
		}
		}
	}
	release(slot);
	return !ret;
}
