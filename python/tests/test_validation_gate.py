"""The gate of `make validate`: what may differ, and that nothing else may."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from inprofile.metrics.stats import Interval
from inprofile.studies.validate.distribution import Distribution, Figure


@pytest.fixture(scope="module")
def explained() -> ModuleType:
    path = Path(__file__).parents[2] / "validation" / "explained.py"
    spec = importlib.util.spec_from_file_location("explained", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["explained"] = module
    spec.loader.exec_module(module)
    return module


def found(apart: set[str], beyond: set[str]) -> Distribution:
    """A comparison in which these distributions are distinguishable, and these means beyond their margins."""
    names = ("fi", "lambda_in", "lambda_out", "throughput", "drops")
    figures = tuple(
        Figure(
            name,
            (1.0, 2.0),
            (1.0, 2.0),
            0.1,
            0.0,
            Interval(0.0, 0.0),
            1.0 if name in beyond else 0.0,
            0.0 if name in apart else 1.0,
        )
        for name in names
    )
    return Distribution("x", "x.toml", 2, figures)


@pytest.mark.parametrize(
    ("apart", "beyond", "passes"),
    [
        ({"throughput", "drops"}, set(), True),
        # A mean beyond its margin is explained by nothing, whatever its distribution.
        ({"throughput", "drops"}, {"fi"}, False),
        ({"throughput", "drops"}, {"drops"}, False),
        # No other figure may be distinguishable, and an explanation of what is alike is out of date.
        ({"throughput", "drops", "fi"}, set(), False),
        ({"drops"}, set(), False),
        (set(), set(), False),
    ],
)
def test_an_explanation_allows_what_it_names_alone(
    explained: ModuleType, apart: set[str], beyond: set[str], *, passes: bool
) -> None:
    explanation = explained.EXPLAINED["paper-a-rio"]
    reason = explained.Reason("", holds=True)
    assert explained.accounted(found(apart, beyond), explanation, reason) is passes
    assert not explained.accounted(found(apart, beyond), explanation, replace(reason, holds=False))


@pytest.mark.parametrize(("apart", "beyond"), [(set(), set()), ({"fi"}, set()), (set(), {"fi"})])
def test_without_an_explanation_all_is_equivalent(
    explained: ModuleType, apart: set[str], beyond: set[str]
) -> None:
    assert explained.accounted(found(apart, beyond), None, None) is (not apart and not beyond)
