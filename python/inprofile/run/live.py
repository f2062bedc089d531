"""Runs with real hosts: network namespaces, and the kernel's own TCP and UDP through a network of ours."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import _internal
from .._input import seeds_in_order
from .results import Result

if TYPE_CHECKING:
    from .pool import Runnable, Seeds

HAS_LINUX = sys.platform == "linux"


class NotLive(ValueError):
    """An experiment that real hosts cannot run: every flow, why, and what to write instead."""


class Unsupported(OSError):
    """A system that has no network namespaces: it isn't Linux."""


def hindrance() -> str | None:
    """Why this process can't run real hosts, and what to do; None if it can."""
    if not HAS_LINUX:
        return "real hosts are Linux's network namespaces: they need Linux"
    return _internal.live_hindrance()


def run(
    scenario: Runnable,
    seeds: Seeds,
    *,
    trace: bool = False,
    progress: Callable[[float, float], None] | None = None,
) -> Result:
    """Run a scenario with real hosts: see `Scenario.live`."""
    if not HAS_LINUX:
        raise Unsupported(hindrance())
    if scenario._inner.own:
        raise NotLive(
            f"{', '.join(scenario._inner.own)}: a mechanism written in Python runs in simulations only;"
            " write it in Rust to run it on real packets"
        )
    which = seeds_in_order(seeds)
    tell = progress if progress is not None else (lambda _done, _all: None)
    try:
        raw, told = _internal.live(scenario._inner, list(which), trace, tell)
    except _internal.NotLive as error:
        raise NotLive(_refused(scenario, error.args[0])) from None
    provenance = replace(scenario.provenance(which), live=tuple(json.loads(told)))
    return Result.from_engine(raw, provenance)


def _refused(scenario: Runnable, refusals: list[tuple[str, str, str, str]]) -> str:
    """Every reason once, with the place of its key: flows of a group have the same."""
    texts: dict[str, None] = {}
    for flow, key, problem, remedy in refusals:
        group = re.sub(r"\.\d+$", "", flow)
        own = f"flows.{group}"
        where = scenario.place_of(*((f"{own}.tcp.{key}", f"tcp.{key}") if key else (own,)))
        texts[f"{where}: error: {own}{f'.tcp.{key}' if key else ''}: {problem}\n  {remedy}"] = None
    return "\n".join(texts)
