"""The families of operations; importing this package fills the table."""

from ptx.emulate.ops import (
    arithmetic,
    assertion,
    asynchronous,
    bits,
    control,
    matrix,
    memory,
    printf,
    texture,
    video,
    warp,
)

__all__ = [
    "arithmetic",
    "assertion",
    "asynchronous",
    "bits",
    "control",
    "matrix",
    "memory",
    "printf",
    "texture",
    "video",
    "warp",
]
