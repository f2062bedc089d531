"""Frames as an animated GIF (GIF89a), of pictures in PNG: one palette of the colours that occur most, LZW.

What draws pictures here (vl-convert) has PNG alone, and no package that is installed writes GIF. Source:
CompuServe's GIF89a of 1990; PNG, third edition, §9.2 (filters).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["animated", "pixels"]

Bytes = NDArray[np.uint8]
_CLEAR, _END, _MOST = 256, 257, 4096


def pixels(png: bytes) -> Bytes:
    """Height × width × 3, red, green and blue, of a PNG with eight bits a channel and alpha.

    Alpha is left out. Raises ValueError for another kind of PNG.
    """
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    if (depth, kind) != (8, 6):
        raise ValueError("a PNG with other than eight bits a channel and alpha")
    at, packed = 8, []
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            packed.append(png[at + 8 : at + 8 + length])
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(b"".join(packed)), np.uint8).reshape(height, 1 + 4 * width)
    found = raw[:, 1:].reshape(height, width, 4).copy()
    for y, how in enumerate(raw[:, 0].tolist()):
        if how == 1:
            found[y] = np.cumsum(found[y], axis=0, dtype=np.uint8)
        elif how == 2 and y:
            found[y] += found[y - 1]
        elif how > 2:
            raise ValueError(f"a PNG with lines of filter {how}, which nothing here wrote before")
    return found[:, :, :3]


def animated(pictures: Iterable[Bytes], delay: float) -> bytes:
    """A GIF that goes round, of pictures of one size (`pixels`), each shown for `delay` seconds.

    Its 256 colours are those that occur most, at five bits a channel; the others are shown as the nearest.
    """
    frames = [_key(picture) for picture in pictures]
    height, width = frames[0].shape
    counts = sum(np.bincount(f.ravel(), minlength=1 << 15) for f in frames)
    table = np.argsort(-np.asarray(counts), kind="stable")[:256]
    index = _nearest(np.flatnonzero(counts), table)
    size = struct.pack("<HH", width, height)
    made = [b"GIF89a", size, b"\xf7\0\0", _colours(table).astype(np.uint8).tobytes()]
    made.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0")
    control = b"\x21\xf9\x04\0" + struct.pack("<H", max(2, round(100 * delay))) + b"\0\0"
    for frame in frames:
        made += [control, b"\x2c\0\0\0\0", size, b"\0", _compressed(index[frame].tobytes())]
    return b"".join([*made, b"\x3b"])


def _key(picture: Bytes) -> NDArray[np.int64]:
    five = picture.astype(np.int64) >> 3
    return (five[:, :, 0] << 10) | (five[:, :, 1] << 5) | five[:, :, 2]


def _colours(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    five = np.stack([keys >> 10, (keys >> 5) & 31, keys & 31], axis=1)
    return (five << 3) | (five >> 2)


def _nearest(there: NDArray[np.int64], table: NDArray[np.int64]) -> Bytes:
    """By key, the place in the table of the nearest colour."""
    far = ((_colours(there)[:, None, :] - _colours(table)[None, :, :]) ** 2).sum(axis=2)
    index = np.zeros(1 << 15, np.uint8)
    index[there] = far.argmin(axis=1)
    return index


def _compressed(data: bytes) -> bytes:
    """LZW with codes of 9 to 12 bits, in blocks of at most 255 bytes."""
    made = bytearray()
    codes: dict[int, int] = {}
    held, bits, size, following = _CLEAR, 9, 9, _END + 1
    now = data[0]
    for byte in data[1:]:
        key = now << 8 | byte
        known = codes.get(key)
        if known is not None:
            now = known
            continue
        held |= now << bits
        bits += size
        if following == _MOST:
            held |= _CLEAR << bits
            bits += size
            codes, size, following = {}, 9, _END + 1
        else:
            if following == 1 << size:
                size += 1
            codes[key] = following
            following += 1
        whole = bits // 8
        made += (held & ((1 << 8 * whole) - 1)).to_bytes(whole, "little")
        held >>= 8 * whole
        bits -= 8 * whole
        now = byte
    held |= now << bits
    bits += size
    # A reader has one code more than were written when it comes to the end.
    held |= _END << bits
    bits += size + (following == 1 << size)
    made += held.to_bytes(-(-bits // 8), "little")
    blocks = (made[i : i + 255] for i in range(0, len(made), 255))
    return b"\x08" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"
