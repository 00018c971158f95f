# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The words a person types. What kbuild reads is in Kbuild; each word here is a
# script in scripts/, which can be called by itself and says what it takes.

.DEFAULT_GOAL := module
.PHONY: module load unload dkms demo check style format host kunit man vm diags managers abi torture pyverbs perftest ibverbs-utils qperf ucx libfabric mpi opensm vm-stable vm-newest bench bench-um bench-host bench-check profile shell clean distclean help

module: ## build build/rvt.ko for the running kernel, or for KDIR=<build folder>
	@set -e; folder=$$(scripts/build-module "$(or $(KDIR),running)"); \
	cp "$$folder/rvt.ko" build/rvt.ko; \
	echo "build/rvt.ko is ready. To load it, as root: make load"

load: ## load build/rvt.ko into the running kernel
	modprobe ib_uverbs
	insmod build/rvt.ko
	@rdma link 2>/dev/null || ls /sys/class/infiniband

unload: ## unload it
	rmmod rvt

dkms: ## have DKMS install it, for this kernel and those to come; as root
	@scripts/dkms install

demo: ## show it in a virtual machine; on Debian 12, as root; installs what it needs
	@scripts/demo

check: ## run all tests; ends with "N passed, N failed"
	@scripts/check

style: ## check formatting, scripts and licence lines
	@scripts/style

format: ## format the C++ sources
	@scripts/style --fix

host: ## test the core as an ordinary program
	@tests/host/run

kunit: ## run the KUnit suites on User Mode Linux
	@scripts/kunit-run um

man: ## make section 9 manual pages into build/man
	@scripts/functions man

vm: ## run stock RDMA programs in a virtual machine, Debian 12
	@scripts/vm bookworm device pingpong perftest kill devices

diags: ## run management programs, tables and namespaces in a virtual machine
	@scripts/vm --modargs devices=2 bookworm diags tables netns ipoib

managers: ## try rdma_cm and wrong management datagrams in a virtual machine
	@scripts/managers bookworm

abi: ## try the user ABI in detail in a virtual machine, Debian 12
	@scripts/abi bookworm

torture: ## let many processes misuse the device at once, in a virtual machine
	@scripts/torture bookworm

pyverbs: ## run rdma-core's own pyverbs tests in a virtual machine
	@scripts/pyverbs bookworm

perftest: ## run the programs of perftest in a virtual machine
	@scripts/vm bookworm perftest

ibverbs-utils: ## run the programs of ibverbs-utils in a virtual machine
	@scripts/vm bookworm device pingpong

qperf: ## run qperf in a virtual machine
	@scripts/hpc qperf

ucx: ## run ucx_perftest in a virtual machine
	@scripts/hpc ucx

libfabric: ## run libfabric's fi_pingpong in a virtual machine
	@scripts/hpc libfabric

mpi: ## run Open MPI with two ranks in a virtual machine
	@scripts/hpc mpi

opensm: ## run IPoIB and rdma_cm with a subnet manager in a virtual machine
	@scripts/hpc opensm

vm-stable: ## run stock RDMA programs on Debian 13
	@scripts/vm trixie device pingpong perftest

vm-newest: ## run stock RDMA programs, fewer, on Debian's newest kernel
	@scripts/vm sid device pingpong

bench: ## measure rvt beside rdma_rxe and the machine's limits in one virtual machine
	@scripts/bench vm

bench-um: ## measure the module at native speed, in User Mode Linux
	@scripts/bench um

bench-host: ## measure the core as an ordinary program
	@scripts/bench host

bench-check: ## count instructions; fails when an operation takes 3 % more than before
	@scripts/bench-check

profile: ## say what the instructions of an operation are spent on, and by whom
	@scripts/profile

shell: ## a shell in the virtual machine
	@scripts/vm --shell bookworm

clean: ## remove what was built in the tree
	rm -rf build

distclean: clean ## also remove cached root file systems and kernels
	rm -rf "$${RVT_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/rvt}"

help: ## show this
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1 - \2/p' Makefile | \
		awk '{ n = $$2; sub(/^ *make [a-z-]* - /, ""); printf "  make %-12s %s\n", n, $$0 }'
