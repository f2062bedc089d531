"""The router's part of the page."""

from typing import Any

Result = dict[str, Any]

# Shares of the kernel's throughput, unshaped, with the system's sockets and with a window; the greatest
# deviation from its shaper; packets in a day at 10 Mbit/s and 1,500 B.
UNSHAPED, WINDOW, SHAPED, SOAK = 0.8, 0.7, 0.01, 72_000_000
# Small packets per CPU second, as a share of the bridge's; both ways at once, as a share of one way's; µs of
# delay beyond the kernel's; an idle router's share of a core.
SMALL, BOTH_WAYS, DELAY, IDLE = 0.85, 0.85, 40, 0.005
# KiB by which memory may differ between the first look and the last.
GROWTH = 1024


def results(router: Result) -> list[tuple[str, str, list[float | int], bool]]:
    """Every target of the router: the quantity, the value wanted, the value measured, whether it is met."""
    if "not_run" in router:
        return [("the router against the kernel", "", [], False)]
    found: list[tuple[str, str, list[float | int], bool]] = []
    for row in router["rows"]:
        ratio = row["ratio"]
        if row["name"] == "TCP, unshaped":
            what = "the router's TCP through marker and RIO, unshaped / the kernel's forwarding"
            found.append((what, f"≥ {UNSHAPED}", [ratio], ratio >= UNSHAPED))
        elif row["name"].startswith("TCP, unshaped"):
            found.append(("the same with a window of 250 kB", f"≥ {WINDOW}", [ratio], ratio >= WINDOW))
        elif row["name"].startswith("64 B"):
            what = "the router's 64 B packets a CPU second / the kernel bridge's"
            found.append((what, f"≥ {SMALL}", [ratio], ratio >= SMALL))
        elif row["name"] == "one-way delay, median":
            more = round(row["ours"] - row["kernel"], 1)
            what = "µs of median delay beyond the kernel's"
            found.append((what, f"≤ {DELAY}", [more], more <= DELAY))
        elif row["rate"]:
            what = f"the router's TCP payload at {row['rate']} Mbit/s / TBF's"
            found.append((what, "within 1 %", [ratio], abs(ratio - 1) <= SHAPED))
    if "both_ways" in router:
        ratio = router["both_ways"]["ratio"]
        what = "the router's 64 B packets a CPU second, both ways at once / one way"
        found.append((what, f"≥ {BOTH_WAYS}", [ratio], ratio >= BOTH_WAYS))
    if "idle" in router:
        found.append(
            (
                "share of a core that an idle router takes",
                f"≤ {IDLE}",
                [router["idle"]],
                router["idle"] <= IDLE,
            )
        )
    virtual = router["soak"][0]
    sound = all(s["adds_up"] and max(s["rss_kib"]) - s["rss_kib"][0] <= GROWTH for s in router["soak"])
    what = "packets of a soak without growth, accounts that add up"
    found.append((what, f"≥ {SOAK:,}", [virtual["packets"]], sound and virtual["packets"] >= SOAK))
    return found


def customers(found: Result) -> list[tuple[str, str, list[float | None], list[bool]]]:
    """The cost of 10,000 customers, as targets."""
    ratio = found["ratio"]
    text = "CPU time of a new flow's packet with 10,000 customers / with one"
    told: list[tuple[str, str, list[float | None], list[bool]]] = [(text, "≤ 1.3", [ratio], [ratio <= 1.3])]
    if "reload" in found:
        held = found["reload"]["held_worst_ms"]
        told.append(("ms that packets are held by a reload, at worst", "≤ 100", [held], [held <= 100]))
    if "state_reads" in found:
        held = found["state_reads"]["held_worst_ms"]
        text = "ms that packets are held by stats, metrics and audits, at worst"
        told.append((text, "≤ 5", [held], [held <= 5]))
    if "share" in found:
        worst = [100 * found["share"][size]["relative"] for size in ("equal", "mixed")]
        text = "worst error of a share in %, packets of one size and of four"
        told.append((text, "≤ 1", [round(w, 3) for w in worst], [w <= 1 for w in worst]))
    return told


def rows(router: Result) -> tuple[list[str], list[list[str]]]:
    """The table against the kernel."""
    head = ["", "shaped to", "ours", "kernel", "ours / kernel (range)"]
    cells = []
    for r in router["rows"]:
        rate = f"{r['rate']} Mbit/s" if r["rate"] else ""
        ratio = f"{r['ratio']:.3f} ({r['ratio_min']:.3f}–{r['ratio_max']:.3f})"
        cells.append(
            [r["name"], rate, f"{r['ours']:,.2f} {r['unit']}", f"{r['kernel']:,.2f} {r['unit']}", ratio]
        )
    return head, cells


def soaks(router: Result) -> tuple[list[str], list[list[str]]]:
    """The table of soaks."""
    head = [
        "soak",
        "packets in",
        "sent",
        "dropped",
        "seconds",
        "resident memory at each look, KiB",
        "adds up",
    ]
    cells = [
        [
            s["name"] + (f", {s['hours']:.1f} h" if "hours" in s else ""),
            f"{s['packets']:,}",
            f"{s['sent']:,}",
            f"{s['dropped']:,}",
            f"{s['seconds']}",
            ", ".join(f"{k:,}" for k in s["rss_kib"]),
            "yes" if s["adds_up"] else "**no**",
        ]
        for s in router["soak"]
    ]
    return head, cells


TEXT = """Two hosts in network namespaces, and between them `inprofiled` or the kernel's own forwarding,
over veth with an MTU of 1500 and all offloads off. There are two cores: sender and receiver share one, and
the other is the router's (receive packet steering puts the work for each interface on its owner's core, for
both contestants alike). One TCP connection, CUBIC; what counts is the payload that the receiver reads. The
kernel shapes with `tbf`, whose burst is 5 kB or 4 ms of the rate, whichever is more: with less it loses rate
whenever its timer comes late. Both count a frame as 14 B more than its IP packet and hold 200 packets.
*Unshaped* is marker, RIO and a rate so high that no packet waits: with sockets as the system sets them up,
and with a window of 250 kB, which is sent in less than a round trip, so that the cores wait for each other.
The first is measured four times a round and the other twice, the contestants taking turns to go
first. *64 B UDP* is a flood of one flow, as fast as one thread can send, through the router,
set up in both directions, and through the kernel's bridge; what counts is what
comes out of the other port, a second in which the box's core
was busy. Delay is that of a small UDP packet every millisecond from one host's call to the other's. The soak
under a virtual clock sends through the router's own packet loop a fifth more than a link of 10 Mbit/s carries
in 20 hours; the other one is real packets, unshaped.
"""


def text(router: Result) -> str:
    """The method, and the meaning of the figures."""
    if "not_run" in router:
        return TEXT
    added = {r["name"]: r["ours"] - r["kernel"] for r in router["rows"] if r["unit"] == "µs"}
    told = ", ".join(f"{added[name]:+.0f} µs at the {name.split(', ')[1]}" for name in added)
    head = f"{router['rounds']} rounds; load before them {router['load_before']}. {halting(router)}"
    delay = f"Delay through the router, compared with the kernel's: {told}."
    return f"{TEXT}\n{head} {delay}\n\n{busy(router)}\n"


def halting(router: Result) -> str:
    """Whether the cores were kept awake, and the time that the machine's host took from them."""
    hosts, box = (f"{100 * share:.1f} %" for share in router["stolen"])
    lost = f"the machine's host took {hosts} of the hosts' core and {box} of the router's"
    if router["awake"]:
        return f"Both cores were kept from halting when idle, for both contestants; {lost}."
    return (
        f"Cores that were idle could halt, as keeping them awake takes root: being woken counts too; {lost}."
    )


def busy(router: Result) -> str:
    """How busy each core was."""
    told = []
    for row in router["rows"]:
        if "busy_ours" in row:
            ours, kernel = row["busy_ours"], row["busy_kernel"]
            told.append(
                f"{row['name']}: the hosts' core {ours[0]:.0%} and the router's {ours[1]:.0%}; "
                f"with the kernel forwarding {kernel[0]:.0%} and {kernel[1]:.0%}."
            )
    return "How busy the cores were, medians. " + " ".join(told) + WHY


# Where the router's time goes. Shares of its core's time, by sampling.
WHY = """
Of the router's time the mechanisms and all else in user space take an eighth; the rest is the kernel's, half
of all in `sendmmsg`: a segment is received, copied out, verified, copied in and segmented again, where
forwarding passes it on."""
