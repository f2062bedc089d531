"""Animated GIFs, read back by a decoder of LZW that is written apart from the encoder."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from numpy.typing import NDArray

from inprofile.view.film import animated, pixels


def expanded(data: bytes, at: int) -> tuple[list[int], int]:
    """The pixels of one picture, and where its blocks end (GIF89a, appendix F)."""
    assert data[at] == 8
    at += 1
    packed = b""
    while data[at]:
        packed += data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
    bits, place, size = int.from_bytes(packed, "little"), 0, 9
    table: list[tuple[int, ...]] = []
    found: list[int] = []
    before: tuple[int, ...] = ()
    while True:
        code = bits >> place & ((1 << size) - 1)
        place += size
        if code == 257:
            return found, at + 1
        if code == 256:
            table, size, before = [(i,) for i in range(256)] + [(), ()], 9, ()
            continue
        now = table[code] if code < len(table) else (*before, before[0])
        if before and len(table) < 4096:
            table.append((*before, now[0]))
        if len(table) == 1 << size and size < 12:
            size += 1
        found += now
        before = now


def read(data: bytes) -> list[NDArray[np.uint8]]:
    width, height = struct.unpack("<HH", data[6:10])
    palette = np.frombuffer(data[13 : 13 + 768], np.uint8).reshape(256, 3)
    at = 13 + 768 + 19
    pictures = []
    while data[at] != 0x3B:
        assert data[at : at + 4] == b"\x21\xf9\x04\0"
        at += 8
        assert data[at] == 0x2C
        index, at = expanded(data, at + 10)
        pictures.append(palette[np.array(index).reshape(height, width)])
    return pictures


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (60, 130)])
@pytest.mark.parametrize("colours", [1, 2, 200])
def test_what_is_written_is_read_back(shape: tuple[int, int], colours: int) -> None:
    chance = np.random.default_rng(colours)
    # At five bits a channel, as the palette has them.
    five = chance.integers(0, 32, (colours, 3))
    table = ((five << 3) | (five >> 2)).astype(np.uint8)
    pictures = [table[chance.integers(0, colours, shape)] for _ in range(3)]
    found = read(animated(pictures, 0.05))
    assert len(found) == 3
    for picture, again in zip(pictures, found, strict=True):
        assert (picture == again).all()


def test_colours_beyond_the_palette_are_shown_as_the_nearest() -> None:
    steps = (8 * np.arange(20)).astype(np.uint8)
    picture = np.stack(np.broadcast_arrays(steps[:, None], steps[None, :], np.uint8(0)), axis=2)
    (again,) = read(animated([picture], 0.05))
    there = np.unique(again.reshape(-1, 3), axis=0).astype(int)
    assert len(there) == 256, "of 400"
    far = ((picture.reshape(-1, 1, 3).astype(int) - there) ** 2).sum(axis=2)
    shown = ((picture.astype(int) - again) ** 2).sum(axis=2)
    assert (np.sqrt(shown.ravel()) <= np.sqrt(far.min(axis=1)) + 9).all(), (
        "but for the bits that are not kept"
    )


def png(lines: bytes, width: int, height: int, depth: int = 8) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, depth, 6, 0, 0, 0)
    body = b"IDAT" + zlib.compress(lines)
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(c) - 4) + c + b"crc." for c in (head, body))


def test_pictures_are_read_with_the_filters_that_are_written() -> None:
    plain, left, above = (
        b"\0" + bytes(range(8)),
        b"\1" + bytes([5, 6, 7, 8, 1, 1, 1, 1]),
        b"\2" + bytes([1] * 8),
    )
    found = pixels(png(plain + left + above, 2, 3))
    assert found.tolist() == [[[0, 1, 2], [4, 5, 6]], [[5, 6, 7], [6, 7, 8]], [[6, 7, 8], [7, 8, 9]]]
    with pytest.raises(ValueError, match="filter 4"):
        pixels(png(b"\4" + bytes(8), 2, 1))
    with pytest.raises(ValueError, match="eight bits"):
        pixels(png(b"\0" + bytes(16), 2, 1, 16))
