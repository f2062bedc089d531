"""The files of a plan, which run as they are.

best.toml         the experiment with the scheme and its settings: `inprofile run`, `inprofile live`
inprofiled.toml   the router's configuration: `inprofiled check`, `inprofiled run`
police.tc         the customers' markers as filters of the kernel, for `tc -batch`, where it can express them
tc.sh             what the kernel alone can do of the rest, where the program `inprofiled` is there to say so
customers.csv     who the customers are, where a file said so: the same bytes, which the router reads
nearest.toml      where no setting meets the goal, instead of all these: the experiment of what comes nearest
safe.svg          settings that were tried: which keep the contracts, and what the others get
answer.json       all of it
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from ...experiment.dump import inline, written
from ...experiment.scenario import toml
from ...run.storage import FolderInUse, write_whole
from .contracts import Answer
from .police import batch
from .question import Question
from .search import Tried

RUNS = "runs"
"""Where a plan's runs are kept, beside its files."""
CUSTOMERS = "customers.csv"
FILES = (
    "best.toml",
    "nearest.toml",
    "inprofiled.toml",
    CUSTOMERS,
    "police.tc",
    "tc.sh",
    "safe.svg",
    "answer.json",
)


def check_place(out: Path) -> None:
    """Raise FolderInUse for a folder with anything else than a plan in it, before hours of runs."""
    names = (p.name for p in out.iterdir()) if out.is_dir() else ()
    # What is half written begins with a dot.
    others = sorted(name for name in names if name not in (RUNS, *FILES) and not name.startswith("."))
    if others:
        what = ", ".join(others[:3])
        raise FolderInUse(f"{out} holds other things ({what}): choose a new or an empty folder for the plan")


def write(answer: Answer, out: Path, as_json: Mapping[str, Any]) -> dict[str, str]:
    """Write everything; what was written, and what `inprofiled` said of it where it is there.

    Raises OSError where the disk refuses.
    """
    from .words import picture

    question, best = answer.question, (answer.chosen.tried if answer.chosen else answer.nearest)
    write_whole(out / "safe.svg", picture(answer).encode())
    found = {name: str(out / name) for name in ("safe.svg", "answer.json")}
    if answer.chosen is None:
        write_whole(out / "nearest.toml", experiment_text(question, best).encode())
        found["nearest.toml"] = str(out / "nearest.toml")
        found["checked"] = "nothing for a router: no setting meets the goal"
    else:
        found |= _deployable(question, best, out)
    for name in FILES:
        if name not in found:
            # Of an earlier answer in this folder, with other settings.
            (out / name).unlink(missing_ok=True)
    write_whole(out / "answer.json", (json.dumps({**as_json, "files": found}, indent=1) + "\n").encode())
    return found


def _deployable(question: Question, best: Tried, out: Path) -> dict[str, str]:
    """Write what a router takes; what was written, and what was not and why."""
    write_whole(out / "best.toml", experiment_text(question, best).encode())
    router = out / "inprofiled.toml"
    write_whole(router, router_text(question, best).encode())
    found = {name: str(out / name) for name in ("best.toml", "inprofiled.toml")}
    if question.customers is not None:
        write_whole(out / CUSTOMERS, question.customers.text().encode())
        found[CUSTOMERS] = str(out / CUSTOMERS)
    # Filters for customers of a file are the router's to write: `inprofiled export tc`.
    filters = batch(question, best) if question.customers is None else None
    if filters is not None:
        write_whole(out / "police.tc", filters.encode())
        found["police.tc"] = str(out / "police.tc")
    program = shutil.which("inprofiled")
    if program is None:
        found["checked"] = (
            f"no tc.sh, and {router} is not checked: the program inprofiled is not on the path. With it (from"
            " a release's Debian package, or built by make build in a clone):"
            f" inprofiled check {router}; inprofiled export tc {router}"
        )
        return found
    found["checked"], lines = _of_the_router(program, router)
    if lines is not None:
        write_whole(out / "tc.sh", lines.encode())
        found["tc.sh"] = str(out / "tc.sh")
    return found


def _of_the_router(program: str, router: Path) -> tuple[str, str | None]:
    """The router program's check of its file, and the lines for tc where it accepts it.

    A mechanism may have no place in a router, one of one's own in Python for instance.
    """
    try:
        _told(program, "check", router)
        accepted = f"inprofiled check {router}: accepted"
        if 'datapath = "kernel"' in router.read_text("utf-8").splitlines():
            return f"{accepted}; for a machine without it: inprofiled export bpf {router} FOLDER", None
        return accepted, _told(program, "export", "tc", router)
    except RuntimeError as error:
        return str(error), None


def _told(program: str, *arguments: str | Path) -> str:
    """The output of the router's program. Raises RuntimeError where it refuses."""
    line = [program, *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"inprofiled {' '.join(map(str, arguments))} refuses: {said}")
    return done.stdout


def experiment_text(question: Question, best: Tried) -> str:
    """The experiment with this scheme and its settings as a file of its own."""
    head = f"{best.scheme.title}, found by `inprofile plan`: {_words(best)}."
    return written(question.put(best.scheme, best.settings), head)


def _words(best: Tried) -> str:
    names = {s.key: s for s in best.scheme.settings}
    return ", ".join(
        f"T {1e3 * x:.3g} ms" if key == "T" else f"{key} {names[key].words(x)}"
        for key, x in best.settings.items()
    )


def router_text(question: Question, best: Tried) -> str:
    """The router's configuration: the link's queue, and a customer for each flow with a contract.

    Customers are those of the question's file, which lies beside it. Without one they have made-up addresses
    (VLANs, sessions): each has a table of its own, to be replaced.
    """
    others = {key: x for key, x in best.settings.items() if key != "T"}
    values = best.scheme.set(others).values(question.place, best.settings["T"])
    router, place = question.router, question.place
    way = router.direction
    what = "" if question.customers is not None else f"the customers' {_what(router.customers)} and "
    queue = values[f"links.{place.link}.queue"]
    # Nothing waits in the kernel's datapath: no shaper's rate, and no limit of what waits.
    virtual = False
    if isinstance(queue, Mapping) and queue.get("aqm") == "virtual_queue":
        virtual, queue = True, {key: value for key, value in queue.items() if key != "limit"}
    lines = [
        f"# {best.scheme.title}, found by `inprofile plan`: {_words(best)}.",
        f"# Replace {what}the ports by yours.",
        *(['datapath = "kernel"'] if virtual else []),
        f"inside = {toml(router.inside)}",
        f"outside = {toml(router.outside)}",
        "fix_offloads = true",
        "",
        f"[{way}]",
        *([] if virtual else [f"rate = {toml(place.rate)}"]),
        f"queue = {inline(queue)}",
    ]
    edges = values["edges"]
    if isinstance(edges, list) and edges:
        lines.append(f"aggregate = {inline(edges[0]['marker'])}")
    if question.customers is not None:
        rest = _everybody_else(question, values)
        named = toml(CUSTOMERS) if rest is None else f"[{toml(CUSTOMERS)}, {inline(rest)}]"
        lines.append(f"customers = {named}")
    lines += _customers(question, values, way)
    return "\n".join(lines) + "\n"


def _what(kind: str) -> str:
    return {"prefix": "prefixes", "vlan": "VLANs", "session": "PPPoE sessions"}[kind]


def _customers(question: Question, values: Mapping[str, object], way: str) -> list[str]:
    effective = question.scenario.check().effective
    groups = {g["name"]: g for g in effective["flows"]}
    lines: list[str] = []
    number = question.router.first
    for name in question.place.contracted:
        group = groups[name]
        marker = values.get(f"flows.{name}.marker", group["marker"])
        bought = group["contract"]
        each = bought if isinstance(bought, list) else [bought] * group["count"]
        lines += ["", f"[[{way}.templates]]", f"name = {toml(name)}"]
        if not isinstance(bought, list):
            lines.append(f"contract = {toml(bought)}")
        # A flow without a marker of its own is IN, and the aggregate's marker sees it.
        lines.append(
            f"marker = {inline(marker)}" if marker else 'marker = { kind = "colour", colour = "in" }'
        )
        for i, contract in enumerate(each) if question.customers is None else ():
            lines += ["", f"[[{way}.customers]]", f"name = {toml(f'{name}-{i}')}", f"template = {toml(name)}"]
            if isinstance(bought, list):
                lines.append(f"contract = {toml(contract)}")
            lines.append(_identity(question.router.customers, number))
            number += 1
    rest = _everybody_else(question, values)
    if rest is not None and question.customers is None:
        lines += ["", f"[[{way}.customers]]", *(f"{key} = {inline(value)}" for key, value in rest.items())]
    return lines


def _everybody_else(question: Question, values: Mapping[str, object]) -> dict[str, object] | None:
    """A customer that all are who are no other; None where who is no customer is OUT, as those shall be."""
    markers = (values.get(f"flows.{group}.marker") for group in question.place.free)
    marker = next((m for m in markers if m and m != {"kind": "colour", "colour": "out"}), None)
    if marker is None:
        return None
    rows = question.customers.rows if question.customers else ()
    # Who has all addresses, in any VLAN and session, leaves nothing to others.
    taken = {
        prefix for row in rows for prefix, *circuit, port in row.known_by() if (circuit, port) == _ANYWHERE
    }
    prefixes = [prefix for prefix in ("0.0.0.0/0", "::/0") if prefix not in taken]
    names = {row.name for row in rows}
    free = (f"everybody-else{f'-{i}' if i > 1 else ''}" for i in count(1))
    name = next(one for one in free if one not in names)
    return {"name": name, "prefix": prefixes, "marker": marker} if prefixes else None


_ANYWHERE = ([None, None], None)


def _identity(kind: str, number: int) -> str:
    if kind == "vlan":
        return f"vlan = {number}"
    if kind == "session":
        return f"session = {number}"
    return f'prefix = "10.{number // 256}.{number % 256}.0/24"'
