"""Bytes with a checksum ahead of them, so that damage is seen before anything is believed."""

from __future__ import annotations

import hashlib

_MAGIC = b"cudadrv cache 1\n"
_NBYTES_OF_SUM = 32
OVERHEAD = len(_MAGIC) + _NBYTES_OF_SUM


def seal(content: bytes) -> bytes:
    """The content behind a mark and the SHA-256 of mark and content."""
    return b"".join((_MAGIC, hashlib.sha256(_MAGIC + content).digest(), content))


def unseal(data: bytes) -> bytes | None:
    """The content, or None for bytes that `seal` did not give."""
    start = len(_MAGIC)
    if data[:start] != _MAGIC:
        return None
    content = data[OVERHEAD:]
    if data[start:OVERHEAD] != hashlib.sha256(_MAGIC + content).digest():
        return None
    return content
