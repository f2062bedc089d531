"""The race: ours against ns-2, ns-3 and DPDK on this machine, interleaved. `make bench`.

Writes docs/benchmarks.json, docs/benchmarks.md and docs/images/benchmarks.svg; --quick and --only: nothing,
but that --only with --update puts its measurement in the place of the one before.
"""

import argparse
import json
import sys
from pathlib import Path

import measure
import peers
import report
import router
from measure import profile
from tables import tables, targets

from inprofile.run.storage import record_lines

DOCS = peers.ROOT / "docs"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benches/race", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs, two rounds, nothing written")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of every measurement (default: 5)")
    parser.add_argument(
        "--only",
        choices=[
            "race",
            "tree",
            "configurations",
            "mechanisms",
            "scale",
            "threads",
            "customers",
            "router",
            "profile",
        ],
        help="one measurement, printed",
    )
    parser.add_argument(
        "--update", action="store_true", help="with --only: write it, and leave the rest of the page as it is"
    )
    parser.add_argument(
        "--profile", type=int, metavar="FLOWS", help="only show where the time of our dumbbell goes"
    )
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds: at least 1")

    if args.update and (args.quick or not args.only):
        parser.error("--update: with --only, and not with --quick")

    bins = peers.ours() if args.only != "router" else Path()
    if args.profile:
        show_profile(bins, args.profile)
        return 0
    plan = measure.Plan(2 if args.quick else args.rounds, args.quick)
    rivals: dict[str, peers.Peer | peers.Missing] = {}
    if args.only in (None, "race"):
        rivals = {"ns-2": peers.ns2(), "ns-3": peers.ns3("dumbbell", "10", "10")}
    tree = (
        peers.ns3("tree", "3", "0.2", "0.1")
        if args.only in (None, "tree")
        else peers.Missing("not asked for")
    )
    dpdk = peers.dpdk() if args.only in (None, "mechanisms") else peers.Missing("not asked for")
    result: report.Result = {
        "machine": report.machine(),
        "versions": report.versions(rivals | {"DPDK": dpdk}),
        "rounds": plan.rounds,
    }
    for name, measured in (
        ("race", lambda: measure.race(bins, rivals, plan)),
        ("tree", lambda: measure.tree(bins, tree, plan)),
        ("configurations", lambda: measure.configurations(bins, plan)),
        ("mechanisms", lambda: measure.mechanisms(bins, dpdk, plan)),
        ("scale", lambda: measure.scale(bins, plan)),
        ("threads", lambda: measure.threads(bins, plan)),
        ("customers", lambda: measure.customers(bins, plan)),
        ("router", lambda: router.measure(plan.quick, plan.rounds)),
        ("profile", lambda: profiles(bins)),
    ):
        if args.only in (None, name):
            result[name] = measured()
    result["targets"] = targets(result)
    if args.only is None and not args.quick:
        write(result)
    print("\n\n".join(tables(result).values()))
    if args.update:
        before = json.loads((DOCS / "benchmarks.json").read_text())
        before[args.only] = result[args.only]
        before["targets"] = targets(before)
        write(before)
    return 0


def write(result: report.Result) -> None:
    """The page, and what it was made of."""
    (DOCS / "benchmarks.json").write_text(record_lines(result))
    (DOCS / "images" / "benchmarks.svg").write_text(report.plot(result))
    (DOCS / "benchmarks.md").write_text(report.page(result))


def dumbbell(bins: Path, flows: int) -> list[str]:
    """Our dumbbell, long enough for a few thousand samples."""
    return [str(bins / "bench-dumbbell"), str(flows), str(measure.SCALE_SECONDS.get(flows, 2)), "3"]


def profiles(bins: Path) -> dict[str, object]:
    """Where the time of our dumbbell goes, by flows."""
    try:
        return {str(flows): profile(dumbbell(bins, flows))[:15] for flows in measure.SECONDS}
    except RuntimeError as e:
        return {"not_run": str(e)}


def show_profile(bins: Path, flows: int) -> None:
    """Prints a profile."""
    run = measure.pinned(*dumbbell(bins, flows))[0]
    cost = 1e9 * run["cpu_s"] / run["packets"]
    print(f"{flows} flows: {cost:.0f} ns a packet, {run['events'] / run['packets']:.2f} events a packet")
    print("share   ns  innermost function of ours, inlined ones included")
    for name, share in profile(dumbbell(bins, flows))[:40]:
        print(f"{share:5.1%} {share * cost:4.0f}  {name}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"benches/race: {error}")
