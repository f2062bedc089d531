"""Commands in processes of their own, each forked from one that has loaded what they need.

What a process loads when it starts anew, and how fast, is tested where that is the question.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 120
"""A bound on time that only what has no end passes, also on a busy machine."""
LOADED = ["pyarrow.parquet", "pydantic.type_adapter", "rich.table", "scipy.special"]
LOADED += [f"inprofile.{one}" for one in ("experiment.topology", "metrics.summary", "run.results")]
LOADED += [f"inprofile.cli.{command}" for command in ("check", "explain", "pack", "reference", "run")]

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(LOADED)


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `inprofile` with these arguments on a screen of 100 columns; its exit code, output and errors."""
    with tempfile.TemporaryDirectory() as place:
        files = [str(Path(place) / name) for name in ("out", "err")]
        process = _FORKS.Process(target=_run, args=(arguments, cwd, *files))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(arguments, SECONDS)
        texts = [Path(file).read_text("utf-8") for file in files]
        return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


def _run(arguments: tuple[str, ...], cwd: Path, out: str, err: str) -> None:
    from inprofile.cli import main

    os.chdir(cwd)
    os.environ["COLUMNS"] = "100"
    for number, file in ((1, out), (2, err)):
        with Path(file).open("wb") as there:
            os.dup2(there.fileno(), number)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(encoding="utf-8")
    sys.argv = ["inprofile", *arguments]
    main()
