"""Boots Linux as a process, Debian's user-mode-linux, and reads what happened to each packet there."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).parent.parent
GUEST = ROOT / "validation" / "linux" / "guest.c"
WHEN = ROOT / "validation" / "linux" / "when.c"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
MODULES = Path("/usr/lib/uml/modules")

RATE = 8_000_000
"""Rate of the guest's link, in bit/s: a packet of 1,000 B takes a millisecond."""

LINK = f"tc qdisc add dev v0 root handle 1: tbf rate {RATE} burst 30000 limit 100000000"
"""Shapes the link; the discipline under test is attached below it."""

SEEN = np.dtype([("before", "<i8"), ("after", "<i8"), ("left", "<i8"), ("order", "<u4"), ("tos", "<u4")])
"""A record as `guest.c` writes it; times in nanoseconds."""

PLANNED = struct.Struct("<QIHBB")
"""A packet to send, as `guest.c` reads it."""


NEEDED = {"linux.uml": "user-mode-linux", "modprobe": "kmod", "tc": "iproute2", "gcc": "gcc"}
"""The programs that this needs, each with its Debian package."""


class LinuxMissing(Exception):
    """A program is not installed; the message names its package."""


@dataclass(frozen=True)
class Planned:
    """A packet to be sent."""

    at: int
    """Nanoseconds since the start."""
    size: int
    """On the wire."""
    flow: int = 0
    ect: bool = False


Plan = Callable[[random.Random], list[Planned]]
"""Draws a job's packets."""


@dataclass(frozen=True)
class Job:
    """A job for the guest, run once."""

    name: str
    modules: tuple[str, ...]
    commands: tuple[str, ...]
    """`tc` commands, run once the devices exist."""
    plan: Plan
    seed: int = 1

    def planned(self) -> list[Planned]:
        """The same packets at every call."""
        return self.plan(random.Random(f"{self.name} {self.seed}"))  # noqa: S311


@dataclass(frozen=True)
class Seen:
    """The fate of a job's packets."""

    planned: Sequence[Planned]
    seen: npt.NDArray[np.void]
    began: int
    """When the last command, which sets up the discipline, ended; in nanoseconds of the guest's clock."""
    said: str
    """`tc -s -d qdisc show` at the end."""
    kernel: str


def program() -> str:
    """The kernel's program.

    Raises:
        LinuxMissing: it, or something that the guest calls, is not installed.
    """
    for name, package in NEEDED.items():
        if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise LinuxMissing(f"{name} is missing: apt-get install {package}")
    if not MODULES.is_dir():
        raise LinuxMissing(f"{MODULES} is missing: apt-get install --reinstall user-mode-linux")
    return shutil.which("linux.uml") or "linux.uml"


def run(jobs: Sequence[Job], tell: Callable[[str], None]) -> list[Seen]:
    """Boot, run all jobs one after the other, power off.

    Raises:
        LinuxMissing: something is not installed.
        RuntimeError: a job failed, with what the guest said; or the guest took too long.
    """
    kernel = program()
    with tempfile.TemporaryDirectory(prefix="inprofile-linux-") as name:
        folder = Path(name)
        compiled(GUEST, folder / "guest")
        compiled(WHEN, folder / "when")
        for number, job in enumerate(jobs):
            packets = b"".join(
                PLANNED.pack(p.at, p.size, p.flow, 2 if p.ect else 0, 0) for p in job.planned()
            )
            (folder / f"{number}.plan").write_bytes(packets)
        longest = sum(job.planned()[-1].at for job in jobs) / 1e9
        tell(f"booting Linux; {len(jobs)} jobs take {longest:.0f} s")
        console = boot(kernel, folder, script(folder, jobs), longest)
        told = folder / "version"
        version = told.read_text(encoding="utf-8").strip() if told.exists() else "?"
        return [_seen(folder, number, job, version, console) for number, job in enumerate(jobs)]


def compiled(source: Path, program: Path) -> None:
    """Compile a C program for the guest."""
    _run(["gcc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(source)])


def boot(kernel: str, folder: Path, script: str, longest: float) -> str:
    """Boot with this script, which takes `longest` seconds, as first process; return the guest's output."""
    (folder / "lib").mkdir()
    # modprobe looks for lib/modules/VERSION in the folder it is given.
    (folder / "lib" / "modules").symlink_to(MODULES)
    init = folder / "init"
    init.write_text(script, encoding="utf-8")
    init.chmod(0o755)
    # As root, at real-time priority: on a busy machine a guest that waits for a processor stalls.
    first = ["chrt", "--rr", "1"] if os.geteuid() == 0 else []
    command = [*first, kernel, "mem=256M", "rootfstype=hostfs", "rw", f"init={init}"]
    return _run([*command, "con=null", "con0=null,fd:1"], timeout=120 + 3 * longest)


def first_process(folder: Path, modules: Sequence[str], lines: Sequence[str]) -> str:
    """A script for `boot`: it loads the modules from this folder, runs the lines there, and powers off."""
    opening = [
        "#!/bin/sh",
        f"cd {folder}",
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "mount -t proc proc /proc; mount -t sysfs sys /sys",
        "uname -r > version",
        *(f"modprobe -d {folder} {name} || echo 'no module {name}'" for name in modules),
    ]
    return "\n".join([*opening, *lines, "echo o > /proc/sysrq-trigger", "sleep 10", ""])


def script(folder: Path, jobs: Sequence[Job]) -> str:
    """The guest's first and only process."""
    modules = sorted({name for job in jobs for name in ("veth", "sch_tbf", *job.modules)})
    lines: list[str] = []
    for number, job in enumerate(jobs):
        lines += [
            "ip link add v0 address 02:00:00:00:00:01 type veth peer name v1",
            "ip link set v0 up; ip link set v1 up",
            "( set -e",
            *(f"./when {number}.began {command}" for command in job.commands),
            f"./guest {number}.plan {number}.seen v0",
            f"tc -s -d qdisc show dev v0 > {number}.said",
            f") || echo 'job {job.name} failed'",
            "ip link del v0",
        ]
    return first_process(folder, modules, lines)


def _seen(folder: Path, number: int, job: Job, version: str, console: str) -> Seen:
    file = folder / f"{number}.seen"
    if not file.exists():
        raise RuntimeError(f"{job.name} did not run in the guest, which said:\n{console}")
    seen = np.fromfile(file, dtype=SEEN)
    began = int((folder / f"{number}.began").read_text(encoding="utf-8"))
    said = (folder / f"{number}.said").read_text(encoding="utf-8")
    return Seen(job.planned(), seen, began, said, version)


def _run(command: Sequence[str], timeout: float | None = None) -> str:
    try:
        done = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as late:
        raise RuntimeError(
            f"{Path(command[0]).name} was not done after {late.timeout:.0f} s: the machine is too busy"
        ) from late
    if "ptrace set fp regs failed" in done.stdout:
        raise RuntimeError(
            "linux.uml cannot hold this CPU's registers (AMX's tiles): use a machine without them"
        )
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr
