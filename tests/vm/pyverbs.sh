#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# rdma-core's own tests (scripts/pyverbs brings them), each as one test here.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

suite_runs()
{
	cp -r /rvt/files/tests .
	# The tests draw attributes by lot: let the lot fall the same every time.
	mkdir -p seed
	echo 'import random; random.seed(1)' >seed/sitecustomize.py
	# Its own verdict is not taken: the lines below judge each test.
	PYTHONPATH=$PWD/seed PYTHONHASHSEED=0 PYTHONUNBUFFERED=1 NO_COLOR=1 PYTHON_COLORS=0 timeout -k 5 1200 \
		python3 tests/run_tests.py -v --dev "$device" 2>&1 >stdout |
		sed 's/\x1b\[[0-9;]*m//g' | tee pyverbs.log || true
	cat stdout
	grep -E '^Ran [1-9][0-9]* tests' pyverbs.log
}

# A test's lines: "name (module.Class.name)", perhaps a doc string, "... verdict".
verdicts()
{
	awk '
		match($0, /^(test_[a-z0-9_A-Z]+) \(([A-Za-z0-9_.]+)\)/) {
			name = $1; class = $2; gsub(/[()]/, "", class)
			sub("\\." name "$", "", class); sub(/^tests\./, "", class)
		}
		/\.\.\. / && name {
			verdict = $0; sub(/.*\.\.\. /, "", verdict)
			print class "." name "\t" verdict
			name = ""
		}
	' pyverbs.log
}

# One result for each, in the words that lib.sh's t() has for the host.
report()
{
	awk -F '\t' '
		{ print "@@ test " $1; print $2 }
		$2 ~ /^ok/ { print "@@ pass " $1; next }
		$2 ~ /^skipped/ { sub(/^skipped /, "", $2); print "@@ skip " $1 " " $2; next }
		{ print "@@ fail " $1 " " $2 }
	' judged
}

# Only names are compared: reasons name pages and devices of the machine.
no_new_skips()
{
	awk -F '\t' '$2 ~ /^skipped/' judged | sort >skips
	sed 's/^/skip: /' skips
	cut -f1 skips >names
	cut -f1 /rvt/files/tests/expected-skips | sort >expected
	comm -23 names expected >new
	[[ ! -s new ]] || wrong "not in the list of expected skips: $(tr '\n' ' ' <new)"
}

load_all()
{
	load_device
	# It may be built in.
	modprobe rdma_ucm || true
	await 10 test -e /dev/infiniband/rdma_cm
}

t device load_all
device=rvt0
[[ $RVT_KIND == rvt ]] || device=rxe0
t suite suite_runs
verdicts >judged
report
t no-new-skips no_new_skips
t rmmod unload_device
