#!/usr/bin/env python3
"""Make a release of what is committed: packaging/release.py VERSION [--try] (`make release`).

In a worktree of its own it sets the version, cuts the change log, commits, builds everything into dist and
tries it: the wheel where there is no compiler, the sdist as pip builds it, the package's fields, the sums.
Then it tags the commit; pushing the tag and uploading dist is left to who publishes. With --try nothing is
tagged.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "target" / "release-tree"
DIST = ROOT / "dist"
TOOLS = ROOT / "target" / "tools"
PYTHON = ROOT / ".venv" / "bin" / "python"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def run(*command: str | Path, cwd: Path = TREE, **environment: str) -> str:
    """Run a command; what it prints. A failure ends the release with what the command said."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "CARGO_TARGET_DIR": str(TARGET), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def say(what: str) -> None:
    """A step."""
    print(f"\n== {what}", flush=True)


def edit(file: str, pattern: str, new: str) -> None:
    """Replace the one place in a file of the tree that the pattern describes."""
    path = TREE / file
    text, found = re.subn(pattern, new, path.read_text("utf-8"), count=1, flags=re.MULTILINE)
    if not found:
        sys.exit(f"{file}: nothing in it is {pattern}")
    path.write_text(text, "utf-8")


def number(version: str) -> tuple[int, ...]:
    """To compare versions by."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"{version!r} is no version: write three numbers, as in VERSION=0.2.0")
    return tuple(map(int, version.split(".")))


def cut(version: str) -> None:
    """The version where it is stated, and the change log's entries under it."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    now = tomllib.loads((TREE / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["version"]
    if number(version) < number(now):
        sys.exit(f"{version} is before {now}, which Cargo.toml has")
    log = (TREE / "CHANGELOG.md").read_text("utf-8")
    if re.search(r"^## \[Unreleased\]\s*(?=^## |\Z)", log, re.MULTILINE):
        sys.exit("CHANGELOG.md: nothing is under [Unreleased]")
    edit("CHANGELOG.md", r"^## \[Unreleased\]$", f"## [Unreleased]\n\n## [{version}] - {today}")
    edit("Cargo.toml", r'^version = ".*"$', f'version = "{version}"')
    edit(
        "CITATION.cff", r"^version: .*(\ndate-released: .*)?$", f"version: {version}\ndate-released: {today}"
    )
    run("cargo", "update", "--workspace", "--offline", "--quiet")
    run("git", "commit", "--quiet", "--all", "--message", f"Version {version}")


def build(version: str) -> None:
    """Wheel, sdist, Debian package, and what each is made of."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    say("Man page, wheel, sdist")
    # The command line is that of this tree; the engine in .venv only has to load.
    shutil.copy(next((ROOT / "python/inprofile").glob("_internal*.so")), TREE / "python/inprofile")
    page = TREE / "inprofile._internal.data/data/share/man/man1/inprofile.1"
    run(PYTHON, "packaging/man.py", page, PYTHONPATH=str(TREE / "python"))
    maturin = ROOT / ".venv" / "bin" / "maturin"
    run(maturin, "build", "--quiet", "--release", "--locked", "--out", DIST)
    run(maturin, "sdist", "--out", DIST)
    say("Debian package")
    deb = DIST / f"inprofiled_{version}-1_{run('dpkg', '--print-architecture').strip()}.deb"
    run("make", "deb", f"DEB={deb}", f"CARGO_DEB={TOOLS}/bin/cargo-deb", "BUILD=" + str(TARGET))
    say("Bills of materials (CycloneDX)")
    run(TOOLS / "bin/cargo-cyclonedx", "cyclonedx", "--quiet", "--format", "json", "--all")
    shutil.copy(TREE / "crates/router/inprofile-router.cdx.json", DIST / "inprofiled.cdx.json")
    shutil.copy(TREE / "crates/python/inprofile-python.cdx.json", DIST / "inprofile-engine.cdx.json")
    run(
        TOOLS / "sbom/bin/cyclonedx-py",
        *("requirements", "requirements.txt", "--pyproject", "pyproject.toml"),
        *("--output-reproducible", "--of", "JSON", "-o", DIST / "inprofile.cdx.json"),
    )
    files = sorted(path for path in DIST.iterdir() if path.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(sums), "utf-8")


def attempt(version: str) -> None:
    """Use what was built as somebody who got it would."""
    say("The wheel where there is no compiler and no Node")
    trial = ROOT / "target" / "release-trial"
    for kind in ("whl", "tar.gz"):
        [package] = DIST.glob(f"*.{kind}")
        if kind == "tar.gz":
            say("The sdist, built by pip")
        shutil.rmtree(trial, ignore_errors=True)
        run(PYTHON, "-m", "venv", trial, cwd=ROOT)
        install = ("-m", "pip", "--quiet", "--disable-pip-version-check", "install")
        run(trial / "bin/python", *install, "--require-hashes", "-r", ROOT / "requirements.txt", cwd=ROOT)
        run(trial / "bin/python", *install, "--no-deps", package, cwd=ROOT)
        bare = ("env", "-i", f"HOME={trial}", "LC_ALL=C.UTF-8", "PATH=/nowhere", str(trial / "bin/inprofile"))
        told = run(*bare, "--version", cwd=trial)
        if told != f"inprofile {version}\n":
            sys.exit(f"{package.name} says {told!r}")
        run(*bare, "new", "trial", cwd=trial)
        run(*bare, "run", "trial.toml", "--seeds", "2", cwd=trial)
        if not (trial / "share/man/man1/inprofile.1").is_file():
            sys.exit(f"{package.name} has no man page")
        shutil.rmtree(trial)
    say("Fields, bills, checksums")
    [deb] = DIST.glob("*.deb")
    if (fields := run("dpkg-deb", "--field", deb, "Version")).strip() != f"{version}-1":
        sys.exit(f"{deb.name} says it is {fields.strip()}")
    for bill in DIST.glob("*.cdx.json"):
        if len(json.loads(bill.read_text("utf-8"))["components"]) < 10:
            sys.exit(f"{bill.name} names hardly anything")
    print(run("sha256sum", "--check", "SHA256SUMS", cwd=DIST), end="")


def main() -> None:
    """See above."""
    words = [word for word in sys.argv[1:] if word]
    trying = "--try" in words
    [version] = [word for word in words if word != "--try"] or [""]
    number(version)
    if run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT):
        sys.exit("something is not committed: a release is made of what is")
    if run("git", "tag", "--list", f"v{version}", cwd=ROOT):
        sys.exit(f"there is a tag v{version} already")
    run("git", "worktree", "prune", cwd=ROOT)
    run("git", "worktree", "add", "--quiet", "--force", "--detach", TREE, cwd=ROOT)
    try:
        say(f"Version {version}")
        cut(version)
        build(version)
        attempt(version)
        commit = run("git", "rev-parse", "HEAD").strip()
        if not trying:
            run(
                "git", "tag", "--annotate", f"v{version}", "--message", f"Version {version}", commit, cwd=ROOT
            )
    finally:
        run("git", "worktree", "remove", "--force", TREE, cwd=ROOT)
    say(f"Version {version} is in dist")
    if trying:
        print("It was tried: nothing is tagged, and the tree is as it was.")
    else:
        print(f"To publish it: git merge --ff-only v{version}, git push origin HEAD v{version}, upload dist.")


if __name__ == "__main__":
    main()
