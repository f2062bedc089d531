"""The tables of every measurement, for a terminal and for the page, and whether the targets are met."""

from typing import Any

import router_page

Result = dict[str, Any]


def together(row: Result) -> str:
    """How many packets are decided on at once."""
    return "one by one" if row["burst"] == 1 else f"in bursts of {row['burst']}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown; all but the first column to the right."""
    line = "|".join([" --- "] + [" ---: "] * (len(head) - 1))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, *rows]).replace(
        "\n", f"\n|{line}|\n", 1
    )


def rate(packets: float) -> str:
    """Packets a second in thousands."""
    return f"{packets / 1e3:,.0f} k"


def between(row: Result) -> str:
    """A ratio with its range."""
    return f"{row['ratio']} ({row['ratio_min']}–{row['ratio_max']})"


def of_tree(found: Result) -> str:
    """The access network: packets through its uplink, by either clock."""
    if "not_run" in found:
        return f"Not run: {found['not_run']}"
    rows = [
        [what, f"{found[clock]['ours']:,}", f"{found[clock]['theirs']:,}", between(found[clock])]
        for clock, what in (
            ("cpu", "a CPU second, in one piece"),
            ("wall", "a second by the clock, ours in two parts"),
        )
    ]
    u, v = (" / ".join(f"{100 * x:.1f}" for x in found[k]) for k in ("utilisation", "loss"))
    says = "agree" if found["agrees"] else "**do not agree**"
    lines = table(["packets", "ours", "ns-3", "ratio (range)"], rows)
    alike = f"Utilisation of the uplink and its loss in %, ours / ns-3: {u}; {v}: they {says}."
    # What was not as usual, added by hand.
    note = f"; {found['note']}" if "note" in found else ""
    how = f"ns-3 {found['peer']}; {found['rounds']} rounds; load {found['load']}{note}."
    return f"{lines}\n\n{alike} {how}"


def tables(result: Result) -> dict[str, str]:
    """The tables of every measurement, for a terminal and for the page; last the targets."""
    parts: dict[str, str] = {}
    if "race" in result:
        rows = []
        for r in result["race"]:
            if "not_run" in r:
                rows.append([r["peer"], f"{r['flows']:,}", f"not run: {r['not_run']}", "", "", "", ""])
                continue
            same = "yes" if r["agrees"] else "**no**"
            u, v = (" / ".join(f"{100 * x:.1f}" for x in r[k]) for k in ("utilisation", "loss"))
            rows.append(
                [
                    r["peer"],
                    f"{r['flows']:,}",
                    rate(r["ours"]),
                    rate(r["theirs"]),
                    between(r),
                    f"{u}; {v}",
                    same,
                ]
            )
        head = [
            "peer",
            "flows",
            "ours",
            "theirs",
            "ratio (range)",
            "utilisation; loss in %, ours / theirs",
            "agree",
        ]
        parts["race"] = table(head, rows)
    if "tree" in result:
        parts["tree"] = of_tree(result["tree"])
    if "configurations" in result:
        head = ["configuration", "flows", "plain", "this", "ratio (range)", "events a packet"]
        rows = [
            [
                r["name"],
                f"{r['flows']:,}",
                rate(r["plain"]),
                rate(r["packets"]),
                between(r),
                f"{r['events_per_packet']}",
            ]
            for r in result["configurations"]
        ]
        parts["configurations"] = table(head, rows)
    if "mechanisms" in result:
        rows = []
        for r in result["mechanisms"]:
            if "not_run" in r:
                rows.append(
                    [
                        r["name"],
                        f"{r['objects']:,}",
                        together(r),
                        f"{r['ours_ns']}",
                        f"not run: {r['not_run']}",
                        "",
                        "",
                        "",
                    ]
                )
                continue
            passed = f"{100 * r['ours_passed']:.1f} / {100 * r['dpdk_passed']:.1f}"
            size = f"{r['ours_bytes']} / {r['dpdk_bytes']}"
            ns = [f"{r['ours_ns']:.1f}", f"{r['dpdk_ns']:.1f}"]
            rows.append([r["name"], f"{r['objects']:,}", together(r), *ns, between(r), passed, size])
        head = [
            "decision",
            "objects",
            "packets",
            "ours, ns",
            "DPDK, ns",
            "DPDK / ours (range)",
            "passed in %, ours / DPDK",
            "bytes",
        ]
        parts["mechanisms"] = table(head, rows)
    if "scale" in result:
        head = ["flows", "ns a packet (range)", "events a packet", "bytes a flow"]
        rows = [
            [
                f"{r['flows']:,}",
                f"{r['ns_per_packet']} ({r['ns_min']}–{r['ns_max']})",
                f"{r['events_per_packet']}",
                f"{r['bytes_per_flow']:,}",
            ]
            for r in result["scale"]
        ]
        parts["scale"] = table(head, rows)
    if "threads" in result:
        t = result["threads"]
        parts["threads"] = (
            f"Two threads against two processes: not run: {t['not_run']}"
            if "not_run" in t
            else f"Two threads against two processes, {t['seeds']} seeds of {t['flows']} flows: "
            f"{between(t)} by wall clock, {t['cpu_ratio']} by CPU time."
        )
    if "customers" in result:
        head = ["10,000 customers", "measured", "target"]
        rows = [
            [what, ", ".join(str(v) for v in got), want]
            for what, want, got, _ in router_page.customers(result["customers"])
        ]
        parts["customers"] = table(head, rows)
    if "router" in result:
        if "not_run" in result["router"]:
            parts["router"] = f"The router against the kernel: not run: {result['router']['not_run']}"
        else:
            both = [table(*rows(result["router"])) for rows in (router_page.rows, router_page.soaks)]
            parts["router"] = "\n\n".join(both)
    rows = [
        [
            t["target"],
            t["want"],
            ", ".join(f"{v:,}" for v in t["measured"]) or "not measured",
            "met" if t["met"] else "**not met**",
        ]
        for t in result["targets"]
    ]
    parts["targets"] = table(["target", "wanted", "measured", ""], rows)
    return parts


# How many times as fast ours must be. ns-3 as it installs is 1.6 to 1.8 times slower than an optimised build,
# of which 100 times is asked.
AT_LEAST = {"ns-2": 10, "ns-3": 170}
# The least share of our plain link's speed.
SHARES = {
    "codel": 0.6,
    "pie": 0.6,
    "dualpi2": 0.6,
    "fq_codel": 0.5,
    "drr": 0.6,
    "priority": 0.6,
    "queue_monitor": 0.8,
    "flow_monitor": 0.8,
    "ns2_profile": 0.16,
    "linux": 0.6,
    "linux_paced": 0.6,
    "bbr": 0.5,
    "prague": 0.5,
}


def target(name: str, want: str, values: list[float | None], met: list[bool]) -> Result:
    """One target: what was measured, and whether all of it is met. None of it measured is not met."""
    shown = [v for v in values if v is not None]
    return {"target": name, "want": want, "measured": shown, "met": bool(met) and all(met)}


def targets(result: Result) -> list[Result]:
    """Every target that was measured."""
    found = []
    for name, least in AT_LEAST.items():
        rows = [r for r in result.get("race", []) if r["peer"] == name]
        if rows:
            met = ["ratio" in r and r["agrees"] and r["ratio"] >= least for r in rows]
            flows = ", ".join(f"{r['flows']:,}" for r in rows)
            text = f"times as fast as {name} at {flows} flows"
            found.append(target(text, f"≥ {least}", [r.get("ratio") for r in rows], met))
    for name, share in SHARES.items():
        rows = [r for r in result.get("configurations", []) if r["name"] == name]
        if rows:
            flows = ", ".join(f"{r['flows']:,}" for r in rows)
            met = [r["ratio"] >= share for r in rows]
            text = f"{name}: speed / our plain link's, at {flows} flows"
            found.append(target(text, f"≥ {share}", [r["ratio"] for r in rows], met))
    sizes = {r["flows"]: r for r in result.get("scale", [])}
    if sizes:
        times = round(sizes[100_000]["ns_per_packet"] / sizes[100]["ns_per_packet"], 2)
        found.append(target("cost per packet at 100,000 flows / at 100", "≤ 3", [times], [times <= 3]))
        size = sizes[100_000]["bytes_per_flow"]
        found.append(target("bytes a flow at 100,000 flows", "≤ 2,048", [size], [size <= 2048]))
    if "threads" in result:
        ratio = result["threads"].get("ratio")
        text = "two threads / two processes, sweep by wall clock"
        found.append(target(text, "≥ 0.95", [ratio], [ratio is not None and ratio >= 0.95]))
    if "customers" in result:
        found += [target(*row) for row in router_page.customers(result["customers"])]
    if "router" in result:
        found += [
            target(what, want, [*got], [met])
            for what, want, got, met in router_page.results(result["router"])
        ]
    return found
