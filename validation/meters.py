"""A million random packets per meter and mode through ours and through DPDK's rte_meter, compared one by one.

On its own it prints what it found; `validation/run.py` asks it for the section of the page and the figures.
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
METERS = ROOT / "validation" / "meters"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")

SETUPS, PACKETS, SEED = 200, 5_000, 1
"""Setups in a stream, packets to a setup."""

NAMES = ("srtcm", "trtcm", "rfc4115")
MODES = ("colour_blind", "colour_aware")

# Nanoseconds a token, none below DPDK's least period; any two have a common multiple below a millisecond.
PERIODS = (100, 125, 200, 250, 400, 500, 1_000, 2_000, 4_000, 5_000, 10_000)


@dataclass(frozen=True)
class Row:
    """The outcome of one meter in one mode."""

    meter: str
    mode: str
    packets: int
    differences: int
    first_difference: int | None
    colours: tuple[int, int, int]
    """How many left green, yellow and red."""


@dataclass(frozen=True)
class Found:
    """All of it, or why it could not be done."""

    vectors: dict[str, tuple[int, int]]
    """By file: vectors and packets in them."""
    rows: tuple[Row, ...] = ()
    dpdk: str | None = None
    missing: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return all(row.differences == 0 for row in self.rows)

    def to_json(self) -> dict[str, object]:
        """For `docs/validation.json`."""
        vectors = {name: {"vectors": v, "packets": p} for name, (v, p) in self.vectors.items()}
        rows = [asdict(row) for row in self.rows]
        return {"vectors": vectors, "dpdk": self.dpdk, "missing": self.missing, "rows": rows, "seed": SEED}

    def section(self) -> str:
        """For `docs/validation.md`."""
        vectors = sum(v for v, _ in self.vectors.values())
        packets = sum(p for _, p in self.vectors.values())
        lines = [
            "## Meters",
            "",
            "The tests hold the meters of RFC 2697, 2698 and 4115 to",
            f"[{vectors} hand-derived vectors](../validation/meters/README.md) of {packets} packets.",
            "Against DPDK's rte_meter, packet by packet:",
            "",
        ]
        if self.missing is not None:
            return "\n".join([*lines, f"not compared this time: {self.missing}."])
        lines += [
            "| meter | mode | packets | green / yellow / red | differences |",
            "|---|---|---:|---:|---:|",
        ]
        for row in self.rows:
            shares = " / ".join(f"{count:,}" for count in row.colours)
            mode = row.mode.replace("_", "-")
            lines.append(f"| {row.meter} | {mode} | {row.packets:,} | {shares} | {row.differences:,} |")
        lines += [
            "",
            f"DPDK {self.dpdk}; {SETUPS} random setups of {PACKETS:,} packets each. DPDK adds tokens at the",
            "ends of periods of whole clock cycles. Its clock is the stream's own here: a cycle is 1 ns;",
            "rates are whole numbers of nanoseconds a byte and packets come at ends of periods: there both",
            "are exact. At other rates DPDK's are the nearest that its periods allow, and between the ends",
            "of periods its buckets are up to a period's tokens behind; ours have no such grain.",
        ]
        return "\n".join(lines)


def stream() -> bytes:
    """Setups with rates, bursts and loads of all kinds, as `ours.rs` describes them."""
    rng = random.Random(SEED)  # noqa: S311
    out = bytearray()
    for _ in range(SETUPS):
        slow, fast = sorted(rng.choices(PERIODS, k=2), reverse=True)
        grid = max(slow, fast) * (1 if slow % fast == 0 else fast)
        bursts = [rng.choice((0, 1, 64, 1_500, 3_000, 15_000, rng.randrange(1, 60_000))) for _ in range(2)]
        bursts[1] = max(bursts[1], 1)
        bursts[0] = max(bursts[0], 1)
        out += struct.pack("<5Q", 10**9 // slow, 10**9 // fast, *bursts, PACKETS)
        # From idle to four times the faster rate; now and then a burst or a long pause.
        most = rng.choice((64, 600, 1_500, 9_000))
        mean = most / 2 * fast / grid / rng.uniform(0.1, 4.0)
        at = 0
        for _ in range(PACKETS):
            pause = rng.random()
            gap = 0 if pause < 0.1 else mean * (50 if pause > 0.995 else 1) * rng.expovariate(1.0)
            at += round(gap) * grid
            out += struct.pack("<QII", at, rng.randint(1, most), rng.choice((0, 0, 1, 2)))
    return bytes(out)


def compare() -> Found:
    """Build both sides, run every meter in every mode, compare."""
    vectors = {name: _vectors(METERS / f"{name}.toml") for name in NAMES}
    try:
        theirs, version = _dpdk()
    except (OSError, RuntimeError) as error:
        return Found(vectors, missing=str(error))
    ours = _ours()
    packets = stream()
    rows = []
    for meter in NAMES:
        for mode in MODES:
            a, b = (_run([program, meter, mode], packets) for program in (ours, theirs))
            rows.append(_row(meter, mode, a, b))
    return Found(vectors, tuple(rows), version)


def _row(meter: str, mode: str, ours: bytes, theirs: bytes) -> Row:
    if len(ours) != len(theirs) or len(ours) != SETUPS * PACKETS:
        raise RuntimeError(f"{meter}: {len(ours):,} colours from ours, {len(theirs):,} from DPDK")
    different = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
    colours = (ours.count(0), ours.count(1), ours.count(2))
    return Row(meter, mode, len(ours), len(different), different[0] if different else None, colours)


def _vectors(file: Path) -> tuple[int, int]:
    vectors = tomllib.loads(file.read_text(encoding="utf-8"))["vector"]
    return len(vectors), sum(len(v["packets"]) for v in vectors)


def _ours() -> Path:
    what = ["-p", "inprofile-core", "--example", "meter-verdicts"]
    _run(["cargo", "build", "--quiet", "--locked", "--release", *what])
    return TARGET / "release" / "examples" / "meter-verdicts"


def _dpdk() -> tuple[Path, str]:
    for tool in ("gcc", "pkg-config"):
        if shutil.which(tool) is None:
            raise RuntimeError(f"{tool} is missing: apt-get install {tool}")
    try:
        version = _run(["pkg-config", "--modversion", "libdpdk"]).decode().strip()
    except RuntimeError:
        raise RuntimeError("DPDK is missing: apt-get install libdpdk-dev") from None
    flags = _run(["pkg-config", "--cflags", "libdpdk"]).decode().split()
    program = TARGET / "peers" / "meters-dpdk"
    program.parent.mkdir(parents=True, exist_ok=True)
    source = METERS / "dpdk.c"
    _run(["gcc", "-O2", "-Wall", "-Wextra", "-o", program, source, *flags, "-lrte_meter", "-lrte_eal"])
    return program, version


def _run(command: list[str | Path], data: bytes | None = None) -> bytes:
    done = subprocess.run(command, input=data, capture_output=True, check=False, cwd=ROOT)  # noqa: S603
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or "no message"
        raise RuntimeError(f"{Path(command[0]).name} failed: {said}")
    return done.stdout


if __name__ == "__main__":
    found = compare()
    sys.stdout.write(json.dumps(found.to_json(), indent=2) + "\n")
    sys.exit(0 if found.agrees else 1)
