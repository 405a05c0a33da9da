"""The mark of PTX that an emulated driver loads in place of a cubin.

A driver loads the cubins of every minor version of its CUDA, and rejects the PTX of newer ones. An
emulated device executes PTX, so its driver has to distinguish the two. The driver of a GPU receives
no text with the mark.
"""

from __future__ import annotations

from typing import Final

# At the end, so that lines keep their numbers and the text begins as any PTX.
CUBIN_MARK: Final = "\n// cudadrv: in place of a cubin\n"


def is_marked(data: bytes) -> bool:
    """Return whether an image has the mark; zeros may follow."""
    return data.rstrip(b"\0").endswith(CUBIN_MARK.encode())


def marked(text: str) -> str:
    """Return PTX with the mark."""
    return text if text.endswith(CUBIN_MARK) else text + CUBIN_MARK
