// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The only program of the KUnit guest: loads the modules, unloads them, asks
 * kmemleak, ends the machine. Linked statically, so the guest needs nothing
 * else. All it says goes to the kernel log, in one order with the kernel's.
 *
 * Options of a module come from the kernel command line: rvt_kunit.filter=...
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

static int kmsg = -1;
static char cmdline[4096];

static void say(const char *format, ...)
{
	char line[900];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(kmsg, line, n) < 0)
		_exit(1);
}

static int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -1;
	buf[n] = '\0';
	return 0;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* "rvt.a=1 rvt.b=2" on the command line becomes "a=1 b=2 ". */
static void options_of(const char *module, char *options, size_t size)
{
	char copy[sizeof(cmdline)], *word, *save = NULL;
	size_t len = strlen(module);

	options[0] = '\0';
	strcpy(copy, cmdline);
	for (word = strtok_r(copy, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		if (strncmp(word, module, len) || word[len] != '.')
			continue;
		strncat(options, word + len + 1, size - strlen(options) - 1);
		strncat(options, " ", size - strlen(options) - 1);
	}
}

static int load(const char *module)
{
	char path[64], options[1024];
	int fd, ret;

	snprintf(path, sizeof(path), "/%s.ko", module);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		say("rvt-guest: FAILED there is no %s", path);
		return -1;
	}
	options_of(module, options, sizeof(options));
	say("rvt-guest: insmod %s.ko %s", module, options);
	ret = syscall(SYS_finit_module, fd, options, 0);
	if (ret)
		say("rvt-guest: FAILED insmod %s: %s", module, strerror(errno));
	close(fd);
	return ret;
}

static int unload(const char *module)
{
	say("rvt-guest: rmmod %s", module);
	if (!syscall(SYS_delete_module, module, O_NONBLOCK))
		return 0;
	say("rvt-guest: FAILED rmmod %s: %s", module, strerror(errno));
	return -1;
}

/* Where a module lies: its symbols are gone when kmemleak reports. */
static void show_place(const char *module)
{
	char path[96], text[64];

	snprintf(path, sizeof(path), "/sys/module/%s/sections/.text", module);
	if (!read_file(path, text, sizeof(text))) {
		text[strcspn(text, "\n")] = '\0';
		say("rvt-guest: %s .text %s", module, text);
	}
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* lockdep switches itself off at its first report, and when it is full. */
static void check_lockdep(void)
{
	static char text[8192];
	char *line;

	if (read_file("/proc/lockdep_stats", text, sizeof(text)))
		return;
	line = strstr(text, "debug_locks:");
	if (line && strtol(line + strlen("debug_locks:"), NULL, 10) == 1)
		say("rvt-guest: lockdep was on to the end");
	else
		say("rvt-guest: FAILED lockdep is off");
}

/* kmemleak says nothing about objects younger than five seconds. */
static void find_leaks(void)
{
	long long end = now_ms() + 5500;
	char line[512];
	FILE *report;

	if (access(KMEMLEAK, F_OK))
		return;
	say("rvt-guest: looking for leaks");
	do {
		write_file(KMEMLEAK, "scan");
	} while (now_ms() < end);
	write_file(KMEMLEAK, "scan");
	report = fopen(KMEMLEAK, "r");
	if (!report)
		return;
	while (fgets(line, sizeof(line), report)) {
		line[strcspn(line, "\n")] = '\0';
		say("kmemleak: %s", line);
	}
	fclose(report);
	say("rvt-guest: leaks done");
}

/* Let a task that asks for it (fail_nth) see any allocation fail, quietly. */
static void prepare_faults(void)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc" };
	char path[96];
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", kinds[i]);
		write_file(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-highmem", kinds[i]);
		write_file(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/min-order", kinds[i]);
		write_file(path, "0");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", kinds[i]);
		write_file(path, "0");
	}
}

static void end_machine(void)
{
	/* User Mode Linux ends at power-off; QEMU without ACPI at a reset. */
	if (strstr(cmdline, "rvt_guest.end=poweroff"))
		reboot(RB_POWER_OFF);
	reboot(RB_AUTOBOOT);
}

int main(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mount("debug", "/sys/kernel/debug", "debugfs", 0, NULL);
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	read_file("/proc/cmdline", cmdline, sizeof(cmdline));

	if (!access(KMEMLEAK, F_OK)) {
		/* What the kernel's own boot left is not our affair. */
		write_file(KMEMLEAK, "scan");
		write_file(KMEMLEAK, "clear");
	}

	prepare_faults();
	say("rvt-guest: begin");
	say("rvt-guest: %ld CPUs", sysconf(_SC_NPROCESSORS_ONLN));
	if (!load("rvt")) {
		show_place("rvt");
		if (!load("rvt_kunit")) {
			show_place("rvt_kunit");
			unload("rvt_kunit");
		}
		if (!unload("rvt") && !load("rvt"))
			unload("rvt");
		check_lockdep();
		find_leaks();
	}
	say("rvt-guest: end");
	end_machine();
	return 1;
}
