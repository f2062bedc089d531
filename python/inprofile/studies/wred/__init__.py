"""WRED profiles of switches: read from their configuration, checked, drawn, and tried on TCP.

`profile` says what a profile is and what is wrong with one; `sonic` and `openconfig` read it; `effect`
puts it on a simulated port.

    >>> from inprofile.studies.wred import read
    >>> ports = read(Path("config_db.json"))                                        # doctest: +SKIP
"""

from __future__ import annotations

import json
from pathlib import Path

from ..._input import read_file
from . import openconfig, sonic
from .profile import COLOURS, Curve, Finding, Port, Profile, Unreadable, check

__all__ = ["COLOURS", "Curve", "Finding", "Port", "Profile", "Unreadable", "check", "read"]


def read(path: str | Path) -> list[Port]:
    """The queues that a file gives a WRED profile, alike ones together; profiles that no queue has come last.

    The file is SONiC's `config_db.json`, or OpenConfig QoS as JSON (RFC 7951), with or without names of
    modules. Raises `Unreadable` with the place in the file, and `OSError` as `open` does.
    """
    try:
        tree = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise Unreadable("", f"is no JSON: {str(error)[:200]}") from None
    if not isinstance(tree, dict):
        raise Unreadable("", "is no JSON object: give config_db.json, or OpenConfig's tree with qos in it")
    if "WRED_PROFILE" in tree:
        return sonic.ports(tree)
    plain = openconfig.without_modules(tree)
    if isinstance(plain, dict) and "qos" in plain:
        return openconfig.ports(plain)
    raise Unreadable("", "has neither WRED_PROFILE (SONiC) nor qos (OpenConfig): no WRED profile is in it")
