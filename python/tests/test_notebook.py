"""The example notebook, executed in a namespace that has no network but itself."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "guides" / "notebook.ipynb"
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=120, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")


@pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or shutil.which("unshare") is None,
    reason="needs nbclient and ipykernel (make docs installs them) and util-linux",
)
def test_the_notebook_runs_offline_and_shows_tables_and_charts(tmp_path: Path) -> None:
    (tmp_path / "execute.py").write_text(EXECUTE)
    made = tmp_path / "made.ipynb"
    # A kernel is spoken to over the loopback interface; there is no other.
    inside = 'ip link set lo up && exec "$0" "$@"'
    line = [sys.executable, str(tmp_path / "execute.py"), str(NOTEBOOK), str(made)]
    done = subprocess.run(
        [str(shutil.which("unshare")), "-rn", "sh", "-c", inside, *line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(made.read_text("utf-8"))["cells"]
    outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    shown = [out["data"] for cell in outputs for out in cell]
    assert len(shown) == len(outputs) == 5
    assert all("<table" in "".join(data["text/html"]) for data in shown[:3])
    assert "<svg" in "".join(shown[3]["image/svg+xml"])
    assert not any(word in json.dumps(shown) for word in ("<script", "cdn."))
