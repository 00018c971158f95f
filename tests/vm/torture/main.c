// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * main.c - the storm: starts all, kills when a worker's plan says so, and judges
 *
 *	torture [--seed N] [--steps N] [--workers N] [--threads N] [--devices N]
 *		[--half COMMAND [--restart]] [--verbose]
 *
 * --steps: of each worker. --half: run COMMAND when half of the lives are over;
 * with --restart the faithful end before it and begin again after it.
 */
#include "torture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

struct plan plan = { .workers = 4, .threads = 3, .devices = 2, .steps = 40000 };
struct board *board;

static struct worker {
	pid_t pid;
	int pipe;
	unsigned int life, lives;
} workers[WORKERS_MAX];
static unsigned int lives, lives_over, killed;
static pid_t main_pid, watcher, half_command;
static bool watcher_may_end;
static int signals;

/* How the command at half time goes. */
static enum { BEFORE, STOPPING, RUNNING, AFTER } half;

/* --- what all use ----------------------------------------------------------- */

const char *device_name(unsigned int device)
{
	static char names[DEVICES_MAX][16];

	if (!names[device][0])
		snprintf(names[device], sizeof(names[device]), "rvt%u", device);
	return names[device];
}

struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;

	for (int i = 0; list && list[i] && !found; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			found = ibv_open_device(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	return found;
}

static void kill_all(void)
{
	for (unsigned int i = 0; i < plan.workers; i++) {
		if (workers[i].pid)
			kill(workers[i].pid, SIGKILL);
	}
	if (watcher)
		kill(watcher, SIGKILL);
	if (half_command)
		kill(-half_command, SIGKILL);
}

void wrong(const char *format, ...)
{
	va_list args;

	printf("WRONG: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	if (getpid() == main_pid) {
		kill_all();
		kill_faithful();
	}
	_exit(1);
}

/* --- lives ------------------------------------------------------------------ */

/* Steps of each thread in a life. */
static unsigned long steps_of(unsigned int worker, unsigned int life)
{
	return 200 + mix(mix(mix(plan.seed, 5), worker), life) % 2000;
}

static unsigned int count_lives(unsigned int worker)
{
	unsigned long steps = 0;
	unsigned int n = 0;

	while (steps < plan.steps)
		steps += plan.threads * steps_of(worker, n++);
	return n;
}

static void begin_life(unsigned int number)
{
	struct worker *w = &workers[number];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		wrong("pipe: %s", strerror(errno));
	w->pid = fork();
	if (w->pid < 0)
		wrong("fork: %s", strerror(errno));
	if (!w->pid) {
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		live(number, w->life, steps_of(number, w->life), ends[1]);
	}
	close(ends[1]);
	w->pipe = ends[0];
}

static void say_what_they_do(unsigned int number)
{
	for (unsigned int i = 0; i < plan.threads; i++)
		printf("  worker %u, life %u, thread %u: %s\n", number, workers[number].life, i,
		       actions[atomic_load(&board->doing[number][i]) % action_count].name);
}

/* A life ends as it was to end. */
static void life_over(unsigned int number, int status)
{
	struct worker *w = &workers[number];
	bool doomed = ending_of(number, w->life) == KILLED;

	if (plan.verbose)
		printf("worker %u, life %u: status 0x%x\n", number, w->life, status);
	w->pid = 0;
	if (doomed ? !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) : status) {
		say_what_they_do(number);
		wrong("worker %u, life %u ended with status 0x%x", number, w->life, status);
	}
	killed += doomed;
	if (w->pipe >= 0)
		close(w->pipe);
	w->pipe = -1;
	lives_over++;
	if (++w->life < w->lives)
		begin_life(number);
}

/* --- the storm -------------------------------------------------------------- */

static void watcher_over(int status)
{
	watcher = 0;
	if (!watcher_may_end || !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
		wrong("the watcher ended with status 0x%x", status);
}

static void half_command_over(int status)
{
	half_command = 0;
	if (status)
		wrong("%s: status 0x%x", plan.half, status);
	half = AFTER;
	if (plan.restart)
		start_faithful();
}

/* Who ended? False: nobody is left. */
static bool reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		unsigned int i = 0;

		while (i < plan.workers && workers[i].pid != pid)
			i++;
		if (i < plan.workers)
			life_over(i, status);
		else if (pid == watcher)
			watcher_over(status);
		else if (pid == half_command)
			half_command_over(status);
		else
			faithful_process(pid, status); /* or a child that outlived its parent */
	}
	return !pid;
}

/* It hangs, says who started us: where does everybody wait? */
static void tell_and_end(void)
{
	for (unsigned int i = 0; i < plan.workers; i++) {
		if (workers[i].pid)
			say_what_they_do(i);
	}
	print_progress();
	fflush(stdout);
	if (system("for t in /proc/[0-9]*/task/*; do"
		   "	name=$(cat $t/comm);"
		   "	case $name in torture | rdma | rmmod | insmod)"
		   "		echo \"$t $name: $(cat $t/wchan)\"; cat $t/stack;;"
		   "	esac;"
		   "done 2>&1"))
		puts("  (no stacks)");
	wrong("told to end after %u of %u lives, %u of the faithful are there%s", lives_over, lives,
	      faithful_left(), watcher ? "" : ", no watcher");
}

/* Wait until something happens, and do what it asks for. */
static bool look_after(int milliseconds)
{
	struct pollfd fds[WORKERS_MAX + 1] = { { .fd = signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	char byte;

	for (unsigned int i = 0; i < plan.workers; i++)
		fds[i + 1] = (struct pollfd){ .fd = workers[i].pid ? workers[i].pipe : -1,
					      .events = POLLIN };
	poll(fds, plan.workers + 1, milliseconds);
	for (unsigned int i = 0; i < plan.workers; i++) {
		if (!fds[i + 1].revents)
			continue;
		if (read(workers[i].pipe, &byte, 1) == 1) {
			kill(workers[i].pid, SIGKILL);
		} else {
			/* It is about to end by itself. */
			close(workers[i].pipe);
			workers[i].pipe = -1;
		}
	}
	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM)
			tell_and_end();
	}
	return reap();
}

/* In a process group of its own, to be ended with all that it started. */
static void run_half_command(void)
{
	sigset_t all;

	printf("half of the lives are over: %s\n", plan.half);
	fflush(stdout);
	half_command = fork();
	if (half_command < 0)
		wrong("fork: %s", strerror(errno));
	if (!half_command) {
		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		setpgid(0, 0);
		execl("/bin/sh", "sh", "-c", plan.half, NULL);
		_exit(127);
	}
	setpgid(half_command, half_command);
}

static void at_half(void)
{
	if (half == BEFORE && plan.half && lives_over >= lives / 2) {
		half = STOPPING;
		if (plan.restart)
			stop_faithful();
	}
	if (half == STOPPING && (!plan.restart || !faithful_left())) {
		half = RUNNING;
		run_half_command();
	}
}

static void storm(void)
{
	for (unsigned int i = 0; i < plan.workers; i++) {
		workers[i].lives = count_lives(i);
		lives += workers[i].lives;
	}
	for (unsigned int i = 0; i < plan.workers; i++)
		begin_life(i);
	while (lives_over < lives || (plan.half && half != AFTER)) {
		look_after(-1);
		at_half();
	}
}

/* --- verdict ---------------------------------------------------------------- */

static void print_board(void)
{
	for (unsigned int i = 0; i < action_count; i++)
		printf("  %-16s %8llu times, %8llu successful\n", actions[i].name,
		       (unsigned long long)atomic_load(&board->tried[i]),
		       (unsigned long long)atomic_load(&board->done[i]));
	for (unsigned int i = 0; i < STATUSES; i++) {
		if (atomic_load(&board->completions[i]))
			printf("  %8llu completions: %s\n",
			       (unsigned long long)atomic_load(&board->completions[i]),
			       ibv_wc_status_str(i));
	}
	printf("  %u lives, %u ended by SIGKILL; %lu looks from outside, %lu table writes\n",
	       lives, killed, atomic_load(&board->looks), atomic_load(&board->writes));
}

/* A storm in which nothing succeeds proves nothing. */
static void was_a_storm(void)
{
	for (unsigned int i = 0; i < action_count; i++) {
		if (!atomic_load(&board->done[i]) && plan.workers * plan.steps >= 100000)
			wrong("%s never succeeded", actions[i].name);
	}
	if (!atomic_load(&board->completions[IBV_WC_SUCCESS]) ||
	    !atomic_load(&board->completions[IBV_WC_WR_FLUSH_ERR]))
		wrong("no request succeeded, or none was flushed");
	if (!atomic_load(&board->looks) || !atomic_load(&board->writes))
		wrong("nobody looked, or nobody wrote to a table");
}

static void options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

		i++;
		if (!strcmp(name, "--seed"))
			plan.seed = strtoull(value, NULL, 0);
		else if (!strcmp(name, "--steps"))
			plan.steps = strtoul(value, NULL, 0);
		else if (!strcmp(name, "--workers"))
			plan.workers = strtoul(value, NULL, 0);
		else if (!strcmp(name, "--threads"))
			plan.threads = strtoul(value, NULL, 0);
		else if (!strcmp(name, "--devices"))
			plan.devices = strtoul(value, NULL, 0);
		else if (!strcmp(name, "--half"))
			plan.half = value;
		else if (i--, !strcmp(name, "--restart"))
			plan.restart = true;
		else if (!strcmp(name, "--verbose"))
			plan.verbose = true;
		else
			wrong("unknown option %s", name);
	}
	if (!plan.workers || plan.workers > WORKERS_MAX || !plan.threads ||
	    plan.threads > THREADS_MAX || !plan.devices || plan.devices > DEVICES_MAX)
		wrong("workers, threads or devices out of range");
}

int main(int argc, char **argv)
{
	unsigned long before, after;
	sigset_t set;

	main_pid = getpid();
	options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu, %u workers of %lu steps\n", (unsigned long long)plan.seed, plan.workers,
	       plan.steps);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (signals < 0 || board == MAP_FAILED)
		wrong("%s", strerror(errno));

	start_faithful();
	while (!least_progress())
		look_after(10);
	watcher = fork();
	if (watcher < 0)
		wrong("fork: %s", strerror(errno));
	if (!watcher)
		watch();
	before = least_progress();
	storm();
	after = least_progress();
	while (least_progress() < after + 20)
		look_after(10);
	stop_faithful();
	while (faithful_left())
		look_after(-1);
	watcher_may_end = true;
	kill(watcher, SIGTERM);
	while (look_after(-1))
		;
	print_progress();
	print_board();
	if (after < before + 20)
		wrong("one of the faithful answered %lu messages during the storm", after - before);
	was_a_storm();
	puts("all is well");
	return 0;
}
