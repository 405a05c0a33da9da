"""Fatbins for tests."""

from __future__ import annotations

from ptx.isa.fatbin import ENTRY, HEADER, MAGIC


def fatbin(*entries: tuple[int, int, bytes]) -> bytes:
    """A fatbin of entries, each a kind (1 PTX, 2 a cubin), an architecture and a content."""
    parts = b""
    for kind, architecture, content in entries:
        padded = content.ljust(-(-len(content) // 8) * 8, b"\0")
        parts += (
            ENTRY.pack(
                kind, 0x101, ENTRY.size, len(padded), 0, 0, 0, 8, architecture, 0, 0, 0x11, 0, 0
            )
            + padded
        )
    return HEADER.pack(MAGIC, 1, HEADER.size, len(parts)) + parts
