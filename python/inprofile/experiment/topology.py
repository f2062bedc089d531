"""An experiment drawn: nodes and links in the order packets meet them, then every effective value."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .._input import Problem
from ..metrics.quantity import bits_per_second, number

Json = Mapping[str, Any]

RFC_PROFILE = 'profile = rfc, the default, is TCP by the RFCs; profile = "linux" is what hosts run today.'


def draw(effective: Json, warnings: Sequence[Problem]) -> RenderableType:
    """The picture, the tables of values, and the warnings."""
    measure, trees = effective["measure"], effective.get("trees", [])
    if trees:
        effective = folded(effective)
    head = Text.assemble(
        (effective["title"], "bold"),
        f"\n{effective['duration']} simulated; metrics from {measure['from']} to {measure['to']}"
        f" at {measure['at']}; {effective['seeds']} seeds",
    )
    parts: list[RenderableType] = [head, Text(), Text("\n".join(_picture(effective)))]
    for heading, table in (
        ("Trees", _trees(trees)),
        ("Links", _links(effective["links"])),
        ("Queues", _queues(effective)),
        ("Flows", _flows(effective["flows"])),
        ("Markers", _markers(effective)),
        ("TCP", _transport(effective["flows"])),
        ("Monitors", _monitors(effective["monitors"])),
        ("Plan", _plan(effective.get("plan", {}))),
    ):
        if table.row_count:
            parts += [Text(f"\n{heading}", style="bold"), Padding(table, (0, 0, 0, 2))]
        if heading == "TCP" and any(flow["tcp"].get("profile") == "rfc" for flow in effective["flows"]):
            parts.append(Text(f"  {RFC_PROFILE}", style="dim"))
    if warnings:
        parts.append(Text(f"\n{len(warnings)} warning{'s' * (len(warnings) != 1)}", style="bold yellow"))
        parts += [Text(f"  {warning}") for warning in warnings]
    else:
        parts.append(Text("\nNo warnings.", style="dim"))
    return Group(*parts)


def folded(effective: Json) -> dict[str, Any]:
    """The experiment with the first node alone of each level of its trees, and the first leaf's flows.

    >>> names = ("a-1", "a-1.reverse", "a-2", "a-2.reverse", "b")
    >>> flows = {"first": 0, "groups": 1, "leaves": 2}
    >>> tree = {"levels": [{"links": {"first": 0, "nodes": 2}}], "flows": flows}
    >>> whole = {"links": [{"name": name} for name in names], "flows": ["x-1", "x-2", "y"], "edges": []}
    >>> found = folded({**whole, "trees": [tree]})
    >>> [one["name"] for one in found["links"]], found["flows"]
    (['a-1', 'a-1.reverse', 'b'], ['x-1', 'y'])
    """
    hidden: set[int] = set()
    flows: set[int] = set()
    for tree in effective["trees"]:
        for level in tree["levels"]:
            first, nodes = level["links"]["first"], level["links"]["nodes"]
            hidden.update(range(first + 2, first + 2 * nodes))
        at, groups, leaves = (tree["flows"][key] for key in ("first", "groups", "leaves"))
        flows.update(range(at + groups, at + groups * leaves))
    links = [link for i, link in enumerate(effective["links"]) if i not in hidden]
    gone = {link["name"] for i, link in enumerate(effective["links"]) if i in hidden}
    return {
        **effective,
        "links": links,
        "flows": [flow for i, flow in enumerate(effective["flows"]) if i not in flows],
        "edges": [edge for edge in effective["edges"] if edge["node"] not in gone],
    }


def _trees(trees: Sequence[Json]) -> Table:
    """A row per level: what its nodes have, and what was sold below them."""
    table = _table(
        "tree", "level", "nodes", "rate", "contract", "sold below", "of it", numbers=("nodes", "of it")
    )
    for tree in trees:
        for level in tree["levels"]:
            own = level["contracts"]
            share = f"{100 * level['sold']:.3g} %"
            if level["oversubscription"] > 1:
                share += f" (at most {100 * level['oversubscription']:.4g} %)"
            table.add_row(
                f"{tree['name']}, {tree['direction']} from {tree['root']}"
                if level is tree["levels"][0]
                else "",
                level["name"],
                f"{level['links']['nodes']:,}",
                _several(level["rates"]),
                _several(own) if own else "none",
                _several(level["promised"]),
                share,
            )
    return table


def _several(rates: Sequence[str]) -> str:
    """The rate that all have, or the lowest and the highest.

    >>> _several(["1 Gbit/s", "1 Gbit/s"]), _several(["1 Gbit/s", "5 Gbit/s", "300 Mbit/s"])
    ('1 Gbit/s', '300 Mbit/s … 5 Gbit/s')
    """
    low, high = (end(rates, key=bits_per_second) for end in (min, max))
    return low if low == high else f"{low} … {high}"


def text(what: RenderableType, width: int = 110) -> str:
    """The same without colour, for print and notebooks."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(what)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def chain(steps: Iterable[tuple[str, str]], links: Sequence[str]) -> list[str]:
    """Boxes one below the other: of each its name and what is beside it; `links` are what joins them.

    >>> for line in chain([("ER", "ard"), ("CR1", "")], ["10 Mbit/s"]):
    ...     print(line)
      ┌─────┐
      │ ER  │  ard
      └──┬──┘
         │  10 Mbit/s
      ┌──▼──┐
      │ CR1 │
      └─────┘
    """
    boxes = list(steps)
    width = max(len(name) for name, _ in boxes) + 2
    left = width // 2
    right = width - left - 1
    lines = []
    for i, (name, beside) in enumerate(boxes):
        top = "▼" if i else "─"
        bottom = "┬" if i < len(boxes) - 1 else "─"
        lines.append(f"  ┌{'─' * left}{top}{'─' * right}┐")
        lines.append(f"  │ {name:<{width - 2}} │  {beside}".rstrip())
        lines.append(f"  └{'─' * left}{bottom}{'─' * right}┘")
        if i < len(boxes) - 1:
            lines.append(f"   {' ' * left}│  {links[i]}".rstrip())
    return lines


def _picture(effective: Json) -> Iterator[str]:
    """A chain for every route; where one meets an earlier one it ends."""
    links = {link["name"]: link for link in effective["links"]}
    markers = {edge["node"]: edge["marker"]["kind"] for edge in effective["edges"]}
    drawn: set[str] = set()
    routes: dict[tuple[str, ...], list[Json]] = {}
    for flow in effective["flows"]:
        start = flow["join"]["node"] if "join" in flow else flow["from"]
        routes.setdefault(("H*" if "join" in flow else "", start, *flow["route"]), []).append(flow)
    for (hosts, start, *route), groups in routes.items():
        who = ", ".join(f"{g['name']} × {g['count']}" if g["count"] > 1 else g["name"] for g in groups)
        colours = ", ".join(dict.fromkeys(g["marker"]["kind"] for g in groups if g["marker"]))
        steps: list[tuple[str, str]] = []
        labels: list[str] = []
        if hosts:
            steps.append((who, f"marked by {colours}" if colours else ""))
            labels.append(_join(groups))
        nodes = [start, *(links[name]["to"] for name in route)]
        for i, node in enumerate(nodes):
            beside = f"marked by {markers[node]}" if node in markers else ""
            if i == 0 and not hosts:
                beside = ", ".join(part for part in (who, beside) if part)
            if node in drawn:
                steps.append((node, "as above"))
                break
            if i == len(nodes) - 1:
                receives = f"receives {', '.join(g['name'] for g in groups)}"
                beside = f"{beside}, {receives}" if beside else receives
            steps.append((node, beside))
            if i < len(route):
                labels.append(_label(links[route[i]]))
        drawn.update(nodes)
        yield from chain(steps, labels)


def _join(groups: Sequence[Json]) -> str:
    """The links that join hosts to the network."""
    said = [f"{g['join']['rate']}, {_spread(g['join']['delay'])}" for g in groups]
    return "; ".join(dict.fromkeys(said)) + ", a host each"


def _label(link: Json) -> str:
    queue = link["queue"]
    scheduler = f"{queue['scheduler']}: " if "scheduler" in queue else ""
    each = (f"{name} {q['aqm']} {q['limit']['is']}".strip() for name, q in _each(queue))
    said = [link["name"] + ": " + link["rate"], link["delay"], *_way(link), scheduler + ", ".join(each)]
    return ", ".join(said)


def _way(link: Json) -> Iterator[str]:
    """What happens to packets on a link, beyond its delay.

    >>> list(_way({"jitter": {"kind": "uniform"}, "loss": {"kind": "independent", "share": 0.1}}))
    ['jitter (uniform)', 'loss (independent)']
    """
    if "access" in link:
        yield f"in {link['access']['kind']}"
    if "trace" in link:
        yield f"by a trace of {link['trace']['lasts']}"
    if "jitter" in link:
        yield f"jitter ({link['jitter']['kind']}{', may reorder' if link['jitter'].get('reorder') else ''})"
    if "delays" in link:
        yield "delay changes"
    if "ack_filter" in link:
        yield "ACK filter"
    if "loss" in link:
        yield f"loss ({link['loss']['kind']})"


def _each(queue: Json, link: str = "") -> list[tuple[str, Json]]:
    """The queue before a link, or those of its classes, with what they are called.

    >>> _each({"aqm": "red"}, "core")
    [('core', {'aqm': 'red'})]
    >>> _each({"scheduler": "drr", "classes": [{"name": "ef", "aqm": "red"}]}, "core")
    [('core/ef', {'name': 'ef', 'aqm': 'red'})]
    """
    if "classes" not in queue:
        return [(link, queue)]
    return [(f"{link}/{c['name']}" if link else c["name"], c) for c in queue["classes"]]


def _spread(values: str | Sequence[str]) -> str:
    """One value, or the first and the last of several.

    >>> _spread("1 ms"), _spread(["1 ms", "2 ms", "3 ms"])
    ('1 ms', '1 ms … 3 ms')
    """
    return values if isinstance(values, str) else f"{values[0]} … {values[-1]}"


def _table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def _links(links: Sequence[Json]) -> Table:
    table = _table("link", "from", "to", "rate", "delay", "discipline")
    for link in links:
        queue = link["queue"]
        row = (link["from"], link["to"], link["rate"], link["delay"], queue.get("scheduler") or queue["aqm"])
        table.add_row(link["name"], *row, style="dim" if "reverse_of" in link else None)
    return table


def _queues(effective: Json) -> Table:
    """Thresholds and other settings of every queue; amounts in packets, bytes and time at the link's rate."""
    table = _table("queue", "setting", "packets", "bytes", "ms", numbers=("packets", "bytes", "ms"))
    queues = (
        (link, of, queue) for link in effective["links"] for of, queue in _each(link["queue"], link["name"])
    )
    for link, called, queue in queues:
        # Within a link of classes the discipline is each class's own.
        skip = ("limit_rule_from", "name" if "classes" in link["queue"] else "aqm")
        for i, (name, value) in enumerate(_flat(queue, skip=skip)):
            of = called if i == 0 else ""
            style = "dim" if "reverse_of" in link else None
            if isinstance(value, Mapping):
                amounts = (number(value[unit], 6) for unit in ("packets", "bytes", "ms"))
                table.add_row(of, name, *amounts, style=style)
            else:
                follows = name == "limit_rule" and queue.get("limit_rule_from") == "tcp.profile"
                because = ", as tcp.profile is" if follows else ""
                table.add_row(of, f"{name} = {_plain(value)}{because}", style=style)
    return table


def _flows(flows: Sequence[Json]) -> Table:
    columns = ["flows", "number", "from", "to", "round trip", "contract", "start"]
    classed = any("class" in g for g in flows)
    table = _table(*columns, *["class"] * classed, numbers=("number",))
    for g in flows:
        where = f"hosts at {g['join']['node']}" if "join" in g else g["from"]
        contract = _spread(g["contract"]) if g["contract"] else "none"
        row = (str(g["count"]), where, g["to"], _spread(g["rtt"]), contract, _spread(g["start"]))
        table.add_row(g["name"], *row, *[g.get("class", "none")] * classed)
    return table


def _markers(effective: Json) -> Table:
    table = _table("marker", "of", "settings")
    where = [(f"hosts of {g['name']}", g["marker"]) for g in effective["flows"] if g["marker"]]
    where += [(f"edge {e['node']}", e["marker"]) for e in effective["edges"]]
    for of, marker in where:
        settings = (f"{name} = {_plain(value)}" for name, value in _flat(marker, skip=("kind",)))
        table.add_row(marker["kind"], of, ", ".join(settings))
    return table


def _transport(flows: Sequence[Json]) -> Table:
    table = _table("flows", "settings")
    same: dict[str, list[str]] = {}
    for g in flows:
        said = ", ".join(f"{name} = {_plain(value)}" for name, value in g["tcp"].items())
        same.setdefault(said, []).append(g["name"])
    for said, names in same.items():
        table.add_row(", ".join(names), said)
    return table


def _monitors(monitors: Sequence[Json]) -> Table:
    table = _table("sampled", "every")
    for monitor in monitors:
        of = next(f"{kind} {name}" for kind, name in monitor.items() if kind != "every")
        table.add_row(of, monitor["every"])
    return table


def _plan(plan: Json) -> Table:
    """The goals of `inprofile plan`."""
    table = _table("goal", "value")
    if not plan:
        return table
    table.add_row("every contract kept", f"in {100 * plan['kept']:g} % of the runs at least")
    table.add_row("mean queueing delay", f"{plan['delay']} at most" if plan["delay"] else "any")
    table.add_row("best effort", f"{plan['best_effort']} at least")
    table.add_row("schemes", ", ".join(plan["schemes"] or ["all"]))
    table.add_row("router", ", ".join(f"{name} = {value}" for name, value in plan["router"].items()))
    return table


def _flat(values: Json, skip: Sequence[str] = (), prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by dotted name; an amount (`is`, packets, bytes, ms) counts as one value."""
    for name, value in values.items():
        if name in skip:
            continue
        if isinstance(value, Mapping) and "is" not in value:
            yield from _flat(value, prefix=f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _plain(value: object) -> str:
    """A setting as the file would have it; an amount also in the other unit."""
    match value:
        case bool():
            return "true" if value else "false"
        case {"is": str(own), "packets": packets, "bytes": size}:
            other = f"{number(packets)} packets" if own.endswith("B") else f"{number(size, 6)} B"
            return f"{own} ({other})"
        case float():
            return number(value, 6)
        case _:
            return str(value)
