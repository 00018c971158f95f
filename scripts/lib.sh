# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# What the scripts share: where the tree and the caches are, and how they talk.
# Source it: . "$(dirname "$0")/lib.sh"

RVT_TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RVT_BUILD=$RVT_TREE/build
RVT_CACHE=${RVT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rvt}
export RVT_TREE RVT_BUILD RVT_CACHE

rvt_name=${0##*/}

say()
{
	printf '%s: %s\n' "$rvt_name" "$*" >&2
}

die()
{
	printf '%s: %s\n' "$rvt_name" "$*" >&2
	exit 1
}

# Run COMMAND with its output in a log file and a mark every ten seconds, so
# that a person sees that it lives. The log is shown when it fails.
quietly()
{
	local what=$1 log=$2 pid start=$SECONDS

	shift 2
	mkdir -p "$(dirname "$log")"
	"$@" </dev/null >"$log" 2>&1 &
	pid=$!
	until timeout 10 tail -s 0.2 --pid="$pid" -f /dev/null; do
		say "$what ... $((SECONDS - start)) s"
	done
	if ! wait "$pid"; then
		tail -n 40 "$log" >&2
		say "$what failed; all of its output is in $log"
		return 1
	fi
}

# Roots of SUITE that other versions of scripts/rootfs made go when unused for a day.
forget_old_roots()
{
	touch "$2/complete"
	find "$RVT_CACHE" -maxdepth 2 -path "*/root-$1-????????????/complete" -mmin +1440 -printf '%h\0' |
		xargs -0 -r rm -rf
}

# Write what a suite found for whoever called it: see scripts/check.
report_result()
{
	if [[ -n ${RVT_RESULT:-} ]]; then
		printf '%d %d %d\n' "$1" "$2" "${3:-0}" >"$RVT_RESULT"
	fi
}

# KCSAN reports races of the kernel's own, too. Take those of which no side is ours
# out of the kernel's log FILE; they go to the file OTHERS. Ours is a side whose first
# function is. Lines of other origin, between those of a report, stay.
#	leave_own_races FILE OTHERS
leave_own_races()
{
	: >"$2"
	awk -v others="$2" '
		function done() {
			if (ours || !inside)
				printf "%s", report
			else
				printf "%s", report >others
			report = ""
			inside = ours = who = 0
		}
		{ text = $0; sub(/^(\[[^]]*\] ?)+/, "", text) }
		text ~ /^BUG: KCSAN: / { done(); inside = 1; report = $0 "\n"; next }
		!inside { print; next }
		text ~ /^=+$/ { done(); print; next }
		text ~ /(read|write).* (to|at) 0x[0-9a-f]+ of [0-9]+ bytes / { who = 1; report = report $0 "\n"; next }
		text ~ /^ [^ ]+\+0x[0-9a-f]+\/0x/ {
			if (who && text ~ / \[rvt(_kunit)?\]$/)
				ours = 1
			who = 0
			report = report $0 "\n"
			next
		}
		text ~ /^ *$|^ *[|+]|^(value|bits) changed|^Reported by|^CPU: |^Hardware name/ {
			report = report $0 "\n"
			next
		}
		{ print }
		# A report that does not end is left where it is.
		END { inside = 0; done() }' "$1" >"$1.own"
	mv "$1.own" "$1"
}
