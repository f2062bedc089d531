"""inprofiled, asked where it serves metrics, in Prometheus' text format."""

from __future__ import annotations

import http.client
import ipaddress
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import SplitResult, urlsplit

from .._input import visible
from .control import (
    ANSWER_TIMEOUT,
    COLOURS,
    LARGEST,
    Counts,
    Look,
    RouterError,
    measured,
    too_long,
    understood,
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
