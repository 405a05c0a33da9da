"""The form of what is kept on disk: damage is seen before anything is believed."""

from __future__ import annotations

from ast import literal_eval
from hashlib import sha256
from typing import Final

_MAGIC: Final = b"cudadrv cache 1\n"
_NBYTES_OF_SUM: Final = 32
_OVERHEAD: Final = len(_MAGIC) + _NBYTES_OF_SUM

UNREADABLE: Final = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    SyntaxError,
    RecursionError,
    MemoryError,
)
"""What reading a value may raise that another version of this package wrote. MemoryError is the
parser's word for a literal that is nested too deeply."""


def seal(content: bytes) -> bytes:
    """The content behind a mark and the SHA-256 of mark and content."""
    return b"".join((_MAGIC, sha256(_MAGIC + content).digest(), content))


def unseal(data: bytes) -> bytes | None:
    """The content, or None for bytes that `seal` did not give."""
    start = len(_MAGIC)
    if data[:start] != _MAGIC:
        return None
    content = data[_OVERHEAD:]
    if data[start:_OVERHEAD] != sha256(_MAGIC + content).digest():
        return None
    return content


def unsealed_literal(data: bytes) -> object:
    """The Python literal that was sealed, None where there is none.

    Literals are read without loading JSON's module.
    """
    content = unseal(data)
    try:
        return literal_eval(content.decode()) if content else None
    except UNREADABLE:
        return None
