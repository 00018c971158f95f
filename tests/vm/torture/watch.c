// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* watch.c - who looks at everything all the time, and writes to the port's tables */
#include "torture.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* --- files ------------------------------------------------------------------ */

static int read_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char text[4096];
	int fd;

	(void)st;
	(void)ftw;
	if (type != FTW_F)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
	return 0;
}

static void read_all(struct dice *d)
{
	static const char *const below_device[] = { "ports/1/hw_counters", "ports/1", "" };
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s",
		 device_name(below(d, plan.devices)), one_of(d, below_device));
	nftw(path, read_file, 8, FTW_PHYS);
	nftw("/sys/kernel/debug/rvt", read_file, 8, FTW_PHYS);
}

/* --- the port's tables ------------------------------------------------------ */

static void write_tables(struct dice *d)
{
	static const char *const odd[] = {
		"", "\n", "::", "0", "0x8000", "ff02::1", "fe80::1 ", "x", "0x10000", "-1",
		"::1%lo", "fe80::1\nfe80::2",
	};
	char path[128], text[64];
	bool gid = one_in(d, 2);
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s/%u",
		 device_name(below(d, plan.devices)), gid ? "admin_gids" : "admin_pkeys",
		 (unsigned int)(1 + below(d, 15)));
	if (one_in(d, 6))
		snprintf(text, sizeof(text), "%s", one_of(d, odd));
	else if (gid)
		snprintf(text, sizeof(text), "2001:db8::%x", (unsigned int)below(d, 20));
	else
		snprintf(text, sizeof(text), "0x%x",
			 (unsigned int)(below(d, 2) << 15 | below(d, 6)));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) > 0)
		atomic_fetch_add(&board->writes, 1);
	close(fd);
}

/* --- rdma ------------------------------------------------------------------- */

static void run_rdma(struct dice *d)
{
	static const char *const commands[] = {
		"rdma resource show", "rdma -dd resource show qp", "rdma -dd resource show cq",
		"rdma -dd resource show mr", "rdma -dd resource show pd",
		"rdma -d resource show ctx", "rdma -dd resource show srq",
		"rdma resource show cm_id",
		"rdma statistic show",
		"rdma statistic qp show", "rdma -d link show", "rdma -d dev show",
		"rdma statistic qp set link rvt0/1 auto type on", "rdma -j -dd resource show qp",
	};
	char text[128], *argument[16], *save = NULL;
	posix_spawn_file_actions_t files;
	unsigned int n = 0;
	pid_t pid;

	snprintf(text, sizeof(text), "%s", one_of(d, commands));
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argument[n++] = word;
	argument[n] = NULL;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	if (!posix_spawnp(&pid, "rdma", &files, NULL, argument, environ))
		waitpid(pid, NULL, 0);
	posix_spawn_file_actions_destroy(&files);
}

void watch(void)
{
	sigset_t all;

	hide_faithful();
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	for (unsigned long i = 0; ; i++) {
		struct dice d = { mix(plan.seed + 4, i) };

		switch (i % 4) {
		case 0:
			run_rdma(&d);
			break;
		case 1:
			read_all(&d);
			break;
		default:
			write_tables(&d);
		}
		atomic_fetch_add(&board->looks, 1);
	}
}
