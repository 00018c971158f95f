// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "fiber.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define RVT_SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RVT_SIM_ASAN 1
#endif
#endif

#ifdef RVT_SIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace sim
{

namespace
{
Fiber *running_from; /* who switched, until the other side has arrived */
Fiber *running;
} // namespace

#if defined(__x86_64__)
/*
 * Keeps what a function call must keep and exchanges the stack pointer.
 * Where *@save_sp is later given as @load_sp, the call returns.
 */
extern "C" void rvt_sim_switch(void **save_sp, void *load_sp);
asm(R"(
.text
.globl rvt_sim_switch
.type rvt_sim_switch, @function
rvt_sim_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
.size rvt_sim_switch, .-rvt_sim_switch
.section .note.GNU-stack,"",@progbits
.text
)");
#endif

Fiber::Fiber(size_t stack_bytes)
{
	const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

	stack_bytes_ = (stack_bytes + page - 1) / page * page;
	map_bytes_ = stack_bytes_ + page;
	map_ = static_cast<char *>(mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	if (map_ == MAP_FAILED || mprotect(map_, page, PROT_NONE) != 0) {
		perror("sim: no memory for a stack");
		abort();
	}
	stack_ = map_ + page;
#if defined(__x86_64__)
	/* As if entry() had been called and rvt_sim_switch had saved. */
	void **top = reinterpret_cast<void **>(stack_ + stack_bytes_);

	*--top = nullptr; /* entry()'s return address: it never returns */
	*--top = reinterpret_cast<void *>(&Fiber::entry);
	for (int i = 0; i < 6; i++)
		*--top = nullptr;
	sp_ = top;
#else
	auto *context = new ucontext_t;

	getcontext(context);
	context->uc_stack.ss_sp = stack_;
	context->uc_stack.ss_size = stack_bytes_;
	context->uc_link = nullptr;
	makecontext(context, reinterpret_cast<void (*)()>(&Fiber::entry), 0);
	sp_ = context;
#endif
}

Fiber::~Fiber()
{
#if !defined(__x86_64__)
	delete static_cast<ucontext_t *>(sp_);
#endif
	if (map_)
		munmap(map_, map_bytes_);
}

/* The other side of a switch, on the stack that was switched to. */
void Fiber::arrived()
{
#ifdef RVT_SIM_ASAN
	const void *bottom = nullptr;
	size_t size = 0;

	__sanitizer_finish_switch_fiber(running->fake_stack_, &bottom, &size);
	/* Only now are the bounds of the stack that the program started on known. */
	if (running_from && !running_from->stack_) {
		running_from->stack_ = static_cast<char *>(const_cast<void *>(bottom));
		running_from->stack_bytes_ = size;
	}
#endif
	running_from = nullptr;
}

void Fiber::entry()
{
	arrived();
	for (;;)
		running->body_();
}

void Fiber::switch_to(Fiber &from, Fiber &to)
{
	running_from = &from;
	running = &to;
#ifdef RVT_SIM_ASAN
	__sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_, to.stack_bytes_);
#endif
#if defined(__x86_64__)
	rvt_sim_switch(&from.sp_, to.sp_);
#else
	if (!from.sp_)
		from.sp_ = new ucontext_t;
	swapcontext(static_cast<ucontext_t *>(from.sp_), static_cast<ucontext_t *>(to.sp_));
#endif
	arrived();
}

} // namespace sim
