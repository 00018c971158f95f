#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# What scripts/profile has the guest do: programs that repeat one operation.
# "window NAME" asks the host to write down what is executed a little later; it
# answers with a line when it has seen enough. This shell sleeps meanwhile: what
# it does would be written down, and changes whom the scheduler prefers. "map"
# and "symbols" lines say what addresses mean.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# maps PID: where its program and libraries are
maps()
{
	awk -v name="$name" '/ r-xp / { print "map", name, $1, $6 }' "/proc/$1/maps"
}

window()
{
	echo "window $name"
	read -r _ <"$RVT_CHANNEL"
	# shellcheck disable=SC2046
	kill $(jobs -p)
	wait
}

symbols()
{
	echo 0 >/proc/sys/kernel/kptr_restrict
	echo "symbols $(awk '$2 ~ /^[tTwW]$/ || $3 == "jiffies_64" { print $1, $3, $4 }' /proc/kallsyms | gzip | base64 -w 0)"
}

pingpong()
{
	local server

	set -- ibv_rc_pingpong -d "$device" "${pingpong_gid[@]}" -e -s 4096 -n 100000000
	"$@" >server 2>&1 &
	server=$!
	await 30 listens 18515 || wrong "no server: $(cat server)"
	maps "$server"
	"$@" localhost >client 2>&1 &
	window
}

# loop OPERATION
loop()
{
	mkfifo "said-$1"
	/rvt/files/limits loop "$device" "$1" >"said-$1" &
	head -n 1 "said-$1" | grep -x steady || wrong "the program ended"
	maps $!
	window
}

profile()
{
	name=$1
	[[ ! $name =~ ${RVT_ONLY:-.} ]] || t "$@"
}

# The same addresses in every process.
echo 0 >/proc/sys/kernel/randomize_va_space
load_device || true
t symbols symbols
for operation in write read fetch_add send; do
	profile "$operation-8" loop $operation
done
profile ud_send-1024 loop ud_send
# Beside rxe nothing is refused before its rings are full.
[[ $RVT_KIND != rvt ]] || profile refused-post loop refused
profile rc-pingpong-4096-events pingpong
