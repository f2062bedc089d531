"""Closed loops here and in ns-3: five flows of TCP before RED, CoDel and PIE, side by side.

Two programs by different people agree in what a loop settles at, not packet by packet: bounds are wide, and
a collapse is far beyond them. On its own it prints what it found; `validation/run.py` asks it for the section
of the page and the figures. ns-3 is PyPI's wheel.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inprofile import load

ROOT = Path(__file__).parent.parent
STORE = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "peers"
SOURCE = ROOT / "validation" / "ns3" / "loop.cc"
MODULES = "applications internet point-to-point traffic-control network stats core bridge"

SEEDS = 5
UTILISATION, QUEUE, DROPS = 0.08, 1.6, 4.0
"""How far ours may be from ns-3's: a difference, and two factors."""

QUEUES: dict[str, dict[str, Any]] = {
    "red": {"min_th": "10 packets", "max_th": "30 packets", "max_p": 0.02},
    "codel": {},
    "pie": {},
}
TCPS = (("rfc", "reno"), ("rfc", "sack"), ("rfc", "cubic"), ("linux", "sack"), ("linux", "cubic"))


@dataclass(frozen=True)
class Figures:
    """Means over the seeds, in the measured forty seconds."""

    utilisation: float
    drops: float
    queue_mean: float

    def __str__(self) -> str:
        return f"{self.utilisation:.3f} / {self.drops:,.0f} / {self.queue_mean:.1f}"


@dataclass(frozen=True)
class Row:
    """A queue and a TCP, here and in ns-3."""

    aqm: str
    profile: str
    congestion: str
    ours: Figures
    ns3: Figures

    @property
    def beyond(self) -> list[str]:
        """The figures that are out of bounds.

        Without SACK ns-3 loses several times what it does with it: there utilisation alone counts.
        """
        found = []
        if abs(self.ours.utilisation - self.ns3.utilisation) > UTILISATION:
            found.append("utilisation")
        if self.congestion != "reno":
            found += [
                name
                for name, bound in (("drops", DROPS), ("queue_mean", QUEUE))
                if not 1 / bound <= getattr(self.ours, name) / getattr(self.ns3, name) <= bound
            ]
        return found


@dataclass(frozen=True)
class Found:
    """All of it, or why it could not be done."""

    rows: tuple[Row, ...] = ()
    version: str | None = None
    missing: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether nothing is out of bounds."""
        return not any(row.beyond for row in self.rows)

    def to_json(self) -> dict[str, object]:
        """For `docs/validation.json`."""
        rows = [asdict(row) | {"beyond": row.beyond} for row in self.rows]
        bounds = {"utilisation": UTILISATION, "queue_mean": QUEUE, "drops": DROPS}
        return {"ns3": self.version, "missing": self.missing, "seeds": SEEDS, "bounds": bounds, "rows": rows}

    def section(self) -> str:
        """For `docs/validation.md`."""
        lines = [
            "## Closed loops",
            "",
            "Five flows of 80 to 120 ms on a link of 20 Mbit/s ([the experiment](../validation/loops.toml))",
            "here and in [ns-3](../validation/ns3/loop.cc), whose TCP is its own: utilisation, packets",
            "dropped, mean queue in packets.",
            "",
        ]
        if self.missing is not None:
            return "\n".join([*lines, f"not compared this time: {self.missing}."])
        lines += ["| queue | TCP | here | ns-3 | |", "|---|---|---:|---:|---|"]
        for row in self.rows:
            word = f"**beyond: {', '.join(row.beyond)}**" if row.beyond else "within"
            lines.append(f"| {row.aqm} | {row.profile}, {row.congestion} | {row.ours} | {row.ns3} | {word} |")
        lines += [
            "",
            f"ns-3 {self.version}; {SEEDS} seeds, 40 s after the first 10. Bounds: utilisation",
            f"± {UTILISATION}, the queue within a factor of {QUEUE}, drops of {DROPS:g}.",
            "The window of the `rfc` profile's Reno grows by acknowledgements, and delayed ones are half as",
            "many: fewer drops. Of `reno`, without SACK, utilisation alone is judged: ns-3 then loses",
            "several times as much.",
        ]
        return "\n".join(lines)


def compare() -> Found:
    """Build ns-3's side, run every row on both."""
    try:
        program, version = _ns3()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            pairs = [(aqm, congestion) for aqm in QUEUES for congestion in ("reno", "sack", "cubic")]
            theirs = dict(zip(pairs, pool.map(lambda pair: _theirs(program, *pair), pairs), strict=True))
    except (OSError, RuntimeError) as error:
        return Found(missing=str(error))
    rows = [
        Row(aqm, profile, congestion, _ours(aqm, profile, congestion), theirs[aqm, congestion])
        for aqm in QUEUES
        for profile, congestion in TCPS
    ]
    return Found(tuple(rows), version)


def _ours(aqm: str, profile: str, congestion: str) -> Figures:
    scenario = load(ROOT / "validation" / "loops.toml")
    scenario = scenario.set("tcp", {"profile": profile, "congestion": congestion})
    queue = {"aqm": aqm, "limit": "1000 packets", **QUEUES[aqm]}
    metrics = scenario.set("links.bottleneck.queue", queue).run(SEEDS).summary()
    return Figures(*(float(metrics[name].mean) for name in ("utilisation", "drops", "queue_mean")))


def _theirs(program: Path, aqm: str, congestion: str) -> Figures:
    runs = []
    for seed in range(1, SEEDS + 1):
        words = _run(program, aqm, congestion, str(seed)).split()
        runs.append({name: float(value) for name, value in (word.split("=") for word in words)})
    return Figures(*(sum(run[n] for run in runs) / SEEDS for n in ("utilisation", "drops", "queue_mean")))


def _ns3() -> tuple[Path, str]:
    """The program, compiled against the wheel's headers and libraries; the wheel's version."""
    if shutil.which("g++") is None:
        raise RuntimeError("g++ is missing: apt-get install g++")
    STORE.mkdir(parents=True, exist_ok=True)
    if not sorted(STORE.glob("ns3-*.whl")):
        what = ("--no-deps", "--only-binary=:all:", "--dest", str(STORE), "ns3")
        _run(sys.executable, "-m", "pip", "download", "--quiet", *what)
    wheel = sorted(STORE.glob("ns3-*.whl"))[-1]
    folder = STORE / wheel.stem
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(part)
        part.rename(folder)
    libraries = folder / "ns3" / "lib64"
    core = next(iter(libraries.glob("libns3.*-core.so")), None)
    if core is None:
        raise RuntimeError(f"{wheel.name} holds no libns3.*-core.so")
    series = core.name.removeprefix("lib").removesuffix("-core.so")
    program = STORE / "loop-ns3"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        options = ["-O2", "-std=c++20", f"-I{folder / 'ns3' / 'include'}", f"-L{libraries}"]
        options += [f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"]
        _run("g++", "-o", program, SOURCE, *options, *(f"-l{series}-{module}" for module in MODULES.split()))
    return program, wheel.name.split("-")[1]


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = (done.stderr.strip() or "no message").splitlines()[-1]
        raise RuntimeError(f"{Path(command[0]).name} failed: {said}")
    return done.stdout


if __name__ == "__main__":
    found = compare()
    sys.stdout.write(json.dumps(found.to_json(), indent=2) + "\n")
    sys.exit(0 if found.agrees and found.missing is None else 1)
