"""PTX types as NumPy types: registers are bits, and each instruction defines their type."""

from __future__ import annotations

import numpy as np

Scalar = type[np.generic]

NUMPY: dict[str, Scalar] = {
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "pred": np.bool_,
    # 16 bytes that are moved as they are and never calculated with.
    "u128": np.complex128,
}  # fmt: skip
_BYTES: dict[str, int] = {kind: np.dtype(scalar).itemsize for kind, scalar in NUMPY.items()}
_BITS: dict[str, str] = {
    "b8": "u8", "b16": "u16", "b32": "u32", "b64": "u64", "bf16": "u16", "f16x2": "u32",
    "bf16x2": "u32", "tf32": "u32", "f32x2": "u64", "u16x2": "u32", "s16x2": "u32",
    "u8x4": "u32", "s8x4": "u32", "e4m3": "u8", "e5m2": "u8", "e4m3x2": "u16", "e5m2x2": "u16",
    "b128": "u128", "s128": "u128", "texref": "u64", "samplerref": "u64", "surfref": "u64",
}  # fmt: skip


def kind_of(ptx_type: str) -> str:
    """The kind that holds a PTX type: u8…u128, s8…s64, f16, f32, f64 or pred.

    Bit types, packed types and formats that NumPy does not have are held in unsigned integers.

    Raises:
        KeyError: no register of this type can be held.
    """
    return ptx_type if ptx_type in NUMPY else _BITS[ptx_type]


def width_of(kind: str) -> int:
    """Bytes of one value of a kind."""
    return _BYTES[kind]


def unsigned(kind: str) -> str:
    """The unsigned kind of the same width."""
    return "pred" if kind == "pred" else f"u{8 * width_of(kind)}"


def signed(kind: str) -> str:
    """The signed kind of the same width."""
    return f"s{8 * width_of(kind)}"
