"""Where the time goes: samples of the dumbbell's run, each under the innermost of our functions it fell in.

The engine is compiled into a few large functions, so that a plain profile says little; hence every sampled
address is looked up in the debugging information, inlined functions included.
"""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from peers import STORE, output, say

MAP = re.compile(r"PERF_RECORD_MMAP2?.*\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*: r-xp (\S+)")
SEGMENT = re.compile(r"\s+LOAD\s+(0x[0-9a-f]+) (0x[0-9a-f]+) \S+ (0x[0-9a-f]+)")
NOISE = re.compile(r"<.*>|::h[0-9a-f]{16}$|\{impl#\d+\}")


def profile(command: list[str]) -> list[tuple[str, float]]:
    """Functions and their shares of the samples, largest first."""
    for tool, package in (("perf", "linux-perf"), ("addr2line", "binutils"), ("readelf", "binutils")):
        if not shutil.which(tool):
            raise RuntimeError(f"{tool} not found: Debian's package {package}")
    STORE.mkdir(parents=True, exist_ok=True)
    data = STORE / "perf.data"
    say(f"sampling {' '.join(Path(c).name for c in command)}")
    done = subprocess.run(
        ["perf", "record", "--quiet", "-F", "4999", "-e", "cpu-clock:u", "-o", data, "--", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"perf record: {(done.stderr or done.stdout).strip()}")
    binary = str(Path(command[0]).resolve())
    maps = []
    samples: Counter[str] = Counter()
    for line in output("perf", "script", "-i", data, "--show-mmap-events", "-F", "ip,sym,dso").splitlines():
        if found := MAP.search(line):
            start, length, offset, name = found.groups()
            if name == binary:
                maps.append((int(start, 16), int(length, 16), int(offset, 16)))
        elif words := line.split():
            samples[line.strip()] += 1 if re.fullmatch("[0-9a-f]+", words[0]) else 0
    names = innermost(binary, maps, samples)
    total = sum(samples.values())
    by_name: Counter[str] = Counter()
    for line, n in samples.items():
        by_name[names[line]] += n
    return [(name, n / total) for name, n in by_name.most_common() if n]


def innermost(binary: str, maps: list[tuple[int, int, int]], samples: Counter[str]) -> dict[str, str]:
    """The function of every sample: the innermost of ours, or, for foreign code, its symbol."""
    segments = [tuple(int(x, 16) for x in s) for s in SEGMENT.findall(output("readelf", "-lW", binary))]
    addresses: dict[str, str] = {}
    names: dict[str, str] = {}
    for line in samples:
        ip, *rest = line.split()
        if not re.fullmatch("[0-9a-f]+", ip):
            names[line] = "?"
            continue
        names[line] = NOISE.sub("", rest[0]) if rest else "?"
        for start, length, offset in maps:
            at = int(ip, 16) - start
            if 0 <= at < length:
                place = at + offset
                for off, virtual, size in segments:
                    if off <= place < off + size:
                        addresses[line] = hex(place - off + virtual)
    asked = sorted(set(addresses.values()))
    text = subprocess.run(
        ["addr2line", "-a", "-i", "-f", "-C", "-e", binary],
        input="\n".join(asked),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, str] = {}
    for block in re.split(r"^0x0*", text, flags=re.M)[1:]:
        lines = block.splitlines()
        frames = list(zip(lines[1::2], lines[2::2], strict=False))
        best = frames[0] if frames else ("?", "?")
        for function, place in frames:
            if "/crates/" in place and "/registry/" not in place:
                best = (function, place)
                break
        where = re.search(r"crates/(.*?)/src/(.*?)\.rs", best[1])
        name = NOISE.sub("", best[0]).split("::")[-1] or best[0]
        outer = f" ({where[1]}/{where[2]})" if where else ""
        found["0x" + lines[0]] = f"{name}{outer}"
    for line, address in addresses.items():
        names[line] = found.get(address, names[line])
    return names
