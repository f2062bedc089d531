"""Packs: a folder of experiments, mechanisms and results as one file, and whether its runs can be had again.

`archive` is the file and what is refused of one, `about` its list; `listing` says what a folder holds,
`verify` runs it again.
"""

from .archive import Changed, NoPack, Pack
from .listing import NotPacked, pack, reports
from .verify import Compared, Untrusted, uncompared, unpack, verify

__all__ = [
    "Changed",
    "Compared",
    "NoPack",
    "NotPacked",
    "Pack",
    "Untrusted",
    "pack",
    "reports",
    "uncompared",
    "unpack",
    "verify",
]
