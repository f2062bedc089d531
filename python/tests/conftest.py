"""Set-up of all tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from forked import SHORT, inprofile_
from inprofile.own import registry


def pytest_configure() -> None:
    """Drawn cases have no deadline, and programs that tests interrupt hear SIGINT.

    A deadline fails on a busy machine; speed is for benchmarks. SIGINT may have been ignored from the start:
    a shell ignores it for background jobs, and their children inherit that.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("no deadline", deadline=None)
    settings.load_profile("no deadline")


@pytest.fixture(autouse=True)
def _mechanisms_as_before() -> Iterator[None]:
    """Mechanisms that a test registers are gone after it."""
    before = dict(registry._REGISTERED)
    yield
    registry._REGISTERED.clear()
    registry._REGISTERED.update(before)


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the starter, `e.toml`, and its result over three seeds, `r`."""
    place = tmp_path_factory.mktemp("cli")
    inprofile_("new", "e", cwd=place)
    inprofile_("run", "e.toml", *SHORT, "--seeds", "3", "--out", "r", cwd=place)
    return place
