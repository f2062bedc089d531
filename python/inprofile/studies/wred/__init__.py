"""WRED profiles of switches: read from their configuration, checked, drawn, and tried on TCP.

`profile` says what a profile is and what is wrong with one; `sonic` and `openconfig` read it; `effect` puts
it on a simulated port, `pause` compares it with PFC's thresholds. `switch` is what else a switch's
configuration says of QoS, `written` writes all of it, and `experiment` makes it of an experiment.

    >>> from inprofile.studies.wred import read
    >>> ports = read(Path("config_db.json"))                                        # doctest: +SKIP
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._input import read_file
from . import openconfig, openconfig_qos, sonic
from .pause import Pause
from .pause import pauses as _pauses
from .profile import COLOURS, Curve, Finding, Port, Profile, Switch, Unreadable, check

__all__ = [
    "COLOURS",
    "Curve",
    "Finding",
    "Pause",
    "Port",
    "Profile",
    "Switch",
    "Unreadable",
    "check",
    "pauses",
    "read",
    "read_switch",
]


def read(path: str | Path) -> list[Port]:
    """The queues that a file gives a WRED profile, alike ones together; profiles that no queue has come last.

    The file is SONiC's `config_db.json`, or OpenConfig QoS as JSON (RFC 7951), with or without names of
    modules. Raises `Unreadable` with the place in the file, and `OSError` as `open` does.
    """
    tree = _tree(path)
    if "WRED_PROFILE" in tree:
        return sonic.ports(tree)
    if "qos" in tree:
        return openconfig.ports(tree)
    raise Unreadable("", "has neither WRED_PROFILE (SONiC) nor qos (OpenConfig): no WRED profile is in it")


def pauses(path: str | Path) -> list[Pause]:
    """Of SONiC's `config_db.json` whether lossless queues mark before they pause, and pause before they drop.

    None of OpenConfig, which has no priority groups. Raises as `read` does.
    """
    tree = _tree(path)
    return _pauses(tree, sonic.ports(tree)) if "WRED_PROFILE" in tree else []


def read_switch(path: str | Path) -> Switch:
    """All that a file says of QoS and that can be written again. Raises as `read` does."""
    tree = _tree(path)
    if any(name in tree for name in ("WRED_PROFILE", "QUEUE", *sonic.TABLES)):
        return replace(sonic.read(tree, sonic.served(tree)), ports=tuple(sonic.ports(tree)))
    if "qos" in tree:
        found = openconfig_qos.read(tree["qos"])
        return replace(found, ports=tuple(openconfig.ports(tree, needed=False)))
    raise Unreadable("", "has no table of SONiC's QoS (WRED_PROFILE, POLICER, …) and no qos (OpenConfig)")


def _tree(path: str | Path) -> dict[str, Any]:
    """The file's tree, without OpenConfig's names of modules."""
    try:
        tree = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise Unreadable("", f"is no JSON: {str(error)[:200]}") from None
    if not isinstance(tree, dict):
        raise Unreadable("", "is no JSON object: give config_db.json, or OpenConfig's tree with qos in it")
    if "WRED_PROFILE" in tree:
        return tree
    plain: dict[str, Any] = openconfig.without_modules(tree)
    return plain if "qos" in plain else tree
