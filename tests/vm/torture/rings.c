// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rings.c - the rings that are mapped: written over, unmapped, registered
 *
 * The library believes what stands in a ring, so an index that it owns is set to
 * something sane again before it may look: it is the kernel that has to bear
 * nonsense, not the library.
 */
#include "torture.h"

#include <fcntl.h>
#include <sys/mman.h>

/* --- finding ---------------------------------------------------------------- */

pthread_mutex_t making_ring = PTHREAD_MUTEX_INITIALIZER;

static bool parse_ring(const char *line, struct ring *ring)
{
	char *at;
	unsigned long from = strtoul(line, &at, 16), to = strtoul(at + 1, &at, 16);

	ring->offset = strtoull(at + 6, NULL, 16);
	ring->at = (char *)from;
	ring->bytes = to - from;
	ring->gone = strstr(line, "(deleted)");
	return strstr(line, "/uverbs");
}

/* Also called in a child of a process with threads: nothing here allocates. */
static unsigned int for_rings(void (*see)(const struct ring *ring, void *arg), void *arg)
{
	static _Thread_local char text[8192];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	unsigned int found = 0;
	struct ring ring;
	size_t have = 0;
	char *line, *end;
	ssize_t n;

	if (fd < 0)
		return 0;
	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		have += n;
		text[have] = '\0';
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (parse_ring(line, &ring)) {
				see(&ring, arg);
				found++;
			}
		}
		have = strlen(line);
		memmove(text, line, have);
	}
	close(fd);
	return found;
}

static void see_newest(const struct ring *ring, void *arg)
{
	struct ring *newest = arg;

	if (!ring->gone && ring->offset > newest->offset)
		*newest = *ring;
}

/*
 * Offsets count up in all of the module: the highest that is mapped here, of
 * devices that are there, is that of the ring made last, if nobody else makes one
 * (making_ring).
 */
struct ring newest_ring(void)
{
	struct ring newest = { 0 };

	for_rings(see_newest, &newest);
	return newest;
}

struct many {
	struct ring *rings;
	unsigned int count, max;
};

static void see_one(const struct ring *ring, void *arg)
{
	struct many *m = arg;

	if (m->count < m->max)
		m->rings[m->count++] = *ring;
}

unsigned int all_rings(struct ring *rings, unsigned int max)
{
	struct many m = { rings, 0, max };

	for_rings(see_one, &m);
	return m.count;
}

/* --- rings whose objects are gone ------------------------------------------- */

#define STALE	32
static struct ring stale[STALE];
static unsigned int stale_next;
static pthread_mutex_t stale_lock = PTHREAD_MUTEX_INITIALIZER;

/* The oldest one is unmapped. */
void leave_ring(struct ring ring)
{
	struct ring *slot;

	if (!ring.at)
		return;
	pthread_mutex_lock(&stale_lock);
	slot = &stale[stale_next++ % STALE];
	if (slot->at)
		munmap(slot->at, slot->bytes);
	*slot = ring;
	pthread_mutex_unlock(&stale_lock);
}

ACT(scribble_stale)
{
	struct ring ring;

	pthread_mutex_lock(&stale_lock);
	ring = one_of(&t->dice, stale);
	if (ring.at) {
		uint32_t *index = (uint32_t *)ring.at;

		index[0] = nonsense(&t->dice);
		index[1] = nonsense(&t->dice);
		scribble(&t->dice, ring, 50);
	}
	pthread_mutex_unlock(&stale_lock);
	return ring.at;
}

/* --- the ring of an object -------------------------------------------------- */

/* Is it somebody's already? */
static bool is_known(const struct slot *but, const char *at)
{
	bool known = false;

	for (int h = 0; h < HOMES; h++) {
		for (int s = 0; s < SLOTS; s++)
			known |= &homes[h].slot[s] != but && homes[h].slot[s].ring.at == at;
	}
	pthread_mutex_lock(&stale_lock);
	for (int i = 0; i < STALE; i++)
		known |= stale[i].at == at;
	pthread_mutex_unlock(&stale_lock);
	return known;
}

/* The one made last, unless its device went meanwhile: then the newest is another's. */
void note_ring(struct slot *slot)
{
	slot->ring = newest_ring();
	slot->blind = !slot->ring.at || is_known(slot, slot->ring.at);
	if (slot->blind)
		slot->ring = (struct ring){ 0 };
}

/* --- writing over them ------------------------------------------------------ */

/* All but the two indices at the beginning. */
void scribble(struct dice *d, struct ring ring, unsigned int words)
{
	volatile uint32_t *word = (volatile uint32_t *)ring.at;

	while (words--)
		word[2 + below(d, ring.bytes / 4 - 2)] = nonsense(d);
}

/* @mine: which of the indices the library moves, and believes. */
static bool scribble_object(struct thread *t, enum kind kind, int mine)
{
	struct slot *slot = own(t, kind);
	unsigned int rounds = 1 + below(&t->dice, 20);
	bool done = slot && !slot->blind;
	volatile uint32_t *index = done ? (volatile uint32_t *)slot->ring.at : NULL;

	for (unsigned int i = 0; done && i < rounds; i++) {
		if (below(&t->dice, 4))
			index[0] = nonsense(&t->dice);
		if (below(&t->dice, 4))
			index[1] = nonsense(&t->dice);
		scribble(&t->dice, slot->ring, one_in(&t->dice, 4) ? 200 : 10);
		/* Others use what now stands there. */
		sched_yield();
	}
	if (done)
		index[mine] = 0;
	release(slot);
	return done;
}

ACT(scribble_cq)
{
	return scribble_object(t, CQ, 1);
}

ACT(scribble_rq)
{
	return scribble_object(t, QP, 0);
}

ACT(scribble_srq)
{
	return scribble_object(t, SRQ, 0);
}

/* --- taking them away ------------------------------------------------------- */

static const enum kind with_ring[] = { CQ, SRQ, QP };

/* Ordinary memory where something was. */
static void cover(char *at, size_t bytes)
{
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) == MAP_FAILED)
		wrong("mmap over a ring: %s", strerror(errno));
}

/*
 * In the end there is memory for the library to unmap, but no ring. Nothing may
 * leave a hole meanwhile, as another thread's mapping would come there.
 */
ACT(unmap_ring)
{
	struct slot *slot = own(t, one_of(&t->dice, with_ring));
	bool done = slot && !slot->blind;
	struct ring *ring = &slot->ring;

	if (done) {
		switch (below(&t->dice, 4)) {
		case 0:
			cover(ring->at + below(&t->dice, ring->bytes / PAGE) * PAGE, PAGE);
			break;
		case 1:
			mprotect(ring->at, ring->bytes, PROT_NONE);
			break;
		case 2:
			madvise(ring->at, ring->bytes, MADV_DONTNEED);
			break;
		}
		cover(ring->at, ring->bytes);
		slot->blind = true;
	}
	release(slot);
	return done;
}

/* The ring's pages as a region, which lives on when the ring ends. */
ACT(register_ring)
{
	struct slot *ring = own(t, one_of(&t->dice, with_ring)), *pd = ring ? use(t, PD) : NULL;
	struct slot *slot = pd ? vacant(t, REGION) : NULL;
	bool written = one_in(&t->dice, 2), done = false;

	if (slot && !ring->blind) {
		struct ibv_mr *mr = ibv_reg_mr(pd->it, ring->ring.at, ring->ring.bytes,
					       written ? ALL_ACCESS : IBV_ACCESS_REMOTE_READ);

		done = mr;
		if (done) {
			ring->blind = written; /* the library must not look at what others write */
			slot->it = mr;
			slot->iova = (uintptr_t)ring->ring.at;
		}
	}
	release(slot);
	release(pd);
	release(ring);
	return done;
}
