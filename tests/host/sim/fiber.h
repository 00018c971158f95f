/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * fiber.h - a second stack to run on, and the switch between stacks.
 *
 * Told to AddressSanitizer, so that its checks hold on every stack.
 */
#ifndef RVT_SIM_FIBER_H
#define RVT_SIM_FIBER_H

#include <cstddef>
#include <functional>

namespace sim
{

/*
 * A stack that runs one function after the other. The Fiber without a stack
 * is the one that the program started on.
 */
class Fiber
{
public:
	Fiber() = default;
	explicit Fiber(size_t stack_bytes);
	~Fiber();
	Fiber(const Fiber &) = delete;
	Fiber &operator=(const Fiber &) = delete;

	/* What the fiber does when it is switched to for the next time. */
	void set_body(std::function<void()> body) { body_ = std::move(body); }

	/* Leave the running fiber, which must be @from, and go on in @to. */
	static void switch_to(Fiber &from, Fiber &to);

private:
	static void entry();
	static void arrived();

	std::function<void()> body_;
	void *sp_ = nullptr;
	char *map_ = nullptr;
	size_t map_bytes_ = 0;
	char *stack_ = nullptr;
	size_t stack_bytes_ = 0;
	[[maybe_unused]] void *fake_stack_ = nullptr; /* AddressSanitizer's */
};

} // namespace sim

#endif
