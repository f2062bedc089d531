"""The experiments of validation/ns2: files, and the grid of what varies between them.

python validation/grid.py           their names
python validation/grid.py NAME      the command that compares one with ns-2
"""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

from inprofile import Scenario, load
from inprofile.experiment.scenario import toml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "validation" / "ns2"
GRID = FOLDER / "grid.toml"


def changed() -> dict[str, tuple[Path, dict[str, object]]]:
    """Each experiment's file and the keys in which it differs from that, by name and in order of names."""
    grid = tomllib.loads(GRID.read_text("utf-8"))
    found: dict[str, tuple[Path, dict[str, object]]] = {
        name: (FOLDER / f"{entry['base']}.toml", {"title": entry["title"], **entry.get("set", {})})
        for name, entry in grid.items()
    }
    bases = {file.stem for file, _ in found.values()}
    alone: dict[str, tuple[Path, dict[str, object]]] = {
        file.stem: (file, {}) for file in FOLDER.glob("*.toml") if file.stem not in {*bases, GRID.stem}
    }
    return dict(sorted({**found, **alone}.items()))


def experiment(name: str) -> Scenario:
    """One of them, to run."""
    file, keys = changed()[name]
    return load(file).with_(keys)


def main(names: list[str]) -> int:
    """Print the names, or the commands."""
    grid = changed()
    unknown = [name for name in names if name not in grid]
    if unknown:
        sys.stderr.write(f"no experiment {', '.join(unknown)}: python validation/grid.py lists them\n")
        return 2
    for name in names or grid:
        file, keys = grid[name]
        words = [f"--set {shlex.quote(f'{key}={toml(value)}')}" for key, value in keys.items()]
        command = " ".join(["inprofile validate", str(file.relative_to(ROOT)), *words])
        sys.stdout.write(f"{command if names else name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
