"""Packs that somebody changed or made to do harm: refused with what is wrong, and nothing is written."""

from __future__ import annotations

import io
import json
import random
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inprofile.studies.pack import Changed, NoPack, Pack, archive, pack, unpack
from test_pack import crafted, edited, filled, outcomes, rewritten


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("work") / "paper")


@pytest.fixture
def file(plain: Path, tmp_path: Path) -> Path:
    pack(plain, tmp_path / "p.zip")
    return tmp_path / "p.zip"


def resealed(files: dict[str, bytes]) -> None:
    about = json.loads(files["pack.json"])
    about["results"][0]["seeds"] = [1]
    files["pack.json"] = json.dumps(about).encode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edited, "folder/notes.md is not as it was packed"),
        (resealed, "pack.json is not as it was written"),
        (lambda files: files.pop("folder/notes.md"), "folder/notes.md is missing"),
        (lambda files: files.update({"folder/more.py": b""}), "folder/more.py was added"),
    ],
)
def test_a_changed_pack_is_refused_with_what_changed(file: Path, change: Any, said: str) -> None:
    with pytest.raises(Changed, match=said):
        Pack(rewritten(file, change))


def test_no_bit_of_a_file_or_its_header_can_be_changed_nor_anything_be_put_between(
    file: Path, tmp_path: Path
) -> None:
    data = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        end, offsets = archive.start_dir, [info.header_offset for info in archive.infolist()]
    chance = random.Random(7)  # noqa: S311 - what is drawn is no secret
    changed = tmp_path / "changed.zip"
    for place in [
        *(o + i for o in offsets for i in (0, 4, 6, 8, 10, 20, 24, 31)),
        *chance.choices(range(end), k=60),
    ]:
        bit = 1 << chance.randrange(8)
        changed.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        with pytest.raises(NoPack):
            Pack(changed)
    changed.write_bytes(data + b"more")
    with pytest.raises(NoPack):
        Pack(changed)
    shutil.copy(file, changed)
    with zipfile.ZipFile(changed, "a") as archive:
        archive.comment = b"RED wins"
    with pytest.raises(Changed, match="something after the last of its files"):
        Pack(changed)


@pytest.mark.parametrize("code", ["/etc/passwd", "../../evil.py", "folder/notes.md"])
def test_code_from_elsewhere_is_never_run(file: Path, code: str) -> None:
    def named(files: dict[str, bytes]) -> None:
        about = json.loads(files["pack.json"])
        del about["sha256"]
        about["mechanisms"] = [{"name": "mine", "sha256": "0" * 64, "file": code}]
        files["pack.json"] = json.dumps({**about, "sha256": archive._seal(about)}).encode()

    with pytest.raises(NoPack, match="is not in it"):
        Pack(rewritten(file, named))


def test_a_report_that_names_another_place_is_not_run(tmp_path: Path) -> None:
    report = tmp_path / "paper" / "rfc7928"
    (report / "files").mkdir(parents=True)
    (report / "files" / "suite.toml").write_text("")
    data = {
        "suite": "../../evil",
        "title": "t",
        "version": "0",
        "seeds": 1,
        "quick": True,
        "tcp": {"id": "files"},
        "contestants": [],
        "scenarios": [],
    }
    (report / "results.json").write_text(json.dumps(data))
    pack(tmp_path / "paper", tmp_path / "p.zip")
    assert outcomes(tmp_path / "p.zip", tmp_path / "there") == {"rfc7928": "not run again"}
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about: about.update(results=[]), "it lists no result"),
        (lambda about: about["results"][0].pop("title"), r"results\[0\] has no title"),
        (lambda about: about["results"][0].pop("mechanisms"), r"results\[0\].mechanisms is no object"),
        (lambda about: about["results"][0].update(kind="run\nrun r: same bytes"), "kind is none of run"),
        (lambda about: about["results"][0].update(seeds=[1, "x"]), "seeds are no seeds"),
        (lambda about: about["results"].append(about["results"][0]), "a result is listed twice"),
        (lambda about: about.pop("versions"), "versions is no object"),
        (
            lambda about: about.update(mechanisms=[{"name": "\x1b[2J", "sha256": "0" * 64}]),
            "lower-case letters",
        ),
        (lambda about: about["files"]["folder/notes.md"].update(bytes=float("inf")), "is no number of bytes"),
        (lambda about: about["files"]["folder/notes.md"].update(bytes=1 << 40), "is not as it was packed"),
    ],
)
def test_a_list_that_is_none_is_refused(file: Path, change: Any, said: str) -> None:
    with pytest.raises(NoPack, match=said):
        Pack(crafted(file, change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about: about["results"].pop(), "s is a sweep that it does not list"),
        (lambda about: about["results"][0].update(digest="0" * 64), "the digest of r is"),
        (lambda about: about["results"][0].update(seeds=list(range(1, 101))), r"the seeds of r is \[1, 2\]"),
        (lambda about: about["results"][0].update(title="100 seeds"), "the title of r is"),
        (lambda about: about["results"][0].update(place="notes"), "notes is no result, and it lists one"),
    ],
)
def test_a_list_of_other_results_than_its_folder_has_is_refused(
    file: Path, tmp_path: Path, change: Any, said: str
) -> None:
    changed = crafted(file, change)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Changed, match=said):
        outcomes(changed, tmp_path / "there")
    with pytest.raises(Changed, match=said):
        unpack(Pack(changed), tmp_path / "there")
    assert sorted(tmp_path.rglob("*")) == before, "nothing was written"


def test_code_of_no_mechanism_that_is_listed_is_refused(file: Path) -> None:
    with pytest.raises(NoPack, match=r"mine\.pyc is the code of no mechanism that it lists"):
        Pack(crafted(file, edit=named("mechanisms/1/__pycache__/mine.pyc")))


def link(info: zipfile.ZipInfo) -> None:
    if info.filename.endswith("notes.md"):
        info.external_attr = (stat.S_IFLNK | 0o777) << 16


def deflated(info: zipfile.ZipInfo) -> None:
    info.compress_type = zipfile.ZIP_DEFLATED


def named(name: str) -> Callable[[dict[str, bytes]], None]:
    return lambda files: files.update({name: b"x"})


@pytest.mark.parametrize(
    ("change", "each", "said"),
    [
        (named("../evil"), None, "leads out of the folder"),
        (named("folder/../../evil"), None, "leads out of the folder"),
        (named("/etc/evil"), None, "leads out of the folder"),
        (named("folder/./x"), None, "leads out of the folder"),
        (named("folder/a\\..\\evil"), None, "a character that a name on another system may not have"),
        (named("folder/C:evil"), None, "a character that a name on another system may not have"),
        (named("elsewhere/x"), None, "leads out of the folder"),
        (named("folder/NOTES.md"), None, "have one name where capitals are not told apart"),
        (named("folder/notes.md/x"), None, "is a file, and a folder of others"),
        (named("folder/empty/"), None, "is no file"),
        (lambda files: None, link, "is a link"),
        (lambda files: files.update({"folder/zeros": bytes(1 << 20)}), deflated, "is compressed"),
    ],
)
def test_a_hostile_pack_is_refused_before_anything_is_written(
    file: Path, tmp_path: Path, change: Any, each: Any, said: str
) -> None:
    made = rewritten(file, change, each or (lambda info: None))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NoPack, match=said):
        Pack(made).unpack(tmp_path / "there")
    assert sorted(tmp_path.rglob("*")) == before


def test_files_that_overlap_in_the_archive_are_refused(tmp_path: Path) -> None:
    # One megabyte that a thousand entries of the directory name: what is known as an overlapping bomb.
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        made.writestr("pack.json", b"{}")
        made.writestr("folder/0", bytes(1 << 20))
        first = made.infolist()[1]
        for number in range(1, 1000):
            copy = zipfile.ZipInfo(f"folder/{number}")
            copy.header_offset, copy.CRC = first.header_offset, first.CRC
            copy.compress_size = copy.file_size = first.file_size
            made.filelist.append(copy)
    (tmp_path / "bomb.zip").write_bytes(data.getvalue())
    with pytest.raises(NoPack, match="more than it has itself"):
        Pack(tmp_path / "bomb.zip")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 nothing", b"x" * 1000])
def test_what_is_no_pack_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(NoPack, match="is no pack"):
        Pack(tmp_path / "x.zip")
