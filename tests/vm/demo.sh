#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# What a person wants to see first: the module loads, the stock programs find
# the device, two processes talk over it, the module unloads.

# shellcheck source=tests/vm/lib.sh
. /rvt/lib.sh

show_insmod()
{
	[[ $RVT_KIND != rvt ]] || echo "\$ insmod rvt.ko"
	load_device
	busybox lsmod | grep -E '^(Module|rvt|ib_)'
}

show_devices()
{
	run ibv_devices | tee devices
	grep -qw "$device" devices
}

show_info()
{
	run ibv_devinfo -d "$device" | tee info
	grep -q PORT_ACTIVE info
}

# Two processes, the server in the background.
talk()
{
	pair "$@" -- "$@" localhost
}

show_perftest()
{
	local attempt

	for attempt in 1 2 3; do
		talk "$@"
		# An emulated clock now and then yields such figures.
		if ! grep -E '^ *[0-9]+ +[0-9]+ .*(inf|nan| 0\.00 +0\.00 )' client; then
			return
		fi
		echo "(figures that cannot be, attempt $attempt: once more)"
	done
	return 1
}

show_rmmod()
{
	[[ $RVT_KIND != rvt ]] || echo "\$ rmmod rvt"
	unload_device
	run ibv_devices | tee devices
	! grep -w "$device" devices
}

t insmod show_insmod
device=${device:-${RVT_KIND}0}
t ibv_devices show_devices
t ibv_devinfo show_info
options=(-d "$device" -n 500 "${pingpong_gid[@]}")
t ibv_rc_pingpong talk ibv_rc_pingpong "${options[@]}"
t ibv_uc_pingpong talk ibv_uc_pingpong "${options[@]}"
t ibv_ud_pingpong talk ibv_ud_pingpong "${options[@]}" -s 1024
t ibv_srq_pingpong talk ibv_srq_pingpong "${options[@]}" -q 4
options=(-d "$device" -F "${perftest_gid[@]}")
t ib_send_lat show_perftest ib_send_lat "${options[@]}" -s 64 -n 1000
t ib_write_bw show_perftest ib_write_bw "${options[@]}" -s 65536 -n 500
t rmmod show_rmmod
