# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# bench-report.py vm|um|host FOLDER ROUNDS: what scripts/bench measured (the file
# KIND.values in FOLDER) as a table on standard output, as FOLDER/KIND.json and, of
# vm, as FOLDER/vm.svg. It shows medians, compares round by round and says what the
# target is; to judge is the reader's.

import collections
import html
import json
import math
import re
import statistics
import sys

# How many times better than rdma_rxe, by name of the test.
TARGETS = [
    (r"(rc|uc)-pingpong-4096$", 6), (r"ud-pingpong-1024$", 4),
    (r"(send|write)-lat-64$", 3), (r"read-lat-64$|atomic-lat-8$", 6),
    (r"-bw-1M$", 15), (r"-rate-64$", 6),
]


def unit_of(test):
    for pattern, unit in (("-bw-", "MB/s"), ("-rate-", "Mmsg/s"), ("pairs", "msg/s"),
                          ("bytes-per", "bytes"), ("pingpong-8-|^write-8$", "ns")):
        if re.search(pattern, test):
            return unit
    return "us"


def more_is_better(test):
    return unit_of(test).endswith("/s")


def target_of(test):
    return next((t for pattern, t in TARGETS if re.search(pattern, test)), None)


def read_values(path):
    """{test: {device: [figures]}}, in the order in which they came."""
    values = collections.OrderedDict()
    for line in open(path):
        _, test, device, figure = line.split()
        values.setdefault(test, {}).setdefault(device, []).append(float(figure))
    return values


def number(value):
    places = 0 if value >= 10000 else 1 if value >= 100 else 2 if value >= 1 else 3
    return f"{value:,.{places}f}"


def spread(figures):
    return f"{number(min(figures))}..{number(max(figures))}"


# --- rvt beside rdma_rxe -----------------------------------------------------------


def order(test):
    """Kinds of test together, sizes rising."""
    kinds = ["pingpong-4096$", "pingpong-1024$", "events", "-lat-", "-rate-", "-bw-", ""]
    kind = next(i for i, k in enumerate(kinds) if re.search(k, test))
    pairs = int((re.search(r"-q(\d+)", test) or [0, "1"])[1])
    size = re.search(r"-(\d+)([KM]?)(-q|$)", test)
    size = int(size[1]) * {"": 1, "K": 1024, "M": 1 << 20}[size[2]] if size else 0
    return kind, pairs, size, test


def of_rounds(figures, others):
    """The median of the rounds' ratios: what was measured one behind the other saw the same
    machine, which may be slower for a minute and then fast again."""
    return statistics.median(a / b for a, b in zip(figures, others))


def compare(values):
    rows = []
    for test in sorted(values, key=order):
        of = values[test]
        if not {"rvt0", "rxe0"} <= of.keys():
            continue
        rvt, rxe = statistics.median(of["rvt0"]), statistics.median(of["rxe0"])
        figures = of["rvt0"], of["rxe0"]
        rows.append({"test": test, "unit": unit_of(test), "rvt": rvt, "rxe": rxe,
                     "rvt_all": of["rvt0"], "rxe_all": of["rxe0"], "target": target_of(test),
                     "times_better": of_rounds(*(figures if more_is_better(test)
                                                 else reversed(figures)))})
    return rows


def beside_limits(values):
    """Ratios of two figures of one round: (what, ratio, target)."""
    def ratio(a, b, other="rvt0", scale=1):
        figures = values.get(a, {}).get("rvt0"), values.get(b, {}).get(other)
        return scale * of_rounds(*figures) if all(figures) else None

    def to_memcpy(test, memcpy):
        """MB/s, and perftest's MB are 2^20 bytes, by ns for a block of that size."""
        figures = values.get(test, {}).get("rvt0"), values.get(memcpy, {}).get("limit")
        return of_rounds(figures[0], [1e9 / ns for ns in figures[1]]) if all(figures) else None

    rows = [
        ("write-bw-1M / memcpy of 1 MiB in the kernel",
         to_memcpy("write-bw-1M", "memcpy-beside-write-bw-1M"), ">= 0.80"),
        ("read-lat-64 / a post that uverbs refuses",
         ratio("read-lat-64", "refused-beside-read-lat-64", other="limit", scale=1000), "<= 1.5"),
        ("rc-pingpong-4096-events / the same by eventfds",
         ratio("rc-pingpong-4096-events", "eventfd-beside-rc-pingpong-4096-events", other="limit",
               scale=1000), "told"),
        ("two pairs of queue pairs / one, one write a post",
         ratio("write-8-pairs-2-list-1", "write-8-pairs-1-list-1"), ">= 1.9"),
        ("two pairs of queue pairs / one, 32 writes a post",
         ratio("write-8-pairs-2-list-32", "write-8-pairs-1-list-32"), ">= 1.9"),
        ("8-byte ping-pong beside 1 MiB writes / idle",
         ratio("pingpong-8-beside-1M", "pingpong-8-idle"), "<= 2"),
        ("kernel memory per queue pair, rvt / rxe",
         ratio("bytes-per-qp", "bytes-per-qp", other="rxe0"), "<= 0.5"),
        ("kernel memory per registered GiB, rvt / rxe",
         ratio("bytes-per-GiB", "bytes-per-GiB", other="rxe0"), "<= 0.5"),
    ]
    return [{"what": what, "ratio": r, "target": t} for what, r, t in rows if r]


def report_vm(values):
    rows, limits = compare(values), beside_limits(values)
    print(f"\n{'test':28} {'unit':>7} {'rvt':>10} {'rxe':>10} {'ratio':>7} {'target':>7}"
          "   least..most rvt, rxe")
    for r in rows:
        target = f">= {r['target']}" if r["target"] else ""
        print(f"{r['test']:28} {r['unit']:>7} {number(r['rvt']):>10} {number(r['rxe']):>10} "
              f"{r['times_better']:7.1f} {target:>7}   {spread(r['rvt_all'])}, "
              f"{spread(r['rxe_all'])}")
    floors = {t: of["limit"] for t, of in values.items() if "limit" in of}
    if floors:
        print(f"\n{'what the machine allows':40} {'ns':>10}   least..most")
        for test, figures in floors.items():
            print(f"{test:40} {number(statistics.median(figures)):>10}   {spread(figures)}")
    if limits:
        print(f"\n{'beside it, and beside itself':52} {'ratio':>7} {'target':>8}")
        for r in limits:
            print(f"{r['what']:52} {r['ratio']:7.2f} {r['target']:>8}")
    with open(f"{folder}/vm.svg", "w") as f:
        f.write(picture([r for r in rows if r["unit"] != "bytes"]))
    return {"beside_rxe": rows, "limits": floors, "ratios": limits}


def picture(rows):
    """Bars on a scale of powers of two: how many times better, and the target."""
    left, row, right, top = 230, 22, 90, 86
    most = max([r["times_better"] for r in rows] + [r["target"] or 1 for r in rows] + [4])
    least = min([r["times_better"] for r in rows] + [1])
    low, high = math.floor(math.log2(least)), math.ceil(math.log2(most))
    width = 640

    def x(value):
        return left + width * (math.log2(value) - low) / (high - low)

    height = top + row * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + right}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<text x="20" y="30" font-size="18" font-weight="bold" fill="#1b2a41">'
        'rvt beside rdma_rxe</text>',
        '<text x="20" y="50" fill="#5c6b7a">how many times better, medians of the ratios of '
        f'{rounds} rounds in one virtual machine; the mark is the target</text>',
    ]
    for power in range(low, high + 1):
        at = x(2.0 ** power)
        parts.append(f'<line x1="{at:.1f}" y1="{top - 8}" x2="{at:.1f}" y2="{height - 30}" '
                     f'stroke="{"#8896a5" if power == 0 else "#e3e8ed"}"/>')
        label = f"{2 ** power}" if power >= 0 else f"1/{2 ** -power}"
        parts.append(f'<text x="{at:.1f}" y="{top - 14}" text-anchor="middle" '
                     f'fill="#5c6b7a">{label}</text>')
    for i, r in enumerate(rows):
        y = top + row * i
        a, b = sorted((x(1), x(r["times_better"])))
        target = r["target"]
        colour = "#2a7f9e" if not target else "#2e9e5b" if r["times_better"] >= target else "#d9822b"
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end" fill="#1b2a41">'
                     f'{html.escape(r["test"])}</text>')
        parts.append(f'<rect x="{a:.1f}" y="{y + 3}" width="{max(b - a, 1):.1f}" '
                     f'height="{row - 7}" rx="2" fill="{colour}"/>')
        if target:
            parts.append(f'<line x1="{x(target):.1f}" y1="{y}" x2="{x(target):.1f}" '
                         f'y2="{y + row - 1}" stroke="#1b2a41" stroke-width="2"/>')
        # Beside the bar, unless the mark is there.
        end = x(target) if target and b <= x(target) < b + 45 else b
        parts.append(f'<text x="{end + 6:.1f}" y="{y + 14}" fill="#1b2a41">'
                     f'{r["times_better"]:.1f}</text>')
    parts.append(f'<text x="20" y="{height - 12}" fill="#5c6b7a">green: target reached; '
                 'orange: not reached; blue: no target</text></svg>')
    return "\n".join(parts) + "\n"


# --- the module in User Mode Linux ----------------------------------------------------


def report_um(values):
    memcpy = {t.split("-")[1]: statistics.median(of["rvt0"]) for t, of in values.items()
              if t.startswith("memcpy")}
    rows = []
    print(f"\n{'from a kernel queue pair':28} {'ns each':>10} {'memcpy':>10} {'share':>7}"
          "   least..most")
    for test, of in values.items():
        figures = of["rvt0"]
        ns, beside = statistics.median(figures), memcpy.get(test.split("-")[1])
        if test.startswith("memcpy"):
            continue
        if test.split("-")[1] == "add":
            beside = None
        rows.append({"test": test, "ns": ns, "all": figures, "memcpy_ns": beside})
        share = f"{100 * beside / ns:5.0f} %" if beside else ""
        print(f"{test:28} {number(ns):>10} {number(beside) if beside else '':>10} {share:>7}"
              f"   {spread(figures)}")
    print("\nlist-N: N posts, then one wait; without: a wait, thus a change of tasks, for each."
          "\nshare: what memcpy of the same bytes would take of it.")
    return rows


# --- the core as a program ------------------------------------------------------------


def natural(name):
    return [int(w) if w.isdigit() else w for w in re.split(r"(\d+)", name)]


def read_host(path):
    """Medians, in nanoseconds."""
    runs = {}
    for b in json.load(open(path))["benchmarks"]:
        if b["run_type"] == "iteration":
            scale = {"ns": 1, "us": 1e3, "ms": 1e6}[b["time_unit"]]
            key = "real_time" if "real_time" in b["run_name"] else "cpu_time"
            runs.setdefault(b["run_name"], []).append(b[key] * scale)
    return {name: statistics.median(runs[name]) for name in sorted(runs, key=natural)}


def report_copies(median):
    """A row for each size: GB/s of memcpy, and what share of it the others reach."""
    columns = ["copy_sge/one_piece", "copy_sge/sixteen_pieces", "write_bytes/one_piece",
               "write_bytes/sixteen_pieces", "write_bytes/scattered_pages",
               "write_bytes/scattered_target"]
    rows = []
    for name, plain in median.items():
        if not name.startswith("plain_memcpy/"):
            continue
        size = int(name.split("/")[1])
        rows.append({"bytes": size, "memcpy_ns": plain} |
                    {c: plain / median[f"{c}/{size}"] for c in columns if f"{c}/{size}" in median})
    if rows:
        print("\ncopies: share of memcpy's speed on the same bytes; rvt_copy_sge of one piece"
              " should reach\n90 % at 4 KiB and 95 % from 64 KiB on")
        print(f"{'':>10} {'memcpy':>10} {'rvt_copy_sge':^19} "
              f"{'a whole RDMA write; pages scattered':^40}")
        print(f"{'bytes':>10} {'GB/s':>10} {'1 piece':>9} {'16':>9} {'1 piece':>9} {'16':>9} "
              f"{'both':>9} {'target':>9}")
    for r in rows:
        cells = [f"{100 * r[c]:.0f} %" if c in r else "" for c in columns]
        print(f"{r['bytes']:>10} {r['bytes'] / r['memcpy_ns']:>10.1f} " +
              " ".join(f"{c:>9}" for c in cells))
    return rows


def report_host(path):
    median = read_host(path)
    rows = []

    def show(what, value, unit, target=""):
        rows.append({"what": what, "value": value, "unit": unit, "target": target})
        print(f"{what:48} {value:10.2f} {unit:4} {target}")

    def group(title, pattern, value=lambda name: median[name], unit="ns", target=""):
        names = [n for n in median if re.match(pattern, n) and value(n) is not None]
        if names:
            print(f"\n{title}")
        for name in names:
            show(name, value(name), unit, target)

    def to_ten(name):
        ten = median.get(re.sub(r"/\d+$", "/10", name))
        return median[name] / ten if ten else None

    group("8 bytes of a reliable connection, from post to both completions",
          "send_8_bytes|one_sided/", target="<= 350")
    copies = report_copies(median)
    group("look-ups, with the read section; the life of a queue pair", "find_|create_|modify_")
    group("a message among so many objects: cost, of that among 10", "among_", to_ten, "",
          "<= 1.15")
    one, two = (next((t for n, t in median.items() if n.endswith(f"threads:{k}")), None)
                for k in (1, 2))
    if one and two:
        print("\ntwo threads on pairs of their own")
        # Time per message of all threads together.
        show("messages per second, two / one", one / two, "", ">= 1.9")
    return {"figures": rows, "copies": copies}


kind, folder, rounds = sys.argv[1:]
path = f"{folder}/{kind}.values"
found = report_host(path) if kind == "host" else \
    {"vm": report_vm, "um": report_um}[kind](read_values(path))
json.dump(found, open(f"{folder}/{kind}.json", "w"), indent=1)
