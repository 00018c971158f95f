#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# rdma-core's own tests (scripts/pyverbs brings them), each as one test here.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

suite_runs()
{
	cp -r /rvt/files/tests .
	# Its own verdict is not taken: the lines below judge each test.
	PYTHONUNBUFFERED=1 NO_COLOR=1 PYTHON_COLORS=0 timeout -k 5 1200 \
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

same_skips()
{
	verdicts | grep -P '\tskipped' | sort >skips
	echo "the skips of this run, as expected-skips wants them:"
	sed 's/^/skip: /' skips
	diff /rvt/files/tests/expected-skips skips || wrong "other tests are skipped than expected"
}

t device load_device
device=rvt0
[[ $RVT_KIND == rvt ]] || device=rxe0
t suite suite_runs
verdicts >judged
report
t same-skips same_skips
t rmmod unload_device
