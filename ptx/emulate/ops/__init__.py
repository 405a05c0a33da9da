"""The families of operations; importing this package fills the table."""

from ptx.emulate.ops import (
    atomic,
    barrier,
    carry,
    compare,
    control,
    convert,
    floating,
    integer,
    logic,
    memory,
    move,
)

__all__ = [
    "atomic",
    "barrier",
    "carry",
    "compare",
    "control",
    "convert",
    "floating",
    "integer",
    "logic",
    "memory",
    "move",
]
