"""The digest of a mechanism typed into a session: whatever the class reaches is in it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from inprofile.own.code import digest

#: A class as it is typed into a session, where there is no file to take the digest of.
TYPED = """
from inprofile import Marker

LIMITS = [1, 2]

def helper(x=4):
    return x + sum(n for n in LIMITS)

def outer(k):
    class Typed(Marker):
        @staticmethod
        def double(x):
            return 2 * x

        @property
        def words(self):
            return "a" in {"a", "b", "c", "d"}

        def mark(self, now, packet, rng):
            return [helper() for _ in range(k)]
    return Typed

Typed = outer(3)
"""


def typed_digest(text: str) -> str:
    space: dict[str, Any] = {"__name__": "typed"}
    exec(text, space)  # noqa: S102 (as it is typed into a session)
    return digest(space["Typed"])


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("2 * x", "3 * x"),
        ('"d"}', '"e"}'),
        ("[1, 2]", "[1, 3]"),
        ("x=4", "x=5"),
        ("sum(n for", "sum(2 * n for"),
        ("outer(3)", "outer(4)"),
        ("[helper() for", "[1 + helper() for"),
    ],
)
def test_whatever_a_typed_class_reaches_is_in_its_digest(was: str, now: str) -> None:
    assert typed_digest(TYPED) == typed_digest(TYPED)
    assert typed_digest(TYPED) != typed_digest(TYPED.replace(was, now))


def test_a_typed_class_has_the_same_digest_in_every_process() -> None:
    script = "import sys, test_own_digest as t; print(t.typed_digest(t.TYPED))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {typed_digest(TYPED) + "\n"}
