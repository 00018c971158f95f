#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The two halves of scripts/profile.

    profile-trace.py record FOLDER MONITOR INPUT
        Read what scripts/vm prints. When the guest asks for a window, have QEMU
        write down the address of each instruction for some operations, and
        answer the guest by a line in INPUT. MONITOR is QEMU's QMP socket.

    profile-trace.py report FOLDER [-v]
        Sort what was recorded, by function and by who called it.
"""
import array
import base64
import bisect
import collections
import contextlib
import gzip
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import typing

# An operation begins where a post enters uverbs. Before a window the guest is left
# alone for some ticks of four milliseconds, until a ping-pong is in its stride.
MARK = "ib_uverbs_post_send"
TICKS = 50
SKIP = 10
OPERATIONS = 40
POSTS = {"rc-pingpong-4096-events": 2}


def need(test):
    return (SKIP + OPERATIONS) * POSTS.get(test, 1) + 1


# --- recording ----------------------------------------------------------------------------


class Monitor:
    """QEMU's monitor: commands for people, carried by QMP."""

    def __init__(self, path):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        self.file = s.makefile("rw")
        self.file.readline()
        self.ask({"execute": "qmp_capabilities"})

    def ask(self, request):
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        for line in self.file:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                sys.exit(f"profile: QEMU refused {request}: {answer['error']['desc']}")
        sys.exit("profile: QEMU ended")

    def says(self, command):
        return self.ask({"execute": "human-monitor-command",
                         "arguments": {"command-line": command}}).strip()

    def one_by_one(self, switch):
        """An instruction at a time: the command was renamed in QEMU 8.1."""
        answers = [self.says(f"{command} {switch}")
                   for command in ("one-insn-per-tb", "singlestep")]
        if all(answers):
            sys.exit(f"profile: this QEMU cannot execute single instructions: {answers[0]}")

    def number_at(self, address):
        return int(self.says(f"x/1gx {address:#x}").split()[-1], 16)

    def log(self, what):
        answer = self.says(f"log {what}")
        if answer:
            sys.exit(f"profile: this QEMU cannot log {what}: {answer}")


class Trace(threading.Thread):
    """Reads QEMU's log from a pipe, so that QEMU waits for us, until finish()."""

    def __init__(self, path, mark, marks):
        super().__init__(daemon=True)
        self.path, self.mark, self.marks = path, mark, marks
        self.addresses = array.array("Q")
        self.enough = threading.Event()

    def run(self):
        seen = 0
        with open(self.path, encoding="ascii", errors="replace") as log:
            for line in log:
                if line.startswith("Trace ") and line.endswith(" \n"):
                    address = int(line.split("/", 2)[1], 16)
                    self.addresses.append(address)
                    if address == self.mark:
                        seen += 1
                        if seen == self.marks:
                            self.enough.set()
                elif line.startswith("Stopped execution"):
                    # The one before was not executed after all.
                    self.addresses.pop()
                elif line.endswith("finish\n"):
                    return
        self.enough.set()

    def finish(self):
        """QEMU writes no more, but may keep the pipe open, and half a line to itself."""
        with open(self.path, "w", encoding="ascii") as log:
            log.write("finish\n")
        self.join()


def watch(monitor, folder, test, symbols):
    """Write down what is executed until enough operations were seen."""
    ticks = address_of("jiffies_64", symbols)
    end = monitor.number_at(ticks) + TICKS
    while monitor.number_at(ticks) < end:
        time.sleep(0.02)
    pipe = os.path.join(folder, f"{test}.log")
    os.mkfifo(pipe)
    trace = Trace(pipe, address_of(MARK, symbols), need(test))
    trace.start()
    monitor.ask({"execute": "stop"})
    monitor.one_by_one("on")
    monitor.says(f"logfile {pipe}")
    monitor.log("exec,nochain")
    monitor.ask({"execute": "cont"})
    trace.enough.wait()
    monitor.ask({"execute": "stop"})
    monitor.log("none")
    monitor.one_by_one("off")
    trace.finish()
    monitor.ask({"execute": "cont"})
    os.unlink(pipe)
    with open(os.path.join(folder, f"{test}.trace"), "wb") as f:
        trace.addresses.tofile(f)
    print(f"  {test}: {len(trace.addresses)} instructions written down", flush=True)


def record(folder, monitor_path, input_path):
    answer = os.fdopen(os.open(input_path, os.O_RDWR), "w")
    monitor = symbols = None
    recorded = {}
    try:
        for line in sys.stdin:
            word, _, rest = line.strip().removeprefix("| ").partition(" ")
            if word == "symbols":
                with gzip.open(os.path.join(folder, "symbols.gz"), "wb") as f:
                    f.write(gzip.decompress(base64.b64decode(rest)))
                symbols = read_symbols(folder)
            elif word == "map":
                test, addresses, *path = rest.split()
                start, end = (int(a, 16) for a in addresses.split("-"))
                recorded.setdefault(test, []).append(
                    [start, end, os.path.basename(path[0]) if path else "other"])
            elif word == "window":
                monitor = monitor or Monitor(monitor_path)
                watch(monitor, folder, rest, symbols)
                answer.write("\n")
                answer.flush()
            elif not line.startswith("  | "):
                print(line, end="", flush=True)
    except SystemExit:
        # Nobody would answer the guest any more.
        with contextlib.suppress(OSError, SystemExit):
            (monitor or Monitor(monitor_path)).ask({"execute": "quit"})
        raise
    with open(os.path.join(folder, "recorded.json"), "w") as f:
        json.dump(recorded, f)


# --- sorting --------------------------------------------------------------------------------


def read_symbols(folder):
    """(start, name, module), sorted; of several names of an address the shortest."""
    names = {}
    with gzip.open(os.path.join(folder, "symbols.gz"), "rt") as f:
        for line in f:
            start, name, *module = line.split()
            start, module = int(start, 16), module[0].strip("[]") if module else ""
            if start not in names or len(name) < len(names[start][0]):
                names[start] = (name, module)
    return [(start, *names[start]) for start in sorted(names)]


def address_of(wanted, symbols):
    for start, name, _ in symbols:
        if name == wanted:
            return start
    sys.exit(f"profile: the guest's kernel has no {wanted}")


# What a kernel function is for, by the outermost name that fits: what it calls
# belongs to it.
KERNEL = [(part, re.compile(pattern)) for part, pattern in (
    ("interrupts", r"asm_(sysvec|common)_|sysvec_|common_interrupt$"),
    ("sleeping, waking", r"_*schedule|_*wake_up|try_to_wake|prepare_to_wait|finish_wait|"
     r"init_wait|switch_|__switch_to|finish_task_switch|ret_from_fork|_cond_resched|"
     r"wait_woken|woken_wake|kthread|smpboot|do_idle|kill_fasync|sock_def_|ep_poll_callback|"
     r"raise_softirq|wakeup_softirqd"),
    ("locks, read sections", r"_raw_|_*srcu|_*rcu_|mutex_|_*down_|_*up_|up_|down_|queued_|"
     r"refcount|_*local_bh|preempt_|percpu_ref"),
    ("look-up of handles", r"radix_tree|_*idr_|_*xa_|_*xas_"),
    ("memory", r"_*kmalloc|_*kfree|kmem_cache|_*slab|kvmalloc|kvfree|_*kmem|vfree|vmalloc"),
    ("copies", r"_*copy_|_*memcpy|_*memmove|_*memset|_*clear_user|_*get_user|_*put_user|"
     r"_*check_object_size|check_stack_object|_*check_heap|rep_movs|strncpy|_*import_|"
     r"fault_in"),
)]
ENTRY = "system call, files"
STICKY = {part for part, _ in KERNEL}

# Which part of rvt a source file is.
OURS = (
    ("drivers/rvt/verbs/", "shim (verbs/)"),
    ("drivers/rvt/os/", "os/"),
    ("drivers/rvt/core/wq/", "posting (wq/)"),
    ("drivers/rvt/core/mr/sge", "copy (mr/sge)"),
    ("drivers/rvt/core/mr/", "look-up (keys, QPN)"),
    ("drivers/rvt/core/qp/qp_table", "look-up (keys, QPN)"),
    ("drivers/rvt/core/cq/", "completions (cq/)"),
    ("drivers/rvt/core/", "engine (transport/, qp/)"),
)

PROGRAM, UVERBS, CALLED = "program and libraries", "ib_uverbs, ib_core", "called by"


class Frame(typing.NamedTuple):
    key: tuple      # the function's name and module
    whose: tuple    # group, part, function: where its instructions are counted
    owner: str      # the module that called, or called what called


class Sorter:
    """Gives each instruction to a function, and the function to a group and a part.

    The stack of calls is guessed from the addresses alone: the start of another
    function is a call, anything else in one is a return to it.
    """

    def __init__(self, symbols, files, maps):
        self.starts = [s[0] for s in symbols]
        self.symbols = symbols
        self.files = files
        self.maps = sorted(maps)
        self.found = {}

    def find(self, address):
        """(name, module, whether the function starts here)"""
        hit = self.found.get(address)
        if not hit:
            i = bisect.bisect_right(self.starts, address) - 1
            start, name, module = self.symbols[i] if i >= 0 else (0, "unknown", "")
            # What compilers split off a function is still the function.
            plain = name.removesuffix(".cold")
            hit = self.found[address] = (plain, module, address == start and plain == name)
        return hit

    def library(self, address):
        i = bisect.bisect_right(self.maps, [address, 1 << 64]) - 1
        return self.maps[i][2] if i >= 0 and address < self.maps[i][1] else "other"

    def frame(self, name, module, parent):
        """A function that was called by, or is on the stack above, its parent."""
        def of(group, part, owner):
            return Frame((name, module), (group, part, name), owner)

        group, part, _ = parent.whose if parent else ("", "", "")
        if part == "interrupts":
            return of(group, part, parent.owner)
        if module.startswith("ib_"):
            return of(UVERBS, module, module)
        if module:
            file = self.files.get(name, "")
            return of(module, next((p for prefix, p in OURS if file.startswith(prefix)), module),
                      module)
        owner = parent.owner if parent else ""
        fits = next((p for p, pattern in KERNEL if pattern.match(name)), None)
        if fits == "interrupts":
            return of(fits, fits, owner)
        if part in STICKY or parent and name.startswith("__x86_"):
            return of(group, part, owner)
        theirs = owner and not owner.startswith("ib_")
        return of(f"{CALLED} {owner}" if theirs else "kernel",
                  fits or ("other" if owner else ENTRY), owner)

    def walk(self, addresses):
        """For each instruction: group, part, function."""
        stack = []
        for address in addresses:
            if address < 1 << 47:
                stack.clear()
                yield PROGRAM, self.library(address), ""
                continue
            name, module, start = self.find(address)
            key = (name, module)
            if not stack or stack[-1].key != key:
                if not start:
                    # Back to where it was called; if nowhere, this is another task.
                    while stack and stack[-1].key != key:
                        stack.pop()
                if not stack or stack[-1].key != key:
                    stack.append(self.frame(name, module, stack[-1] if stack else None))
            yield stack[-1].whose


def split(sorter, addresses, mark, posts):
    """The operations of a window, each a list of what walk() gives."""
    marks = [i for i, a in enumerate(addresses) if a == mark]
    marks = marks[SKIP * posts:(SKIP + OPERATIONS) * posts + 1:posts]
    whole = list(sorter.walk(addresses))
    return [whole[a:b] for a, b in zip(marks, marks[1:])]


SYSTEM_CALLS = ("ib_uverbs_post_send", "ib_uverbs_req_notify_cq", "ib_uverbs_comp_event_read")


def system_calls(operations):
    """What each kind of system call takes: [count, Counter of groups]."""
    kinds = collections.defaultdict(lambda: [0, collections.Counter()])
    kind, slept, groups = None, False, collections.Counter()
    for group, _, function in itertools.chain(*operations):
        if group != PROGRAM:
            groups[group] += 1
            if function in SYSTEM_CALLS and not kind:
                kind = function
            slept = slept or function == "__schedule"
        elif groups:
            entry = kinds[(kind or "other") + (", gives way" if slept else "")]
            entry[0] += 1
            entry[1].update(groups)
            kind, slept, groups = None, False, collections.Counter()
    # Operations begin and end within a post: the last half belongs to the first.
    kinds[MARK][1].update(groups)
    return kinds


def demangle(names):
    names = list(names)
    try:
        plain = subprocess.run(["c++filt"], input="\n".join(names), text=True, check=True,
                               capture_output=True).stdout.split("\n")
    except OSError:
        return {n: n for n in names}
    short = (re.sub(r"\(anonymous namespace\)::|\[abi:\w+\]", "", p) for p in plain)
    return {n: re.sub(r"\(.*", "", s) or n for n, s in zip(names, short)}


def read_test(folder, test, symbols, files, maps):
    addresses = array.array("Q")
    path = os.path.join(folder, f"{test}.trace")
    with open(path, "rb") as f:
        addresses.fromfile(f, os.path.getsize(path) // addresses.itemsize)
    operations = split(Sorter(symbols, files, maps), addresses, address_of(MARK, symbols),
                       POSTS.get(test, 1))
    clean = [o for o in operations if not any(step[1] == "interrupts" for step in o)]
    if len(clean) < OPERATIONS / 2:
        sys.exit(f"profile: of {len(operations)} operations of {test} only {len(clean)} are "
                 "whole: nothing is said of so few")
    functions, parts = collections.Counter(), collections.Counter()
    for operation in clean:
        functions.update(operation)
    for (group, part, _), count in functions.items():
        parts[group, part] += count
    n = len(clean)
    sizes = sorted(len(o) for o in clean)
    return {
        "operations": n,
        "left_out": len(operations) - n,
        "instructions": sum(sizes) / n,
        "least": sizes[0],
        "most": sizes[-1],
        "parts": [[*key, count / n] for key, count in sorted(parts.items())],
        "functions": [[*key, count / n] for key, count in functions.most_common()],
        "system_calls": {kind: {"count": count / n, "groups": {g: c / count for g, c in of.items()}}
                         for kind, (count, of) in system_calls(clean).items() if count},
    }


ORDER = [PROGRAM, "kernel", UVERBS]


def table(tests, found):
    groups = []
    for test in tests:
        for group, *_ in found[test]["parts"]:
            if group not in groups:
                groups.append(group)
    groups.sort(key=lambda g: (ORDER.index(g) if g in ORDER else 9, g.startswith(CALLED), g))
    wide = [max(len(t), 9) for t in tests]

    def row(name, values):
        cells = (f"{v:{w}.0f}" if v else " " * w for v, w in zip(values, wide))
        print(f"{name:36} " + " ".join(cells))

    print(f"{'':36} " + " ".join(f"{t:>{w}}" for t, w in zip(tests, wide)))
    for group in groups:
        of = [{p: c for g, p, c in found[t]["parts"] if g == group} for t in tests]
        row(group, [sum(o.values()) for o in of])
        names = sorted({p for o in of for p in o}, key=lambda p: -sum(o.get(p, 0) for o in of))
        if len(names) > 1 or group.startswith(CALLED):
            for part in names:
                row("    " + part, [o.get(part, 0) for o in of])
    row("together", [found[t]["instructions"] for t in tests])
    for group in groups:
        if f"{CALLED} {group}" in groups:
            theirs = (group, f"{CALLED} {group}")
            row(f"without {' and '.join(theirs)}",
                [sum(c for g, _, c in found[t]["parts"] if g not in theirs) for t in tests])


def report(folder, verbose):
    with open(os.path.join(folder, "recorded.json")) as f:
        recorded = json.load(f)
    with open(os.path.join(folder, "files")) as f:
        files = dict(line.split() for line in f)
    symbols = read_symbols(folder)
    tests = list(recorded)
    found = {}
    for test in tests:
        print(f"profile: sorting {test}", file=sys.stderr, flush=True)
        found[test] = read_test(folder, test, symbols, files, recorded[test])
    print("\ninstructions for each operation\n")
    table(tests, found)
    for test in tests:
        f = found[test]
        spread = "each the same" if f["least"] == f["most"] else f"{f['least']} to {f['most']}"
        print(f"{test}: {f['operations']} operations, {spread}" +
              (f"; {f['left_out']} with interrupts left out" if f["left_out"] else ""))
    for test in tests:
        calls = found[test]["system_calls"]
        if len(calls) > 1:
            print(f"\n{test}: system calls")
            for kind, of in sorted(calls.items(), key=lambda c: -c[1]["count"]):
                print(f"  {of['count']:5.2f} x {sum(of['groups'].values()):6.0f}  {kind:34} " +
                      ", ".join(f"{g} {c:.0f}" for g, c in of["groups"].items()))
    if verbose:
        plain = demangle({f for t in tests for _, _, f, _ in found[t]["functions"]})
        for test in tests:
            print(f"\n{test}: functions")
            shown = [f for f in found[test]["functions"] if f[2]][:verbose]
            for group, part, function, count in shown:
                print(f"  {count:7.1f}  {plain[function]:50} {group}: {part}")
    with open(os.path.join(folder, "profile.json"), "w") as f:
        json.dump(found, f, indent=1)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(*sys.argv[2:5])
    else:
        report(sys.argv[2], 40 if "-v" in sys.argv[3:] else 0)
