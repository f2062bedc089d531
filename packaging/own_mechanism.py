"""Try what `inprofile new-mechanism` writes, the whole way: tested, built into a wheel, installed, run.

    python packaging/own_mechanism.py FOLDER

FOLDER is written from scratch. The marker's law is that of docs/guides/own_mechanisms.py: both have to give
the same figures.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """The command's standard output; it has to succeed."""
    print("+", *command, flush=True)
    return subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def environment(place: Path) -> Path:
    """A virtual environment that sees the packages of this one and the Inprofile of this checkout."""
    venv.create(place, symlinks=True)
    here = next(Path(p) for p in sys.path if p.endswith("site-packages"))
    there = next(place.glob("lib/python*/site-packages"))
    (there / "outer.pth").write_text(f"{ROOT / 'python'}\n{here}\n", encoding="utf-8")
    return place / "bin" / "python"


def built(python: Path, folder: Path, name: str, kind: str, target: str) -> None:
    """Write the crate, test it, and install its wheel."""
    inprofile = (python, "-m", "inprofile")
    run(*inprofile, "new-mechanism", name, "--kind", kind, "--crates", ROOT, cwd=folder)
    env = {**os.environ, "CARGO_TARGET_DIR": target}
    run("cargo", "test", "--quiet", cwd=folder / name, env=env)
    maturin = Path(sys.executable).parent / "maturin"
    wheels = folder / f"wheels-{name}"
    run(maturin, "build", "--quiet", "--release", "--out", wheels, cwd=folder / name, env=env)
    here = (sys.executable, "-m", "pip", "--python", python, "--quiet")
    run(*here, "install", "--no-deps", *wheels.glob("*.whl"), cwd=folder)
    names = {m["name"] for m in json.loads(run(*inprofile, "list", "--json", cwd=folder))["mechanisms"]}
    if name not in names:
        raise SystemExit(f"{name} is installed, and inprofile list does not have it")


def uninstall(python: Path, folder: Path, name: str) -> None:
    """The plain engine is back."""
    dashed = f"inprofile-{name.replace('_', '-')}"
    run(sys.executable, "-m", "pip", "--python", python, "--quiet", "uninstall", "--yes", dashed, cwd=folder)
    answer = subprocess.run(
        [python, "-m", "inprofile", "check", f"{name}/{name}.toml"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if answer.returncode != 2 or name not in answer.stderr:
        raise SystemExit(f"{name} is gone, and its experiment is not refused: {answer}")


def figures(python: Path, folder: Path, file: str, *options: str) -> dict[str, Any]:
    """The figures of `inprofile run`."""
    text = run(python, "-m", "inprofile", "run", file, "--seeds", "2", "--json", *options, cwd=folder)
    found: dict[str, Any] = json.loads(text)
    return found


def main() -> None:
    """Both kinds, one after the other."""
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target = os.environ.get("OWN_MECHANISM_TARGET", str(folder / "target"))
    python = environment(folder / "venv")

    built(python, folder, "nth_here", "marker", target)
    rust = figures(python, folder, "nth_here/nth_here.toml")
    sweep = ("sweep", "nth_here/nth_here.toml", "--axis", "flows.tcp.marker.n=5,50", "--seeds", "1")
    run(python, "-m", "inprofile", *sweep, "--out", "sweep", "--json", cwd=folder)
    uninstall(python, folder, "nth_here")
    text = (folder / "nth_here/nth_here.toml").read_text("utf-8").replace('"nth_here"', '"nth_out"')
    (folder / "python.toml").write_text(text, encoding="utf-8")
    classes = str(ROOT / "docs/guides/own_mechanisms.py")
    same = figures(python, folder, "python.toml", "--mechanism", classes)
    for key in ("metrics", "flows", "queues"):
        if rust[key] != same[key]:
            raise SystemExit(f"the marker in Rust and the one in Python differ in {key}")

    built(python, folder, "compare_all", "aqm", target)
    found = figures(python, folder, "compare_all/compare_all.toml")
    print("drops", found["metrics"]["drops"]["mean"])
    uninstall(python, folder, "compare_all")
    print("Both mechanisms: tested, built, installed, run, and gone again.")


if __name__ == "__main__":
    main()
