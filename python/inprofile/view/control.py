"""inprofiled, asked: over its control socket, and where it serves metrics in Prometheus' text format.

The state of a running inprofiled at one moment, however it was asked.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import math
import re
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from .._input import visible
from ..own.engine import __version__

COLOURS = ("in", "out", "red")
ANSWER_TIMEOUT = 10.0
"""So many seconds a router may take to answer."""
LARGEST = 256 << 20
"""The longest answer that is read, in bytes: ten thousand customers take ten million."""


class RouterError(OSError):
    """A router that is not there, may not be asked, or is not understood; the text says what to do."""


@dataclass(frozen=True)
class Counts:
    """A class or a customer in one direction, since the router's start or since he came."""

    kind: str
    """`class` or `customer`."""
    direction: str
    name: str
    arrived: float
    """In bytes."""
    sent: tuple[float, ...]
    """In bytes, as IN, OUT and red."""
    dropped: Mapping[str, float]
    """Packets by cause."""
    marked: float
    """Packets marked CE; NaN where they are not counted."""
    waiting: float
    """Packets that wait now."""
    delays: float = math.nan
    """Packets whose delay from arrival to departure was measured; NaN where none is."""
    delay_sum: float = math.nan
    """The sum of their delays, in s."""
    p99: float = math.nan
    """The 99th percentile of all of them, in s."""
    contract: float | None = None
    """In bit/s."""
    group: str | None = None
    gauges: Mapping[str, float] = field(default_factory=dict)
    """State of the discipline or of the marker: averages, probabilities, tokens."""


@dataclass(frozen=True)
class Look:
    """A router at one moment."""

    version: str
    """Empty for one that does not say."""
    uptime: float
    """In s."""
    mode: str
    """`normal`, `bypass` or `failed`."""
    trouble: tuple[str, ...]
    ports: tuple[tuple[str, str], ...]
    """Interfaces, each with its state."""
    rows: tuple[Counts, ...]


class Router(Protocol):
    """A way to ask."""

    name: str
    """As it was given."""

    def look(self) -> Look:
        """The router now. Raises RouterError."""
        ...


def understood(name: str, read: Callable[[], Look], version: str) -> Look:
    """The snapshot in an answer; one that lacks a key is of another version. Raises RouterError."""
    try:
        return read()
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        lacks = f"lacks {error}" if isinstance(error, LookupError) else f"cannot be understood ({error})"
        which = f"version {version}" if version else "an older version"
        raise RouterError(
            f"{name}: what inprofiled says {lacks}: it is {which}, and this is {__version__};"
            " look at it with the inprofile of its own version"
        ) from None


def too_long(name: str) -> str:
    """Why an answer is not read: half of it would be another router."""
    return (
        f"{name} answers more than {LARGEST >> 20} MiB, as inprofiled never does: is another program there?"
        " Give the socket that control.socket names, or the address of metrics.listen"
    )


def measured(packets: float, value: float | None) -> float:
    """A figure over packets; NaN where there were none."""
    return float(value) if packets and value is not None else math.nan


class Control:
    """A control socket (crates/router/src/control.rs)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def look(self) -> Look:
        """The router now. Raises RouterError."""
        answer = self._ask({"do": "stats"})
        return understood(self.name, lambda: _of_stats(answer["stats"]), _version_of(answer))

    def _ask(self, request: Mapping[str, str]) -> dict[str, Any]:
        try:
            if not stat.S_ISSOCK(Path(self.name).stat().st_mode):
                raise RouterError(f"{self.name} is no socket: give the one that control.socket names")
            with socket.socket(socket.AF_UNIX) as made:
                made.settimeout(ANSWER_TIMEOUT)
                made.connect(self.name)
                made.sendall(json.dumps(request).encode() + b"\n")
                text = b"".join(_chunks(made, self.name))
        except RouterError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            raise RouterError(
                f"{self.name}: there is no such socket; is inprofiled running? control.socket in its file"
                " says where it listens"
            ) from None
        except ConnectionRefusedError:
            raise RouterError(f"{self.name}: nobody listens there; inprofiled has ended") from None
        except PermissionError:
            raise RouterError(
                f"{self.name}: you may not ask it; root, the router's user and the members of"
                " control.group may"
            ) from None
        except TimeoutError:
            raise RouterError(f"{self.name} has not answered for {ANSWER_TIMEOUT:g} s") from None
        except OSError as error:
            raise RouterError(f"{self.name}: {error.strerror or error}") from None
        try:
            answer = json.loads(text)
            if answer["ok"] is not True:
                raise RouterError(f"{self.name}: {visible(str(answer['error']))}")
        except (ValueError, LookupError, TypeError, RecursionError):
            said = visible(text[:60].decode(errors="replace"))
            raise RouterError(f"{self.name} does not answer as inprofiled does: {said!r}") from None
        return dict(answer)


def _chunks(made: socket.socket, name: str) -> Iterator[bytes]:
    read = 0
    while chunk := made.recv(1 << 16):
        read += len(chunk)
        if read > LARGEST:
            raise RouterError(too_long(name))
        yield chunk


def _version_of(answer: Mapping[str, Any]) -> str:
    stats = answer.get("stats")
    return str(stats.get("version", "")) if isinstance(stats, dict) else ""


def _of_stats(stats: Mapping[str, Any]) -> Look:
    """The answer of `stats` (crates/router/src/snapshot.rs)."""
    trouble = [f"the mechanisms are out of use: {stats['failure']}"] if stats["failure"] else []
    trouble += [f"{d['name']}: counts do not add up" for d in stats["directions"] if not d["adds_up"]]
    if stats["reloads"]["error"]:
        trouble.append(f"the last reload was refused: {stats['reloads']['error']}")
    rows = []
    for direction in stats["directions"]:
        markers = {of["name"]: of["gauges"] for of in direction["markers"]}
        rows += [_class(direction["name"], of) for of in direction["classes"]]
        for of in direction["customers"]:
            rows.append(_customer(direction["name"], of, markers.get(of["name"], {})))
            # A queue of his own is a class of his.
            rows += [
                _class(direction["name"], {**own, "name": f"{of['name']}: {own['name']}"})
                for own in of.get("classes", ())
            ]
    return Look(
        str(stats.get("version", "")),
        float(stats["uptime"]),
        str(stats["mode"]),
        tuple(trouble),
        tuple(
            (str(p["interface"]), _first_line(p["out_of_use"]) or str(p["operstate"])) for p in stats["ports"]
        ),
        tuple(rows),
    )


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def _colours(of: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(float(of[colour]) for colour in COLOURS)


def _class(direction: str, of: Mapping[str, Any]) -> Counts:
    return Counts(
        "class",
        direction,
        str(of["name"]),
        sum(_colours(of["arrived_bytes"])),
        _colours(of["sent_bytes"]),
        {cause: sum(_colours(n)) for cause, n in of["dropped"].items()},
        sum(_colours(of["marked"])),
        sum(_colours(of["waiting"])),
        gauges=_gauges(of["gauges"]),
    )


def _gauges(of: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(x) for name, x in of.items() if x is not None}


def _customer(direction: str, of: Mapping[str, Any], marker: Mapping[str, Any]) -> Counts:
    contract = of["contract"]
    return Counts(
        "customer",
        direction,
        str(of["name"]),
        float(of["arrived_bytes"]),
        _colours(of["sent_bytes"]),
        {
            **{cause: float(n) for cause, n in of["dropped"].items()},
            "no_buffer": float(of["no_buffer"]),
            "too_late": float(of["too_late"]),
        },
        math.nan,
        float(of["waiting"]),
        float(of["delay"]["packets"]),
        float(of["delay"]["sum_s"]),
        measured(of["delay"]["packets"], of["delay"]["p99_ms"]) / 1e3,
        None if contract is None else float(contract),
        of["group"],
        _gauges(marker),
    )


class Metrics:
    """An address of metrics (crates/router/src/metrics/page.rs). Raises RouterError for one elsewhere."""

    def __init__(self, name: str) -> None:
        parts = urlsplit(name)
        try:
            port = parts.port or 80
        except ValueError as error:
            raise RouterError(f"{name}: {error}") from None
        host = parts.hostname or ""
        if parts.scheme != "http" or parts.username is not None:
            raise RouterError(f"{name}: inprofiled serves metrics at http://127.0.0.1:PORT/metrics")
        if not _is_here(host):
            raise RouterError(
                f"{name} is not on this machine, and metrics are not encrypted on their way: forward its"
                f" port, ssh -L {port}:127.0.0.1:{port} {host}, and give http://127.0.0.1:{port}{_path(parts)}"
            )
        self.name, self._host, self._port, self._path = name, host, port, _path(parts)

    def look(self) -> Look:
        """The router now. Raises RouterError."""
        found = _families(self._ask())
        version = next((str(labels.get("version", "")) for labels, _ in found.get("build_info", ())), "")
        if not found:
            raise RouterError(f"{self.name} shows no metrics of inprofiled")
        return understood(self.name, lambda: _of_metrics(found, version), version)

    def _ask(self) -> str:
        asked = http.client.HTTPConnection(self._host, self._port, timeout=ANSWER_TIMEOUT)
        try:
            asked.request("GET", self._path)
            answer = asked.getresponse()
            data = answer.read(LARGEST + 1)
            if len(data) > LARGEST:
                raise RouterError(too_long(self.name))
            text = data.decode(errors="replace")
            if answer.status != http.HTTPStatus.OK:
                raise RouterError(f"{self.name} answers {answer.status}: {visible(text[:200].strip())}")
        except RouterError:
            raise
        except ConnectionRefusedError:
            raise RouterError(
                f"{self.name}: nobody listens there; is inprofiled running, with `metrics` in its file?"
            ) from None
        except TimeoutError:
            raise RouterError(f"{self.name} has not answered for {ANSWER_TIMEOUT:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise RouterError(f"{self.name} does not answer as inprofiled does: {error}") from None
        finally:
            asked.close()
        return text


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _path(parts: SplitResult) -> str:
    return parts.path if parts.path not in ("", "/") else "/metrics"


_SAMPLE = re.compile(r'inprofiled_(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Families = Mapping[str, Sequence[tuple[Mapping[str, str], float]]]


def _families(text: str) -> Families:
    """Samples by the name of their family, each with its labels."""
    found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for line in text.splitlines():
        sample = _SAMPLE.fullmatch(line)
        if sample is None:
            continue
        labels = {
            key: re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), value)
            for key, value in _LABEL.findall(sample[2] or "")
        }
        found.setdefault(sample[1], []).append((labels, float(sample[3])))
    return found


def _of_metrics(found: Families, version: str) -> Look:
    failed, bypass = found["failed"][0][1], found["bypass"][0][1]
    trouble = ["the mechanisms are out of use"] if failed else []
    trouble += [
        f"{labels['direction']}: counts do not add up" for labels, ok in found["accounts_add_up"] if not ok
    ]
    return Look(
        version,
        found["uptime_seconds"][0][1],
        "failed" if failed else "bypass" if bypass else "normal",
        tuple(trouble),
        tuple((labels["interface"], labels["operstate"]) for labels, _ in found["port_up"]),
        (*_rows(found, "class"), *_rows(found, "customer")),
    )


def _rows(found: Families, kind: str) -> Iterator[Counts]:
    """Classes or customers; a router without customers has no samples of any."""
    customers = kind == "customer"
    sums: dict[tuple[str, str], dict[str, float]] = {}

    def add(family: str, label: str | None = None) -> None:
        for labels, value in found[f"{kind}_{family}"]:
            own = sums.setdefault((labels["direction"], labels[kind]), {})
            key = f"{family} {labels[label]}" if label else family
            own[key] = own.get(key, 0.0) + value

    if f"{kind}_queue_packets" not in found:
        return
    add("queue_packets")
    add("arrived_bytes_total")
    add("sent_bytes_total", "colour")
    add("dropped_packets_total", "cause")
    if customers:
        add("delay_seconds", "quantile")
        add("delay_seconds_sum")
        add("delay_seconds_count")
    else:
        add("marked_packets_total")
    state: dict[tuple[str, str], dict[str, float]] = {}
    family, whose = ("marker_state", "marker") if customers else ("class_state", "class")
    for labels, value in found.get(family, ()):
        state.setdefault((labels["direction"], labels[whose]), {})[labels["variable"]] = value
    for (direction, name), own in sums.items():
        dropped = {k.partition(" ")[2]: v for k, v in own.items() if k.startswith("dropped_packets_total ")}
        packets = own["delay_seconds_count"] if customers else math.nan
        yield Counts(
            kind,
            direction,
            name,
            own["arrived_bytes_total"],
            tuple(own[f"sent_bytes_total {colour}"] for colour in COLOURS),
            dropped,
            math.nan if customers else own["marked_packets_total"],
            own["queue_packets"],
            packets,
            own["delay_seconds_sum"] if customers else math.nan,
            measured(packets, own["delay_seconds 0.99"]) if customers else math.nan,
            gauges=state.get((direction, name), {}),
        )
