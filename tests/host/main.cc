// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Runs every test in a process of its own, some at a time: a test that ends
 * its process does not take the others with it, and one that turns in a
 * circle ends by a time limit.
 *
 *	rvt-tests [--jobs=N] [--limit=SECONDS] [--gtest_filter=...]
 *	rvt-tests --here ...	all in this process, for a debugger
 */
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/* There when built for coverage: a process that ends by _exit must ask for it. */
extern "C" __attribute__((weak)) int __llvm_profile_write_file();

namespace
{

constexpr int exit_skipped = 77;

bool glob(const char *pattern, const char *pattern_end, const char *text)
{
	if (pattern == pattern_end)
		return *text == '\0';
	if (*pattern == '*')
		return glob(pattern + 1, pattern_end, text) ||
		       (*text && glob(pattern, pattern_end, text + 1));
	return *text && (*pattern == '?' || *pattern == *text) &&
	       glob(pattern + 1, pattern_end, text + 1);
}

bool any_glob(const std::string &patterns, const std::string &name)
{
	size_t begin = 0;

	while (begin <= patterns.size()) {
		size_t end = patterns.find(':', begin);

		if (end == std::string::npos)
			end = patterns.size();
		if (glob(patterns.data() + begin, patterns.data() + end, name.c_str()))
			return true;
		begin = end + 1;
	}
	return false;
}

bool wanted(const std::string &filter, const std::string &name)
{
	size_t dash = filter.find('-');
	std::string yes = filter.substr(0, dash);

	if (yes.empty())
		yes = "*";
	return any_glob(yes, name) &&
	       (dash == std::string::npos || !any_glob(filter.substr(dash + 1), name));
}

double seconds()
{
	timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) / 1e9;
}

struct Job {
	std::string name;
	FILE *output;
	double started;
};

void show(FILE *file)
{
	char buffer[4096];
	size_t n;

	rewind(file);
	while ((n = fread(buffer, 1, sizeof(buffer), file)) > 0)
		fwrite(buffer, 1, n, stdout);
}

} // namespace

int main(int argc, char **argv)
{
	unsigned int limit = 300;
	long jobs = sysconf(_SC_NPROCESSORS_ONLN);
	const char *result = getenv("RVT_RESULT_FILE");
	bool here = false;

	testing::InitGoogleTest(&argc, argv);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--here"))
			here = true;
		else if (!strncmp(argv[i], "--jobs=", 7))
			jobs = atol(argv[i] + 7);
		else if (!strncmp(argv[i], "--limit=", 8))
			limit = static_cast<unsigned int>(atoi(argv[i] + 8));
		else {
			fprintf(stderr, "%s: what is %s?\n", argv[0], argv[i]);
			return 2;
		}
	}
	if (here || GTEST_FLAG_GET(list_tests))
		return RUN_ALL_TESTS();

	std::vector<std::string> names;
	const testing::UnitTest &all = *testing::UnitTest::GetInstance();
	const std::string filter = GTEST_FLAG_GET(filter);

	for (int s = 0; s < all.total_test_suite_count(); s++) {
		const testing::TestSuite &suite = *all.GetTestSuite(s);

		for (int t = 0; t < suite.total_test_count(); t++) {
			std::string name = std::string(suite.name()) + "." +
					   suite.GetTestInfo(t)->name();

			if (wanted(filter, name) && name.find("DISABLED_") == std::string::npos)
				names.push_back(name);
		}
	}

	std::map<pid_t, Job> running;
	std::vector<std::string> failed;
	size_t next = 0, passed = 0, skipped = 0;
	double last_said = seconds(), began = last_said;

	while (next < names.size() || !running.empty()) {
		while (next < names.size() && running.size() < static_cast<size_t>(jobs)) {
			Job job = {names[next++], tmpfile(), seconds()};

			fflush(nullptr);
			pid_t pid = fork();

			if (pid == 0) {
				dup2(fileno(job.output), 1);
				dup2(fileno(job.output), 2);
				alarm(limit);
				GTEST_FLAG_SET(filter, job.name);
				int rc = RUN_ALL_TESTS();
				bool skip = all.skipped_test_count() > 0;

				fflush(nullptr);
				if (__llvm_profile_write_file)
					__llvm_profile_write_file();
				_exit(rc ? 1 : skip ? exit_skipped : 0);
			}
			if (pid < 0) {
				perror("fork");
				return 2;
			}
			running[pid] = job;
		}

		int status = 0;
		pid_t pid = waitpid(-1, &status, 0);
		auto it = running.find(pid);

		if (it == running.end())
			continue;
		Job job = it->second;

		running.erase(it);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			passed++;
		} else if (WIFEXITED(status) && WEXITSTATUS(status) == exit_skipped) {
			skipped++;
			printf("SKIPPED %s\n", job.name.c_str());
		} else {
			failed.push_back(job.name);
			printf("\n---- FAILED %s", job.name.c_str());
			if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
				printf(" (time limit of %u s)", limit);
			else if (WIFSIGNALED(status))
				printf(" (%s)", strsignal(WTERMSIG(status)));
			printf("\n");
			show(job.output);
			printf("---- end of %s\n", job.name.c_str());
		}
		fclose(job.output);
		if (seconds() - job.started > 20)
			printf("%s took %.0f s\n", job.name.c_str(), seconds() - job.started);
		if (seconds() - last_said > 5) {
			last_said = seconds();
			printf("%zu of %zu tests, %zu failed\n", next - running.size(),
			       names.size(), failed.size());
		}
		fflush(stdout);
	}

	if (!failed.empty()) {
		printf("\nfailed:\n");
		for (const std::string &name : failed)
			printf("  %s\n", name.c_str());
	}
	printf("%zu passed, %zu failed, %zu skipped in %.0f s\n", passed, failed.size(), skipped,
	       seconds() - began);
	if (result) {
		FILE *file = fopen(result, "w");

		if (file) {
			fprintf(file, "%zu %zu %zu\n", passed, failed.size(), skipped);
			fclose(file);
		}
	}
	return failed.empty() ? 0 : 1;
}
