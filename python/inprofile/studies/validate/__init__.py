"""The same experiment in ns-2 and here, compared event by event.

ns-2 is run as a program of its own, on a script written from the experiment. Both write every packet that
joins a queue, leaves it, is dropped or comes out of a link: the time to the microsecond, the nodes, type,
size, flow, addresses, sequence number and the packet's number. ns-2's column of flags is left out.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ... import _internal
from ..._input import seconds
from ...experiment.scenario import Scenario

__all__ = [
    "Comparison",
    "Divergence",
    "NotInNs2",
    "Ns2Failed",
    "Ns2Late",
    "Ns2Missing",
    "Timed",
    "Validation",
    "by_events",
    "compare",
    "count",
    "counting_script",
    "ns2_script",
    "validate",
]

CONTEXT = 10
"""Events shown of either side, the one that differs included."""
TIMEOUT = 600.0
"""Seconds after which one run of ns-2 is given up."""
SCRIPT, OURS, THEIRS = "experiment.tcl", "inprofile.tr", "ns2.tr"
_NO_FLAGS = b" ------- "
_FLAGS = re.compile(rb" [-A-Za-z]{7} ")


class NotInNs2(ValueError):
    """An experiment that ns-2 has no words for."""

    def __init__(self, scenario: Scenario, missing: list[str]) -> None:
        """`missing` has a text for each thing, which begins with its key."""
        self.missing = missing
        lines = (f"  {_placed(scenario, what)}" for what in missing)
        super().__init__(f"{scenario.file}: ns-2 cannot express\n" + "\n".join(lines))


def _placed(scenario: Scenario, what: str) -> str:
    """A text with the place of the key that it begins with; what a flow's `tcp` lacks may be in `[tcp]`."""
    key = what.partition(":")[0]
    if " " in key:
        return what
    of_tcp = re.fullmatch(r"flows\.[^.]+\.(tcp\..+)", key)
    return f"{scenario.place_of(key, *(of_tcp.groups() if of_tcp else ()))}: {what}"


class Ns2Missing(RuntimeError):
    """There is no ns-2 to compare with."""

    def __init__(self) -> None:
        super().__init__('no program called "ns" is on the path: apt-get install ns2')


class Ns2Failed(RuntimeError):
    """ns-2 did not run the script to its end."""

    def __init__(self, code: int, said: str) -> None:
        """`said` is what it wrote to standard error, or to standard output if that was nothing."""
        self.code = code
        tail = "\n".join(f"  {line}" for line in said.strip().splitlines()[-CONTEXT:])
        how = f"was ended by signal {-code}" if code < 0 else f"left with exit code {code}"
        super().__init__(f"ns-2 {how}" + (f":\n{tail}" if tail else " and said nothing"))


class Ns2Late(Ns2Failed):
    """ns-2 had not come to the script's end in time."""

    def __init__(self, timeout: float) -> None:
        """`timeout` in seconds."""
        self.code = -signal.SIGKILL
        RuntimeError.__init__(
            self, f"ns-2 did not finish within {timeout:g} s and was stopped; --timeout sets a longer limit"
        )


class Ns2:
    """ns-2 as a program, and its runs under way, in whichever threads: none outlives `stop`."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        """One run may take `timeout` seconds. Raises `Ns2Missing`, ValueError if none can."""
        self.timeout = seconds("timeout", timeout)
        program = shutil.which("ns")
        if program is None:
            raise Ns2Missing
        self.program = program
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, script: str, folder: Path) -> None:
        """Run a script, which writes `THEIRS` in this folder. Raises `Ns2Failed`, `Ns2Late` among them."""
        (folder / SCRIPT).write_text(script, encoding="utf-8")
        (folder / THEIRS).unlink(missing_ok=True)
        with self._lock:
            if self._stopped:
                raise Ns2Failed(-signal.SIGKILL, "no further run is started")
            process = subprocess.Popen(  # noqa: S603 - found on the path, with a script of our own
                [self.program, SCRIPT, THEIRS],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            self._running.add(process)
        try:
            out, said = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise Ns2Late(self.timeout) from None
        finally:
            # Whatever ended the wait, the program is not left behind.
            process.kill()
            with process, self._lock:
                self._running.discard(process)
        if process.returncode != 0 or not (folder / THEIRS).exists():
            raise Ns2Failed(process.returncode, said.strip() or out)

    def stop(self) -> None:
        """End every run under way, and start none any more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


@dataclass(frozen=True)
class Divergence:
    """Where two traces part."""

    event: int
    """Its number, from 1."""
    ours: tuple[str, ...]
    """Our last events, the one that differs last; without it where our trace has ended."""
    theirs: tuple[str, ...]
    """ns-2's."""

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {"event": self.event, "ours": list(self.ours), "theirs": list(self.theirs)}

    def __str__(self) -> str:
        sides = (("Inprofile", self.ours), ("ns-2", self.theirs))
        shown = (
            "\n".join([f"{name}, up to there:", *(f"  {line}" for line in lines)]) for name, lines in sides
        )
        return "\n".join([f"different from event {self.event:,} on", *shown])


@dataclass(frozen=True)
class Comparison:
    """Two traces side by side."""

    events: int
    """Events that are the same, from the start."""
    checksum: str
    """CRC-32 of ns-2's trace as far as it was read, its flags blanked."""
    divergence: Divergence | None
    """The first one."""


@dataclass(frozen=True)
class Validation:
    """One seed of one experiment, run by both."""

    title: str
    file: str
    seed: int
    packets: int
    """Data packets that came to their receivers in our run."""
    comparison: Comparison

    @property
    def identical(self) -> bool:
        """Whether there is no difference."""
        return self.comparison.divergence is None

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        divergence = self.comparison.divergence
        return {
            "scenario": self.title,
            "file": self.file,
            "seed": self.seed,
            "identical": self.identical,
            "events": self.comparison.events,
            "packets": self.packets,
            "checksum": self.comparison.checksum,
            "first_divergence": None if divergence is None else divergence.to_json(),
        }

    def __str__(self) -> str:
        if self.comparison.divergence is None:
            return f"identical: {self.comparison.events:,} events, {self.packets:,} packets received"
        return str(self.comparison.divergence)


def by_events(scenario: Scenario) -> bool:
    """Whether an experiment asks for ns-2's clock and order, so that its events can be ns-2's."""
    return bool(json.loads(scenario.canonical)["engine"] == "ns2")


def ns2_script(scenario: Scenario, seed: int = 1) -> str:
    """The Tcl script by which ns-2 2.35 runs this seed. Raises `NotInNs2`."""
    try:
        return _internal.ns2_script(scenario._inner, seed)
    except _internal.Inexpressible as error:
        raise NotInNs2(scenario, list(error.args[0])) from None


def compare(ours: Iterable[bytes], theirs: Iterable[bytes]) -> Comparison:
    r"""Compare two traces, line by line.

    >>> here = [b"+ 0 0 1 tcp 40 ------- 0 0.0 1.0 0 0\n"]
    >>> compare(here, [b"+ 0 0 1 tcp 40 ---A--- 0 0.0 1.0 0 0\n"]).divergence is None
    True
    >>> compare(here, []).divergence
    Divergence(event=1, ours=('+ 0 0 1 tcp 40 ------- 0 0.0 1.0 0 0',), theirs=())
    """
    recent: deque[tuple[bytes, bytes]] = deque(maxlen=CONTEXT - 1)
    checksum = same = 0
    for our, their in zip_longest(ours, theirs, fillvalue=b""):
        plain = their if _NO_FLAGS in their else _FLAGS.sub(_NO_FLAGS, their, count=1)
        checksum = zlib.crc32(plain, checksum)
        if our != plain:
            before = list(recent)
            divergence = Divergence(
                same + 1, _texts([o for o, _ in before], our), _texts([t for _, t in before], their)
            )
            return Comparison(same, f"{checksum:08x}", divergence)
        same += 1
        recent.append((our, their))
    return Comparison(same, f"{checksum:08x}", None)


def _texts(before: list[bytes], last: bytes) -> tuple[str, ...]:
    lines = [*before, last] if last else before
    return tuple(line.decode("utf-8", "replace").rstrip("\n") for line in lines)


def validate(
    scenario: Scenario, seed: int = 1, keep: str | Path | None = None, *, timeout: float = TIMEOUT
) -> Validation:
    """Run one seed here and in ns-2, and compare. `keep` is a folder for the script and both traces.

    ns-2 is given `timeout` seconds. Raises `NotInNs2`, `Ns2Missing` and `Ns2Failed`; OSError where a trace
    can't be written.
    """
    script = ns2_script(scenario, seed)
    ns2 = Ns2(timeout)
    with _folder(keep) as folder:
        ns2.run(script, folder)
        packets = _internal.ns2_log(scenario._inner, seed, str(folder / OURS))
        with (folder / OURS).open("rb") as ours, (folder / THEIRS).open("rb") as theirs:
            comparison = compare(ours, theirs)
    return Validation(scenario.title, scenario.file, seed, packets, comparison)


@dataclass(frozen=True)
class Timed:
    """An experiment of which a moment is run by both, to tell how long all of it takes."""

    scenario: Scenario
    timeout: float = TIMEOUT

    def expected_packets(self, seeds: Any = None) -> float:
        """How many data packets are to be expected of a run."""
        return self.scenario.expected_packets(seeds=seeds)

    def check(self) -> Any:
        """Its effective values."""
        return self.scenario.check()

    def with_(self, changes: Any) -> Timed:
        """The same with other values."""
        return replace(self, scenario=self.scenario.with_(changes))

    def run(self, seeds: int, jobs: int) -> None:
        """Run it once. Raises what `validate` does."""
        if by_events(self.scenario):
            validate(self.scenario, timeout=self.timeout)
        else:
            count(Ns2(self.timeout), counting_script(self.scenario, 1))


def counting_script(scenario: Scenario, seed: int) -> str:
    """The script by which ns-2 writes what it counted at both ends of the window. Raises `NotInNs2`."""
    try:
        script = _internal.ns2_counting_script(scenario._inner, seed)
    except _internal.Inexpressible as error:
        raise NotInNs2(scenario, list(error.args[0])) from None
    # The first line is the title, which is nothing to ns-2.
    return script.partition("\n")[2]


def count(ns2: Ns2, script: str) -> str:
    """What a run of such a script counted."""
    with tempfile.TemporaryDirectory(prefix="inprofile-") as name:
        folder = Path(name)
        ns2.run(script, folder)
        return (folder / THEIRS).read_text(encoding="ascii", errors="replace")


@contextmanager
def _folder(keep: str | Path | None) -> Iterator[Path]:
    """The one to keep, or one that is gone afterwards."""
    if keep is not None:
        folder = Path(keep)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="inprofile-") as name:
        yield Path(name)
