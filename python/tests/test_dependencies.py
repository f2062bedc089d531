"""The locked packages of Python and of the page: pinned with hashes, from their index, known licences."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINS = sorted(ROOT.glob("requirements*.txt"))
#: Licences that may be had beside Apache-2.0 without a condition on code of ours.
ALLOWED = re.compile(r"(0BSD|Apache|BSD|CC0|ISC|MIT|MPL|Mozilla|PSF|Zlib)")


def pins(text: str) -> list[str]:
    """The entries, each one line, without those of the file that it is beside (`-r`)."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if not line.startswith(("#", "-r "))]
    return [" ".join(line.split()) for line in lines]


def unfit(pin: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9._-]+==[^ ]+( ;[^#]*?)?( --hash=sha256:[0-9a-f]{64})+", pin) is None


@pytest.mark.parametrize("file", PINS, ids=lambda file: file.name)
def test_every_package_is_pinned_with_hashes_and_from_the_index(file: Path) -> None:
    found = pins(file.read_text("utf-8"))
    assert len(found) > 1
    assert [pin for pin in found if unfit(pin)] == []
    assert unfit("a>=1") and unfit("a==1") and unfit("a @ https://example.org/a.whl")  # noqa: PT018


def test_licences_are_known_ones() -> None:
    names = [pin.partition("==")[0] for pin in pins((ROOT / "requirements.txt").read_text("utf-8"))]
    for name in names:
        about = importlib.metadata.metadata(name)
        said = [about.get("License-Expression") or "", (about.get("License") or "")[:80]]
        said += [c for c in about.get_all("Classifier") or [] if c.startswith("License")]
        assert any(ALLOWED.search(text) for text in said), f"{name}: {said}"


def test_the_pages_packages_are_locked_and_from_the_registry() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text("utf-8"))
    found = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(found) > 10
    for name, entry in found.items():
        assert entry["integrity"].startswith("sha512-"), name
        assert entry.get("resolved", "https://registry.npmjs.org/").startswith(
            "https://registry.npmjs.org/"
        ), name
        assert ALLOWED.search(entry["license"]), f"{name}: {entry['license']}"
