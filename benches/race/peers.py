"""Finds, installs and builds what is measured: our own programs, ns-2, ns-3 and DPDK.

What cannot be had is a `Missing` with the reason, which its rows show.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

BENCHES = Path(__file__).resolve().parent.parent
ROOT = BENCHES.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
STORE = TARGET / "peers"

NS3_MODULES = "applications internet point-to-point traffic-control network stats core bridge"


@dataclass
class Missing:
    """The peers that could not be had, and why."""

    why: str


@dataclass
class Peer:
    """A program to race against."""

    name: str
    version: str
    command: list[str]
    # Alternatives that were tried and were slower.
    notes: list[str] = field(default_factory=list)


def say(text: str) -> None:
    """Progress goes to the standard error."""
    print(text, file=sys.stderr, flush=True)


def output(*command: str | Path) -> str:
    """The output of a command; its errors are passed on."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        errors = [line for line in lines if "error" in line.lower()] or lines[-1:]
        raise RuntimeError(f"{Path(str(command[0])).name} failed: {errors[0].strip()}")
    return done.stdout


def ours() -> Path:
    """Builds our programs; the folder they are in."""
    say("building ours")
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--release", "-p", "inprofile-benches", "--bins"],
        cwd=ROOT,
        check=True,
    )
    return TARGET / "release"


def apt(*packages: str) -> None:
    """Debian packages, installed if they are not there and we may."""
    state = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    lacking = [p for p in packages if f"{p} installed" not in state.splitlines()]
    if not lacking:
        return
    ask = f"apt-get install {' '.join(lacking)}"
    if not shutil.which("apt-get"):
        raise RuntimeError(f"Debian's {' and '.join(lacking)} not found, and there is no apt-get here")
    if os.geteuid() != 0:
        raise RuntimeError(f"{' and '.join(lacking)} not installed; as root: {ask}")
    say(ask)
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *lacking]
    if subprocess.run(install, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        output("apt-get", "update", "--quiet")
        output(*install)


def version_of(package: str) -> str:
    """The version of an installed Debian package."""
    return output("dpkg-query", "-W", "-f", "${Version}", package)


def ns2() -> Peer | Missing:
    """Debian's ns-2, or whatever is called ns."""
    try:
        if not shutil.which("ns"):
            apt("ns2")
        try:
            version = version_of("ns2").split("+")[0]
        except (RuntimeError, FileNotFoundError):
            version = "of unknown version"
        return Peer("ns-2", version, ["ns", str(BENCHES / "peers" / "dumbbell.tcl")])
    except (RuntimeError, FileNotFoundError) as e:
        return Missing(str(e))


# How much faster the wheel has to be in its trial run to be raced in place of Debian's library.
CLEARLY = 1.2


def ns3(source: str, *trial: str) -> Peer | Missing:
    """Our SOURCE.cc with Debian's library, whose losses agree with ours, or PyPI's wheel if that is faster.

    `trial`: the arguments of a run that shows whether it clearly is.
    """
    STORE.mkdir(parents=True, exist_ok=True)
    built: list[tuple[float, Peer]] = []
    failed: list[str] = []
    for name, build in (("Debian's library", ns3_of_debian), ("PyPI's wheel", ns3_of_pypi)):
        try:
            version, program = build(source)
            # The better of two, for a first run pays for loading.
            seconds = []
            for _ in range(2):
                words = output(program, *trial).split()
                seconds.append(float(dict(w.split("=") for w in words)["cpu_s"]))
            built.append((min(seconds), Peer("ns-3", f"{version} ({name})", [str(program)])))
        except (RuntimeError, FileNotFoundError, OSError) as e:
            failed.append(f"{name}: {e}")
            say(f"ns-3, {name}: {e}")
    if not built:
        return Missing("; ".join(failed))
    first = 1 if len(built) > 1 and built[1][0] * CLEARLY < built[0][0] else 0
    seconds_of_best, best = built.pop(first)
    for took, other in built:
        share = took / seconds_of_best
        best.notes.append(f"{other.version} took {share:.2f} times as long in a trial run")
    best.notes += [f"not tried: {why}" for why in failed]
    return best


def compile_ns3(name: str, library: str, *options: str) -> Path:
    """Our NAME.cc against one library; rebuilt if the source is newer."""
    program, source = STORE / f"{name}-ns3-{library}", BENCHES / "peers" / f"{name}.cc"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        say(f"building {program.name}")
        output("g++", "-O2", "-o", program, source, *options)
    return program


def ns3_of_debian(source: str) -> tuple[str, Path]:
    """Debian's library."""
    apt("libns3-dev", "g++")
    links = [f"-lns3-{m}" for m in NS3_MODULES.split()]
    # Its headers are C++17's: C++20 forbids how they write constructors.
    program = compile_ns3(source, "debian", "-std=c++17", *links)
    return version_of("libns3-dev").split("+")[0], program


def ns3_of_pypi(source: str) -> tuple[str, Path]:
    """The wheel, which holds headers and libraries."""
    wheels = sorted(STORE.glob("ns3-*.whl"))
    if not wheels:
        say("downloading the wheel ns3")
        output(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            STORE,
            "ns3",
        )
        wheels = sorted(STORE.glob("ns3-*.whl"))
    wheel = wheels[-1]
    folder = STORE / wheel.stem
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(part)
        part.rename(folder)
    libraries = folder / "ns3" / "lib64"
    series = next(iter(libraries.glob("libns3.*-core.so"))).name.removeprefix("lib").removesuffix("-core.so")
    program = compile_ns3(
        source,
        "pypi",
        "-std=c++20",
        f"-I{folder / 'ns3' / 'include'}",
        f"-L{libraries}",
        f"-Wl,-rpath,{libraries}",
        "-Wl,--allow-shlib-undefined",
        *(f"-l{series}-{m}" for m in NS3_MODULES.split()),
    )
    return wheel.name.split("-")[1], program


def dpdk() -> Peer | Missing:
    """Debian's DPDK, its inlined functions compiled as its own pkg-config says."""
    try:
        apt("libdpdk-dev", "gcc", "pkg-config")
        STORE.mkdir(parents=True, exist_ok=True)
        program = STORE / "mechanisms-dpdk"
        source = BENCHES / "peers" / "mechanisms.c"
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            say(f"building {program.name}")
            flags = output("pkg-config", "--cflags", "libdpdk").split()
            libraries = ["-lrte_meter", "-lrte_sched", "-lrte_eal"]
            output("gcc", "-O3", "-Wall", "-Wextra", "-o", program, source, *flags, *libraries)
        return Peer("DPDK", output("pkg-config", "--modversion", "libdpdk").strip(), [str(program)])
    except (RuntimeError, FileNotFoundError) as e:
        return Missing(str(e))
