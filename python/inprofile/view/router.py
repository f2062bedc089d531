"""A running inprofiled, watched: its rates between looks, and those of the last minutes.

It is asked while somebody looks at the page, once a second, however many look. On this machine only: a router
elsewhere is reached through ssh, which forwards sockets and ports alike.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..own.engine import __version__
from .answers import Arrays, pack, plain
from .control import Control, Look, Metrics, Router, RouterError

EVERY = 1.0
"""Seconds between two looks."""
UNWATCHED = 10.0
"""After so many seconds without a question it is not asked any more."""
UNSEEN = 15.0
"""Its uptime has grown by so many seconds less than our clock: it was restarted. No answer takes as long."""
KEPT = 600
"""So many looks are remembered, fewer of very many customers."""
MOST_VALUES = 20_000_000
"""As many figures are kept in memory, in four bytes each."""
MOST_SHOWN = 16
"""As many rows are sent with their history."""
RATES = ("offered", "in", "out", "red", "marked")
GAUGES = ("waiting", "delay", "p99")

Row = tuple[str, str, str]


def router(name: str) -> Router:
    """By the path of its control socket, or by the address of its metrics. Raises RouterError.

    >>> router("/run/inprofiled/control.sock").name
    '/run/inprofiled/control.sock'
    >>> router("127.0.0.1:9101/metrics")
    Traceback (most recent call last):
        ...
    inprofile.view.control.RouterError: 127.0.0.1:9101/metrics is no path of a socket: write http://127.0.0.1:9101/metrics
    """
    if "://" in name:
        return Metrics(name)
    if re.match(r"(localhost|[0-9.]+|\[[0-9a-f:]+\]):\d+", name):
        raise RouterError(f"{name} is no path of a socket: write http://{name}")
    return Control(name)


@dataclass(frozen=True)
class _Counters:
    """A look as a table: a row each of classes and customers."""

    look: Look
    rows: tuple[Row, ...]
    causes: tuple[str, ...]
    counts: NDArray[np.float64]
    """Offered, IN, OUT and red in bytes, marked, then drops by cause, then delays and their sum."""

    @classmethod
    def of(cls, look: Look) -> _Counters:
        causes = tuple(dict.fromkeys(cause for c in look.rows for cause in c.dropped))
        table = [
            [c.arrived, *c.sent, c.marked, *(c.dropped.get(x, 0.0) for x in causes), c.delays, c.delay_sum]
            for c in look.rows
        ]
        counts = np.array(table, dtype=float).reshape(len(table), 7 + len(causes))
        return cls(look, tuple((c.kind, c.direction, c.name) for c in look.rows), causes, counts)

    def since(self, before: _Counters | None) -> NDArray[np.float32]:
        """Rates between two looks, and what waits now; NaN where there are none, or nothing came before.

        In bit/s, packets/s, packets and s: as RATES, drops by cause, GAUGES.
        """
        n = len(RATES)
        made = np.full((len(self.rows), n + len(self.causes) + len(GAUGES)), np.nan, dtype=np.float32)
        seconds = 0.0 if before is None else self.look.uptime - before.look.uptime
        if before is not None and seconds > 0:
            grown = self._grown(before)
            made[:, : n - 1] = grown[:, : n - 1] * 8 / seconds
            made[:, n - 1 : -3] = grown[:, n - 1 : -2] / seconds
            with np.errstate(divide="ignore", invalid="ignore"):
                made[:, -2] = np.where(grown[:, -2] > 0, grown[:, -1] / grown[:, -2], np.nan)
        made[:, -3] = [c.waiting for c in self.look.rows]
        made[:, -1] = [c.p99 for c in self.look.rows]
        return made

    def _grown(self, before: _Counters) -> NDArray[np.float64]:
        counts = before._with(self.causes)
        if before.rows == self.rows:
            old = counts
        else:
            old = np.zeros_like(self.counts)
            at = {row: i for i, row in enumerate(before.rows)}
            for i, row in enumerate(self.rows):
                if row in at:
                    old[i] = counts[at[row]]
        # Who came back counts from 0 again.
        return np.where(self.counts >= old, self.counts - old, self.counts)

    def _with(self, causes: tuple[str, ...]) -> NDArray[np.float64]:
        """The counts with a column for each of these causes; a customer has some that a class has not."""
        if causes == self.causes:
            return self.counts
        n, none = len(RATES), np.zeros(len(self.counts))
        own = {cause: self.counts[:, n + i] for i, cause in enumerate(self.causes)}
        return np.column_stack(
            [self.counts[:, :n], *(own.get(cause, none) for cause in causes), self.counts[:, -2:]]
        )


@dataclass(frozen=True)
class _Moment:
    """The sample remembered."""

    at: float
    """In s since the watch began."""
    rows: dict[Row, int]
    values: NDArray[np.float32]
    gauges: dict[Row, dict[str, float]]


class Watch:
    """Looks at a router while somebody asks for it."""

    def __init__(self, of: Router, every: float = EVERY) -> None:
        """Looks once. Raises RouterError."""
        self.name, self._of, self._every = of.name, of, every
        self._lock = threading.Lock()
        self._began: float | None = None
        self._date = ""
        self._asked = 0.0
        self._thread: threading.Thread | None = None
        self._moments: deque[_Moment] = deque(maxlen=KEPT)
        self._causes: tuple[str, ...] = ()
        self._error: str | None = None
        self._seen = 0.0
        self._restarts = 0
        self._now = _Counters.of(of.look())
        self._at = time.monotonic()

    def answer(self, chosen: Sequence[str], results: bool = False) -> bytes:
        """The router now, and what is remembered of chosen rows, named `kind/direction/name`.

        `results`: whether a folder of results is shown besides.
        """
        with self._lock:
            self._asked = time.monotonic()
            if self._began is None:
                self._began = self._asked
                self._date = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()
            now, moments, causes = self._now, list(self._moments), self._causes
            about = {
                "router": self.name,
                "error": self._error,
                "seen": self._seen,
                "at": self._time(),
                "began": self._date,
                "every": self._every,
                "restarts": self._restarts,
                "results": results,
            }
        return _packed(about, now, moments, causes, chosen)

    def _watch(self) -> None:
        try:
            self._look_on()
        finally:
            # Whatever ends it: the next question begins anew.
            with self._lock:
                self._thread = None

    def _look_on(self) -> None:
        due = time.monotonic()
        while True:
            began = time.monotonic()
            self.look()
            # Of ten thousand customers a look takes long: it leaves twice its time to others.
            due = max(due + self._every, 3 * time.monotonic() - 2 * began)
            time.sleep(max(0.0, due - time.monotonic()))
            with self._lock:
                if time.monotonic() - self._asked > UNWATCHED:
                    # Nobody looks: the router is left alone.
                    self._pause()
                    return

    def look(self) -> None:
        """Look once; what goes wrong is kept to be told."""
        try:
            now = _Counters.of(self._of.look())
        except RouterError as error:
            with self._lock:
                if self._error is None:
                    self._pause()
                self._error = str(error)
            return
        with self._lock:
            before, self._now = self._now, now
            last, self._at = self._at, time.monotonic()
            ran = now.look.uptime - before.look.uptime
            # Restarted unseen, it may have run for longer than before, but not for all the time since.
            restarted = ran < 0 or self._at - last - ran > UNSEEN
            if restarted:
                self._restarts += 1
                self._pause()
            self._error = None
            self._remember(None if restarted else before, now)

    def _remember(self, before: _Counters | None, now: _Counters) -> None:
        if now.causes != self._causes:
            # Another version: its columns are others.
            self._moments.clear()
            self._causes = now.causes
        values = now.since(before)
        self._seen = self._time()
        gauges = {row: dict(c.gauges) for row, c in zip(now.rows, now.look.rows, strict=True) if c.gauges}
        same = self._moments[-1].rows if self._moments and tuple(self._moments[-1].rows) == now.rows else None
        rows = same if same is not None else {row: i for i, row in enumerate(now.rows)}
        self._moments.append(_Moment(self._seen, rows, values, gauges))
        while len(self._moments) * values.size > MOST_VALUES and len(self._moments) > 2:
            self._moments.popleft()

    def _time(self) -> float:
        """In s since somebody first asked."""
        now = time.monotonic()
        return now - (now if self._began is None else self._began)

    def _pause(self) -> None:
        """No line is drawn over what was not seen."""
        if self._moments and self._moments[-1].rows:
            columns = self._moments[-1].values.shape[1]
            self._moments.append(_Moment(self._time(), {}, np.empty((0, columns), dtype=np.float32), {}))


def _packed(
    about: dict[str, Any],
    now: _Counters,
    moments: Sequence[_Moment],
    causes: Sequence[str],
    chosen: Sequence[str],
) -> bytes:
    columns = [*RATES, *(f"dropped_{cause}" for cause in causes), *GAUGES]
    arrays = Arrays()
    none = np.full(len(columns), np.nan)
    latest = next((m.values for m in reversed(moments) if m.rows), np.tile(none, (len(now.rows), 1)))
    times = np.array([m.at for m in moments])
    wanted = [row for row in now.rows if "/".join(row) in set(chosen)][:MOST_SHOWN]
    history = []
    for row in wanted:
        at = [m.rows.get(row) for m in moments]
        table = np.array([none if i is None else m.values[i] for m, i in zip(moments, at, strict=True)])
        table = table.reshape(len(moments), len(columns))
        series = {name: arrays.put(table[:, k]) for k, name in enumerate(columns)}
        gauges = dict.fromkeys(name for m in moments for name in m.gauges.get(row, ()))
        for name in gauges:
            series[name] = arrays.put(np.array([m.gauges.get(row, {}).get(name, np.nan) for m in moments]))
        history.append({"id": "/".join(row), "series": series})
    look = now.look
    own = [] if look.version == __version__ else [_other_version(look.version)]
    return pack(
        plain(
            {
                **about,
                "version": look.version,
                "uptime": look.uptime,
                "mode": look.mode,
                "trouble": [*look.trouble],
                "notes": own,
                "ports": [list(port) for port in look.ports],
                "columns": columns,
                "rows": [
                    {
                        "kind": c.kind,
                        "direction": c.direction,
                        "name": c.name,
                        "contract": c.contract,
                        "group": c.group,
                    }
                    for c in look.rows
                ],
                "now": arrays.put(latest.ravel()),
                "t": arrays.put(times),
                "history": history,
            }
        ),
        arrays,
    )


def _other_version(version: str) -> str:
    which = f"of version {version}" if version else "of an older version"
    return (
        f"This inprofiled is {which}, and this page is of {__version__}: not everything it counts is shown."
    )
