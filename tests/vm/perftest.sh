#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The programs of perftest: latency and bandwidth of every operation over all
# message sizes, on every type of connection that the operation has; then what
# their options make of them.

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
for operation in send read; do
	t "${operation}_lat-events" perftest ib_${operation}_lat 64 -e -n 100 -s 64
done
t atomic_lat-events perftest ib_atomic_lat 8 -e -n 100

# options PROGRAM TYPE SIZE OPTION...: one size with these options. Of atomics
# the size is 8, and they do not take it as an option.
options()
{
	local program=$1 type=$2 size=$3

	shift 3
	if [[ $program == *atomic* ]]; then
		set -- -c "$type" "$@"
	else
		set -- -c "$type" -s "$size" "$@"
	fi
	t "$(tr -d ' /' <<<"${program#ib_}-$type-$*")" perftest "$program" "$size" "$@"
}

largest_datagram=${datagram##* }

# Many queue pairs, in both directions, polled and by events.
for type in RC UC UD; do
	size=4096
	[[ $type != UD ]] || size=$largest_datagram
	options ib_send_bw $type "$size" -n 100 -q 8
	options ib_send_bw $type "$size" -n 100 -q 8 -b -e
	options ib_send_bw $type "$size" -n 100 -q 64 -b
	options ib_send_bw $type "$size" -n 100 -q 64 -e
	if [[ $type != UD ]]; then
		options ib_write_bw $type 4096 -n 100 -q 8
		options ib_write_bw $type 4096 -n 100 -q 64 -b
	fi
done
for program in ib_read_bw ib_atomic_bw; do
	size=4096
	[[ $program == ib_read_bw ]] || size=8
	options $program RC $size -n 100 -q 8
	options $program RC $size -n 100 -q 8 -b -e
	options $program RC $size -n 100 -q 64 -b
	options $program RC $size -n 100 -q 64 -e
done

# Messages of UC and UD that find no receive are lost, and perftest then waits
# for ever. It posts no more receives than there are messages of one queue pair,
# and divides those of a shared queue among the queue pairs; what comes beyond may
# find it slow to post again. So: no more messages than receives.

# Shared receive queues.
for type in RC UC UD; do
	pairs=1
	[[ $type != RC ]] || pairs=8
	options ib_send_bw $type 1024 -n 50 -q $pairs --use-srq
	options ib_send_bw $type 1024 -n 50 -q $pairs --use-srq -e
done

# A completion for every 50th request; lists of requests.
for type in RC UC UD; do
	options ib_send_bw $type 64 -n 400 -Q 50
	options ib_send_bw $type 64 -n 400 -l 16 --recv_post_list=16
	[[ $type == UD ]] || options ib_write_bw $type 64 -n 1000 -Q 50
done
options ib_read_bw RC 64 -n 1000 -Q 50
options ib_atomic_bw RC 8 -n 1000 -Q 50

for mtu in 256 512 1024 2048 4096; do
	[[ $mtu -le $largest_datagram ]] || continue
	options ib_send_bw RC 65536 -n 20 -m $mtu
	options ib_send_bw UD $mtu -n 20 -m $mtu
	options ib_read_bw RC 65536 -n 20 -m $mtu
done

# Memory of other kinds; a region for each queue pair.
map_file()
{
	truncate -s 16M /tmp/mapped
	perftest ib_write_bw 65536 -s 65536 -n 100 --mmap=/tmp/mapped
}

huge_pages()
{
	echo 32 >/proc/sys/vm/nr_hugepages
	perftest ib_read_bw 65536 -s 65536 -n 100 --use_hugepages
	echo 0 >/proc/sys/vm/nr_hugepages
}

t mapped-file map_file
t huge-pages huge_pages
options ib_send_bw RC 65536 -n 100 -q 8 --mr_per_qp

# What the device does not have: both sides must say so and leave nothing behind.
refused()
{
	local before

	before=$(objects)
	if pair ib_send_bw -d "$device" -F -n 100 "$@" -- \
		ib_send_bw -d "$device" -F -n 100 "$@" localhost; then
		wrong "it went through"
	fi
	grep -i -E 'unable|could|fail|error' server || wrong "the server does not say why"
	await 10 objects_are "$before" || wrong "left behind: $(objects), before: $before"
}

if [[ $RVT_KIND == rvt ]]; then
	t refused-XRC refused -c XRC
	t refused-DC refused -c DC
	t refused-on-demand-paging refused --odp
	for type in RC UC UD; do
		options ib_send_bw $type 1024 -n 100 -x 0
	done
fi

t rmmod unload_device
