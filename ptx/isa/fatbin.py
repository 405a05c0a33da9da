"""Fatbins: the container that nvcc, `fatbinary` and nvFatbin write for several architectures.

A fatbin has a header of 16 bytes and then entries. Each entry has a header of its own, with its
kind, its architecture and how it is compressed.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ptx.errors import ImageFormatError

MAGIC: Final = b"\x50\xed\x55\xba"
HEADER: Final = struct.Struct("<4sHHQ")  # magic, version, bytes of this header, bytes after it
# Kind, version, header's bytes, content's bytes, compressed bytes, where the place of the options
# is, two fields of other uses, architecture, where the name is, its bytes, flags, a reserved field,
# bytes without compression.
ENTRY: Final = struct.Struct("<HHIQIIHHIIIQQQ")
_TEXT: Final = struct.Struct("<II")  # where it is, and its bytes
PTX, CUBIN, LTOIR = 1, 2, 8
"""Kinds of entries."""
_LZ4: Final = 1 << 13
_ZSTD: Final = 1 << 15
_SCRAMBLED: Final = 1 << 16
_SUFFIXES: Final = {1 << 20: "a", 1 << 21: "f"}
_MOST_BYTES: Final = 1 << 30  # of an entry, which a damaged header may overstate


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as it is stored.

    Attributes:
        kind: such as `PTX`.
        architecture: its number; `suffix`: "", "a" or "f".
        content: its bytes, perhaps compressed.
        nbytes: how many it has without compression.
        name, options: what its maker called it, and the options to compile it with.
    """

    kind: int
    architecture: int
    suffix: str
    flags: int
    content: bytes
    nbytes: int
    name: str
    options: str

    def data(self) -> bytes:
        """Return the bytes without compression.

        Raises:
            ImageFormatError: they are damaged, or the compression is unknown here.
        """
        if not self.flags & (_LZ4 | _ZSTD):
            return self.content
        if self.flags & _SCRAMBLED:
            raise ImageFormatError(
                "LTO-IR that is compressed in a fatbin cannot be read here"
                "\n  build the fatbin without compression"
            )
        if self.nbytes > _MOST_BYTES:
            raise ImageFormatError(f"the fatbin is damaged: an entry of {self.nbytes} bytes")
        unpack = _unpack_zstd if self.flags & _ZSTD else _unpack_lz4
        return unpack(self.content, self.nbytes)

    def text(self) -> str:
        """Return PTX."""
        return self.data().rstrip(b"\0").decode(errors="replace")


def fatbin_ptx(data: bytes, capability: tuple[int, int]) -> str:
    """Return the PTX of a fatbin that fits a device best.

    Raises:
        ImageFormatError: the fatbin is damaged, holds no such PTX, or its compression is unknown.
    """
    entries = list(stored_entries(data))
    fitting = [entry for entry in entries if entry.kind == PTX]
    if not fitting:
        kinds = ", ".join(f"machine code for sm_{entry.architecture}" for entry in entries)
        raise ImageFormatError(
            f"the fatbin holds no PTX, and the emulator executes PTX: it has {kinds or 'nothing'}\n"
            "  compile with nvcc -gencode arch=compute_80,code=compute_80, for example"
        )
    newest = 10 * capability[0] + capability[1]
    best = max(fitting, key=lambda entry: (entry.architecture <= newest, entry.architecture))
    return best.text()


def stored_entries(data: bytes) -> Iterator[StoredEntry]:
    """Yield the entries of a fatbin.

    Raises:
        ImageFormatError: it is none, or is damaged.
    """
    if len(data) < HEADER.size or data[:4] != MAGIC:
        raise ImageFormatError("the image is no fatbin: it has no such header")
    _, _, at, nbytes = HEADER.unpack_from(data)
    end = at + nbytes
    if end > len(data):
        raise ImageFormatError(f"the fatbin is cut off: {len(data)} bytes of {end}")
    while at + ENTRY.size <= end:
        (
            kind,
            _,
            header,
            size,
            packed,
            options_at,
            _,
            _,
            architecture,
            name_at,
            name_bytes,
            flags,
            _,
            full_nbytes,
        ) = ENTRY.unpack_from(data, at)
        start = at + header
        if header < ENTRY.size or start + size > end or packed > size:
            raise ImageFormatError(f"the fatbin is damaged: its entry at byte {at} does not fit")
        content = data[start : start + (packed or size)]
        head = data[at:start]
        suffix = next((text for flag, text in _SUFFIXES.items() if flags & flag), "")
        name = _text(head, name_at, name_bytes)
        options = ""
        if kind != CUBIN and options_at and options_at + _TEXT.size <= header:
            options = _text(head, *_TEXT.unpack_from(head, options_at))
        yield StoredEntry(kind, architecture, suffix, flags, content, full_nbytes, name, options)
        at = start + size


def _text(head: bytes, at: int, nbytes: int) -> str:
    return head[at : at + nbytes].rstrip(b"\0").decode(errors="replace")


def _unpack_lz4(data: bytes, nbytes: int) -> bytes:
    """Decompress a block: literals, then a copy of earlier bytes, again and again (LZ4 format)."""
    unpacked = bytearray()
    at = 0

    def length(first: int) -> int:
        nonlocal at
        total = first
        while first == 15:
            total += data[at]
            at += 1
            if data[at - 1] != 255:
                break
        return total

    try:
        while at < len(data):
            token = data[at]
            at += 1
            literals = length(token >> 4)
            unpacked += data[at : at + literals]
            at += literals
            if at >= len(data):
                break
            distance = data[at] | data[at + 1] << 8
            at += 2
            count = length(token & 15) + 4
            if not 0 < distance <= len(unpacked) or len(unpacked) + count > nbytes:
                raise IndexError
            for start in range(0, count, distance):  # a copy may overlap its own end
                source = len(unpacked) - distance
                unpacked += unpacked[source : source + min(distance, count - start)]
    except IndexError:
        raise ImageFormatError("the fatbin is damaged: its compressed data does not fit") from None
    if len(unpacked) != nbytes:
        raise ImageFormatError(f"the fatbin is damaged: {len(unpacked)} bytes, not {nbytes}")
    return bytes(unpacked)


def _unpack_zstd(data: bytes, nbytes: int) -> bytes:
    """Decompress a frame with Python 3.14's library, else with the system's."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        try:
            return zstd.decompress(data)
        except zstd.ZstdError as error:
            raise ImageFormatError(f"the fatbin is damaged: {error}") from None
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError:
        raise ImageFormatError(
            "the fatbin is compressed by Zstandard, which Python knows from 3.14 on\n"
            "  install libzstd, or compile with nvcc --compress-mode=none"
        ) from None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    room = ctypes.create_string_buffer(nbytes)
    written = library.ZSTD_decompress(room, nbytes, data, len(data))
    if written != nbytes:  # an error is a number near the greatest
        raise ImageFormatError("the fatbin is damaged: its compressed data does not fit")
    return room.raw[:nbytes]
