// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The user ABI, seen by a program that uses the stock provider.
 *
 *	abi DEVICE TEST		one test, in a process of its own
 *	abi DEVICE list		what there is
 *
 * It exits with 0 when all was as expected, with 77 when the test does not
 * apply, and otherwise prints what was expected and what was seen. scripts/abi
 * builds it for a suite's libibverbs and runs it in that suite's virtual
 * machine, by abi.sh.
 */
#include "abi.h"

static struct test *tests, **last = &tests;

void add_test(struct test *test)
{
	*last = test;
	last = &test->next;
}

int main(int argc, char **argv)
{
	struct test *test;

	if (argc == 3 && !strcmp(argv[2], "list")) {
		for (test = tests; test; test = test->next) {
			if (test->listed)
				puts(test->name);
		}
		return 0;
	}
	for (test = tests; test && argc == 3; test = test->next) {
		if (!strcmp(argv[2], test->name))
			break;
	}
	if (!test || argc != 3) {
		fprintf(stderr, "usage: %s DEVICE TEST\n", argv[0]);
		return 2;
	}
	device_name = argv[1];
	/* What is left of a removed device may be destroyed in the usual way. */
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	begin();
	test->run();
	end();
	puts("all as expected");
	return 0;
}
