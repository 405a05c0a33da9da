"""The registers of one thread as Python values, and the way there and back.

A row has them by their numbers: an integer's bits as an unsigned `int`, a float as a `float`, a
predicate as a `bool`. A NaN of float32 is the float64 NaN with its bits on top, a signalling one
stays one: so no bit is lost. Below the registers, by negative numbers, is where the thread sits.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ptx.emulate.model.geometry import Value

# Python numbers of several types, and NumPy's where Python has none.
Row: TypeAlias = dict[int, Any]
LANE, LOCAL, SHARED = -1, -2, -3
"""The thread's number in the chunk, and where its local and its block's shared memory begin."""

_F32 = np.dtype(np.float32)
_F64 = np.dtype(np.float64)
_PRED = np.dtype(np.bool_)
_UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_pack_float, _pack_word = struct.Struct("<f").pack, struct.Struct("<I").pack
_pack_double, _pack_long = struct.Struct("<d").pack, struct.Struct("<Q").pack
_float_of, _word_of = struct.Struct("<f").unpack, struct.Struct("<I").unpack
_double_of, _long_of = struct.Struct("<d").unpack, struct.Struct("<Q").unpack
_NAN_BITS = 0x7F80_0000


def float_of_word(bits: int) -> float:
    """The float32 of 32 bits."""
    if bits & _NAN_BITS == _NAN_BITS and bits & 0x7F_FFFF:
        wide = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7F_FFFF) << 29
        return double_of_long(wide)
    return float(_float_of(_pack_word(bits))[0])


def word_of_float(x: float) -> int:
    """The bits of a float32."""
    if x != x:
        wide = long_of_double(x)
        return (wide >> 63) << 31 | _NAN_BITS | wide >> 29 & 0x7F_FFFF
    return int(_word_of(_pack_float(x))[0])


def double_of_long(bits: int) -> float:
    """The float64 of 64 bits."""
    return float(_double_of(_pack_long(bits))[0])


def long_of_double(x: float) -> int:
    """The bits of a float64."""
    return int(_long_of(_pack_double(x))[0])


def is_held(dtype: np.dtype[Any]) -> bool:
    """Return whether a row can hold values of a type as Python numbers."""
    return dtype.kind != "c"


def column(value: Value, count: int) -> list[Any]:
    """A register's value for each of `count` threads."""
    dtype = value.dtype
    if dtype == _F32:
        bits = value.view(np.uint32)
        if value.ndim == 0:
            return [float_of_word(int(bits))] * count
        numbers: list[Any] = value.tolist()
        if (value != value).any():
            numbers = [
                float_of_word(b) if x != x else x
                for x, b in zip(numbers, bits.tolist(), strict=True)
            ]
        return numbers
    if dtype.kind in "iuf" and dtype != _F64:
        value = value.view(_UNSIGNED[dtype.itemsize])
    if value.ndim == 0:
        return [value.item()] * count
    listed: list[Any] = value.tolist()
    return listed


def _are_same(values: Sequence[Any], first: Any) -> bool:
    """Return whether all have the same bits; zeros, which have two signs, are not looked into."""
    return bool(first) and values.count(first) == len(values)


def value_of(values: Sequence[Any], dtype: np.dtype[Any]) -> Value:
    """A register's value for several threads; a scalar where all agree."""
    first = values[0]
    if dtype == _F32:
        if len(values) == 1 or _are_same(values, first):
            return np.uint32(word_of_float(first)).view(np.float32)
        array = np.array(values, dtype=np.float32)
        if (array != array).any():
            array = np.array([word_of_float(x) for x in values], np.uint32).view(np.float32)
        return array
    if dtype in (_F64, _PRED):
        if len(values) == 1 or _are_same(values, first):
            return dtype.type(first)
        return np.array(values, dtype=dtype)
    kind = _UNSIGNED[dtype.itemsize]
    if len(values) == 1 or values.count(first) == len(values):
        return kind(first).view(dtype)
    return np.array(values, dtype=kind).view(dtype)
