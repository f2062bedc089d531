"""The gate of the closed loops: a collapse is beyond the bounds, what two programs differ by is not."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def loops() -> ModuleType:
    path = Path(__file__).parents[2] / "validation" / "loops.py"
    spec = importlib.util.spec_from_file_location("loops", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["loops"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("congestion", "ours", "beyond"),
    [
        ("cubic", (0.951, 121.0, 9.1), []),
        # What a threshold above the window just left came to.
        ("cubic", (0.722, 4844.0, 13.9), ["utilisation", "drops"]),
        ("cubic", (0.93, 131.0, 20.0), ["queue_mean"]),
        ("cubic", (0.93, 0.0, 9.0), ["drops"]),
        # Without SACK ns-3's drops and queue are no measure.
        ("reno", (0.93, 4844.0, 20.0), []),
        ("reno", (0.8, 131.0, 9.0), ["utilisation"]),
    ],
)
def test_what_is_beyond_the_bounds(
    loops: ModuleType, congestion: str, ours: tuple[float, float, float], beyond: list[str]
) -> None:
    row = loops.Row("red", "rfc", congestion, loops.Figures(*ours), loops.Figures(0.929, 131.0, 8.9))
    assert row.beyond == beyond
    found = loops.Found((row,), "3.44")
    assert found.agrees is not bool(beyond)
    assert all(name in found.section() for name in beyond)


def test_what_cannot_be_had_is_said(loops: ModuleType) -> None:
    assert "not compared this time: g++ is missing." in loops.Found(missing="g++ is missing").section()
