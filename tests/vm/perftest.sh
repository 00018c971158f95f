#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The programs of perftest: latency and bandwidth of every operation over all
# message sizes, on every type of connection that the operation has.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

# Rows of figures: "SIZE ITERATIONS FIGURE...".
rows()
{
	grep -E '^[[:space:]]*[0-9]+[[:space:]]+[0-9]+[[:space:]]+[-0-9.a-z]+' "$1"
}

# Clocks of an emulated machine now and then make perftest divide by zero.
nonsense()
{
	rows "$1" | grep -E -i 'inf|nan' ||
		# A latency, or a bandwidth of messages large enough to show, of zero.
		rows "$1" | awk -v kind="$2" '
			kind == "lat" && ($5 <= 0 || $6 <= 0) { print; bad = 1 }
			kind == "bw" && $1 >= 1024 && $4 <= 0 { print; bad = 1 }
			END { exit !bad }'
}

# perftest PROGRAM SIZES OPTION...: SIZES are the sizes that must be reported
perftest()
{
	local program=$1 sizes=$2 attempt kind=${1##*_} found

	shift 2
	set -- "$program" -d "$device" "${perftest_gid[@]}" -F "$@"
	for attempt in 1 2 3; do
		pair "$@" -- "$@" localhost || wrong "$program failed"
		if ! nonsense client "$kind"; then
			break
		fi
		[[ $attempt -lt 3 ]] || wrong "$program prints nonsense three times"
		echo "figures that cannot be: once more"
	done
	found=$(rows client | awk '{ printf "%s ", $1 }')
	[[ $found == "$sizes " ]] || wrong "reported sizes '$found', not '$sizes'"
	! grep -i -E 'error|fail|mismatch' client server ||
		wrong "$program complains"
}

powers()
{
	local size=2 list=

	while [[ $size -le $1 ]]; do
		list+="$size "
		size=$((size * 2))
	done
	echo "${list% }"
}

load_device || true
device=${device:-${RVT_KIND}0}
t device device_exists

all=$(powers 8388608)
datagram=$(powers "$([[ $RVT_KIND == rvt ]] && echo 4096 || echo 1024)")

for kind in lat bw; do
	for type in RC UC UD; do
		sizes=$all
		[[ $type != UD ]] || sizes=$datagram
		t "send_$kind-$type" perftest ib_send_$kind "$sizes" -a -n 10 -c $type
		[[ $type == UD ]] ||
			t "write_$kind-$type" perftest ib_write_$kind "$sizes" -a -n 10 -c $type
	done
	t "read_$kind-RC" perftest ib_read_$kind "$all" -a -n 10
	t "atomic_$kind-add" perftest ib_atomic_$kind 8 -n 100 -A FETCH_AND_ADD
	t "atomic_$kind-swap" perftest ib_atomic_$kind 8 -n 100 -A CMP_AND_SWAP
done
for operation in send read atomic; do
	t "${operation}_lat-events" perftest ib_${operation}_lat \
		"$([[ $operation == atomic ]] && echo 8 || echo 64)" \
		-e -n 100 "$([[ $operation == atomic ]] && echo -F || echo -s64)"
done

t rmmod unload_device
