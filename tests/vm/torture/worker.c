// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* worker.c - one life of a worker: its threads, its steps, its end */
#include "torture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define NOBODY	65534

static int stop_pipe;
static unsigned long steps_of_thread;

/* --- homes ------------------------------------------------------------------ */

/* What is done there never waits for an event. */
static void never_wait(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void open_home(struct thread *t)
{
	struct home *home = t->home;
	struct ibv_port_attr port;

	home->device = below(&t->dice, plan.devices);
	home->wild = one_in(&t->dice, 3);
	home->ctx = open_named(device_name(home->device));
	if (!home->ctx)
		return; /* removed, or not there again yet */
	never_wait(home->ctx->async_fd);
	if (!ibv_query_port(home->ctx, 1, &port))
		atomic_store(&board->lid[home->device], port.lid);
}

static const enum kind order_of_end[] = { AH, QP, SRQ, CQ, CHANNEL, REGION, PD };

/*
 * Close with all that is open, or end the objects one by one before. The caller
 * has the home for writing. What the library made and was not told to end is lost
 * to this process, as it may be referred to by events.
 */
void close_home(struct home *home, bool orderly)
{
	unsigned int count;

	for (unsigned int k = 0; k < ARRAY_SIZE(order_of_end); k++) {
		struct slot *slot = slots_of(home, order_of_end[k], &count);

		for (unsigned int i = 0; i < count; i++) {
			if (slot[i].it && orderly)
				end_object(home, order_of_end[k], &slot[i]);
			if (slot[i].it && !slot[i].blind)
				leave_ring(slot[i].ring);
			empty_slot(&slot[i]);
		}
	}
	ibv_close_device(home->ctx);
	home->ctx = NULL;
}

/* --- steps ------------------------------------------------------------------ */

/* Draw one action and do it. */
static void step(struct thread *t)
{
	const struct action *action;
	uint64_t number;

	t->dice.state = mix(mix(mix(mix(plan.seed, t->worker), t->life), t->number), t->step++);
	t->home = &homes[below(&t->dice, HOMES)];
	action = draw_action(t);
	number = action - actions;

	if (!atomic_load((_Atomic(struct ibv_context *) *)&t->home->ctx)) {
		pthread_rwlock_wrlock(&t->home->lock);
		if (!t->home->ctx)
			open_home(t);
		pthread_rwlock_unlock(&t->home->lock);
	}
	if (action->act == act_reopen)
		pthread_rwlock_wrlock(&t->home->lock);
	else
		pthread_rwlock_rdlock(&t->home->lock);
	if (t->home->ctx && (t->home->wild || !action->wild)) {
		atomic_store(&board->doing[t->worker][t->number], number);
		atomic_fetch_add(&board->tried[number], 1);
		if (action->act(t))
			atomic_fetch_add(&board->done[number], 1);
	}
	pthread_rwlock_unlock(&t->home->lock);
}

static void *run(void *arg)
{
	struct thread *t = arg;
	bool doomed = ending_of(t->worker, t->life) == KILLED;

	/* Who is to be killed goes on until it happens. */
	while (t->step < steps_of_thread || doomed) {
		step(t);
		if (doomed && !t->number && t->step == steps_of_thread &&
		    write(stop_pipe, "k", 1) != 1)
			break;
	}
	return NULL;
}

enum ending ending_of(unsigned int worker, unsigned int life)
{
	static const enum ending endings[] = {
		KILLED, KILLED, KILLED, ORDERLY, AS_IT_IS, AS_IT_IS,
	};

	return endings[mix(mix(mix(plan.seed, 3), worker), life) % ARRAY_SIZE(endings)];
}

/* Every other worker has no privileges, and may pin little memory. */
static void become_nobody(void)
{
	struct rlimit limit = { 16 << 20, 16 << 20 };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(NOBODY) || setuid(NOBODY))
		wrong("cannot become nobody: %s", strerror(errno));
	/* As before it. */
	prctl(PR_SET_DUMPABLE, 1);
}

static void be_eaten_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1000", 4) != 4)
		wrong("oom_score_adj: %s", strerror(errno));
	close(fd);
}

void live(unsigned int worker, unsigned int life, unsigned long steps, int stop)
{
	static struct thread threads[THREADS_MAX];
	enum ending ending = ending_of(worker, life);
	pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;

	stop_pipe = stop;
	steps_of_thread = steps;
	signal(SIGCHLD, SIG_IGN);
	hide_faithful();
	be_eaten_first();
	if (worker % 2)
		become_nobody();
	for (int h = 0; h < HOMES; h++) {
		homes[h].lock = fresh;
		for (int s = 0; s < SLOTS; s++)
			homes[h].slot[s].lock = fresh;
		for (enum kind kind = PD; kind < KINDS; kind++) {
			unsigned int count;
			struct slot *slot = slots_of(&homes[h], kind, &count);

			for (unsigned int i = 0; i < count; i++)
				slot[i].line = (worker * HOMES + h) * count + i;
		}
	}
	for (unsigned int i = 0; i < plan.threads; i++) {
		threads[i] = (struct thread){ .worker = worker, .life = life, .number = i };
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]))
			wrong("pthread_create");
	}
	for (unsigned int i = 0; i < plan.threads; i++)
		pthread_join(threads[i].id, NULL);
	if (ending == ORDERLY) {
		for (int h = 0; h < HOMES; h++) {
			if (homes[h].ctx)
				close_home(&homes[h], true);
		}
	} else if (life % 2) {
		/* The rings are mapped, the files close on exec. */
		execl("/bin/true", "true", NULL);
	}
	_exit(0);
}
