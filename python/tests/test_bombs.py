"""Tables of a few kilobytes that would fill memory: refused by what their footers say, within bounds.

Each is read by a process of its own whose addresses are bounded, so that a failure ends the case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inprofile
from inprofile import ResultError
from inprofile.run import tables
from inprofile.run.storage import TABLES
from made import flow, result
from refusals import command, refused

RUN = result([flow(1, "tcp.0", 300e3), flow(2, "tcp.0", 310e3)], "A")
SWEEP = inprofile.parse(inprofile.STARTER).with_(
    {
        "duration": "2 s",
        "measure": {"from": "0.5 s", "to": "2 s"},
        "flows.assured.start": "uniform 0..0.1 s",
        "monitors": [],
    }
)


def equal(path: Path, rows: int, text: str = "x", groups: int = 1) -> None:
    """The file of a table again, with so many equal rows in each of its row groups."""
    schema = pq.read_schema(path)
    columns: list[pa.Array] = []
    for field in schema:
        if pa.types.is_string(field.type):
            only = pa.array([text], field.type)
            columns.append(pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), only))
        else:
            columns.append(pa.repeat(pa.scalar(0, field.type), rows))
    # Arrow writes texts that are a dictionary without spelling them out; the schema says they are texts.
    coded = pa.schema([pa.field(f.name, c.type) for f, c in zip(schema, columns, strict=True)])
    with pq.ParquetWriter(
        path, coded, compression="zstd", store_schema=False, write_statistics=False
    ) as writer:
        for _ in range(groups):
            writer.write_batch(pa.record_batch(columns, schema=coded))
        writer.add_key_value_metadata(schema.metadata or {})


def many_rows(folder: Path) -> None:
    equal(folder / "series.parquet", 2_000_000, groups=20)


def long_texts(folder: Path) -> None:
    equal(folder / "series.parquet", 1000, text="y" * 1_000_000, groups=20)


def every_table(folder: Path) -> None:
    """Each of them might be read alone."""
    for name in TABLES:
        path = folder / f"{name}.parquet"
        a_row = tables.in_memory(pq.read_schema(path), 8) // 8
        equal(path, int(0.9 * tables.SMALL) // a_row)


BOMBS = {bomb.__name__: bomb for bomb in (many_rows, long_texts, every_table)}
SAID = r"parquet: its [\d,]+ rows in [\d,]+ bytes(, with the tables before it,)? would take [\d.e+-]+ GB"


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused(tmp_path: Path, bomb: Callable[[Path], None]) -> None:
    RUN.write(tmp_path / "run")
    bomb(tmp_path / "run")
    assert sum(p.stat().st_size for p in (tmp_path / "run").iterdir()) < 4 << 20
    program = tmp_path / "inprofile_reads.py"
    program.write_text(f"import inprofile\ninprofile.read({str(tmp_path / 'run')!r})\n")
    ended = command(folder=tmp_path, program=[str(program)])
    assert ended.code == 1, ended
    assert re.search(f"ResultError: .*{SAID}.* run the experiment again", ended.err), ended.err
    # What stood before the limit was reached has been read.
    assert ended.peak < (200 << 20) + tables.SMALL, f"{ended.peak >> 20} MiB"


def test_explain_and_export_refuse_it(tmp_path: Path) -> None:
    RUN.write(tmp_path / "runs" / "a")
    long_texts(tmp_path / "runs" / "a")
    equal(tmp_path / "runs" / "a" / "flows.parquet", 1000, text="y" * 1_000_000, groups=20)
    refused(command("explain", "runs/a", "--flow", "0", folder=tmp_path), "flows.parquet", "GB of memory")
    ended = command("view", "runs", "--export", "page.html", folder=tmp_path)
    assert (ended.code, re.search(SAID, ended.out + ended.err) is not None) == (0, True), ended
    assert ended.peak < 200 << 20, f"{ended.peak >> 20} MiB"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sweep") / "r"
    inprofile.sweep(SWEEP, {"links.bottleneck.rate": ["1 Mbit/s", "2 Mbit/s"]}, place, seeds=2)
    return place


def test_the_parts_of_a_sweep_are_judged_together(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next((swept / "metrics").glob("part-*.parquet"))
    whole = inprofile.read_sweep(swept).table()
    again = first.with_name("part-999999.parquet")
    again.write_bytes(first.read_bytes())
    one = tables.in_memory(pq.read_schema(first), pq.ParquetFile(first).metadata.num_rows)
    monkeypatch.setattr(tables, "RATIO", 0)
    monkeypatch.setattr(tables, "SMALL", 2 * one - 1)
    try:
        with pytest.raises(ResultError, match=f"part-999999.{SAID}"):
            inprofile.read_sweep(swept).table()
    finally:
        again.unlink()
    assert inprofile.read_sweep(swept).table().equals(whole)


def test_no_more_than_the_machine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the file is."""
    RUN.write(tmp_path / "run")
    assert inprofile.read(tmp_path / "run").flows.num_rows == 2
    monkeypatch.setattr(tables, "physical", lambda: 100.0)
    with pytest.raises(ResultError, match="this machine has"):
        inprofile.read(tmp_path / "run")


def test_texts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Long, empty, missing ones, in other alphabets, in several groups of rows."""
    texts = [None, "", "Köln", "文" * 300, *(f"flow.{i}" for i in range(5000))] * 3
    table = pa.table({"flow": pa.array(texts), "seed": pa.array(range(len(texts)), pa.uint64())})
    path = tmp_path / "flows.parquet"
    pq.write_table(table, path, row_group_size=4000, compression="zstd")
    room = tables.Room()
    assert room.read(path).equals(table)
    assert room.read(path, ["seed"]).equals(table.select(["seed"]))


def test_columns_of_lists_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"flow": [[1, 2], [3]]}), tmp_path / "flows.parquet")
    with pytest.raises(tables.TooManyRows, match=r"flows\.parquet has columns of lists"):
        tables.Room().read(tmp_path / "flows.parquet")
