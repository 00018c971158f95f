# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How scripts/profile sorts instructions: on a small machine of made-up functions."""
import importlib.util
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True

path = pathlib.Path(__file__).parent.parent / "scripts/profile-trace.py"
spec = importlib.util.spec_from_file_location("trace", path)
trace = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trace)

KERNEL = 0xFFFFFFFF81000000
NAMES = [("entry_SYSCALL_64", ""), ("vfs_write", ""), ("__kmalloc", ""), ("get_slab", ""),
         ("_raw_spin_lock", ""), ("memcpy", ""), ("asm_sysvec_timer", ""), ("run_timers", ""),
         ("schedule", ""), ("__switch_to_asm", ""), ("ib_uverbs_post_send", "ib_uverbs"),
         ("rvt_post_send", "rvt"), ("find_qp", "rvt"), ("find_qp.cold", "rvt"),
         ("wake_poller", "ib_uverbs"), ("__wake_up", "")]
FILES = {"rvt_post_send": "drivers/rvt/verbs/post", "find_qp": "drivers/rvt/core/qp/qp_table"}
SYMBOLS = [(KERNEL + 0x100 * i, *name) for i, name in enumerate(NAMES)]
MAPS = [[0x1000, 0x2000, "program"], [0x3000, 0x4000, "libibverbs.so.1"]]
AT = {name: start for start, name, _ in SYMBOLS}


def run(*steps):
    """What walk() says of each step: a function's name is its start, NAME+ its middle."""
    addresses = [s if isinstance(s, int) else
                 AT[s.rstrip("+")] + (0x10 if s.endswith("+") else 0) for s in steps]
    return [(group, part) for group, part, _ in
            trace.Sorter(SYMBOLS, FILES, MAPS).walk(addresses)]


class Sorting(unittest.TestCase):
    def test_user_addresses_are_told_apart_by_map(self):
        self.assertEqual(run(0x1010, 0x3FFF, 0x4000), [
            (trace.PROGRAM, "program"), (trace.PROGRAM, "libibverbs.so.1"),
            (trace.PROGRAM, "other")])

    def test_what_a_function_calls_belongs_to_it(self):
        got = run("entry_SYSCALL_64", "vfs_write", "ib_uverbs_post_send", "__kmalloc",
                  "get_slab", "_raw_spin_lock", "get_slab+", "__kmalloc+",
                  "ib_uverbs_post_send+")
        self.assertEqual(got[:2], [("kernel", trace.ENTRY)] * 2)
        self.assertEqual(got[3:8], [("kernel", "memory")] * 5)
        self.assertEqual(got[8], (trace.UVERBS, "ib_uverbs"))

    def test_the_kernel_called_by_the_module_is_apart(self):
        got = run("ib_uverbs_post_send", "rvt_post_send", "_raw_spin_lock", "rvt_post_send+",
                  "memcpy", "rvt_post_send+", "ib_uverbs_post_send+", "_raw_spin_lock")
        self.assertEqual(got[1], ("rvt", "shim (verbs/)"))
        self.assertEqual(got[2], ("called by rvt", "locks, read sections"))
        self.assertEqual(got[4], ("called by rvt", "copies"))
        self.assertEqual(got[7], ("kernel", "locks, read sections"))

    def test_waking_through_an_upcall_is_the_kernels(self):
        got = run("rvt_post_send", "wake_poller", "__wake_up", "_raw_spin_lock")
        self.assertEqual(got[2:], [("kernel", "sleeping, waking")] * 2)

    def test_a_jump_to_a_function_returns_to_the_caller(self):
        got = run("rvt_post_send", "find_qp", "memcpy", "rvt_post_send+", "_raw_spin_lock")
        self.assertEqual(got[3:], [("rvt", "shim (verbs/)"),
                                   ("called by rvt", "locks, read sections")])

    def test_a_part_split_off_is_the_function(self):
        got = run("rvt_post_send", "find_qp", "find_qp.cold", "find_qp+", "rvt_post_send+")
        self.assertEqual(got[1:4], [("rvt", "look-up (keys, QPN)")] * 3)

    def test_another_task_goes_on_where_it_slept(self):
        got = run("rvt_post_send", "schedule", "__switch_to_asm", "vfs_write+", "memcpy")
        self.assertEqual(got[3:], [("kernel", trace.ENTRY), ("kernel", "copies")])

    def test_an_interrupt_is_nobodys(self):
        got = run("rvt_post_send", "asm_sysvec_timer", "run_timers", "wake_poller",
                  "rvt_post_send+")
        self.assertEqual(got[1:4], [("interrupts", "interrupts")] * 3)
        self.assertEqual(got[4], ("rvt", "shim (verbs/)"))
        got = run("ib_uverbs_post_send", "__kmalloc", "asm_sysvec_timer", "__kmalloc+")
        self.assertEqual(got[2:], [("interrupts", "interrupts"), ("kernel", "memory")])

    def test_operations_run_from_mark_to_mark(self):
        mark = AT["ib_uverbs_post_send"]
        one = [mark, AT["rvt_post_send"], AT["ib_uverbs_post_send"] + 4, 0x1010]
        whole = [0x1010] + one * (2 * (trace.SKIP + trace.OPERATIONS)) + [mark]
        got = trace.split(trace.Sorter(SYMBOLS, FILES, MAPS), whole, mark, 2)
        self.assertEqual([len(o) for o in got], [2 * len(one)] * trace.OPERATIONS)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    failed = len(result.failures) + len(result.errors)
    with open(os.environ.get("RVT_RESULT", os.devnull), "w") as f:
        f.write(f"{result.testsRun - failed} {failed} 0\n")
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)
