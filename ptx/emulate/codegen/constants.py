"""Constants of generated code: NumPy scalars and types, each bound to one name."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.model.types import NUMPY, kind_of, unsigned, width_of
from ptx.isa.model import FloatImmediate


class Constants:
    """Names of typed scalars; the same scalar gets the same name."""

    def __init__(self, scope: FunctionScope) -> None:
        self._scope = scope
        self._known: dict[tuple[str, int | float | str], str] = {}

    def number(self, value: int | float, kind: str) -> str:
        """The name of a scalar of a kind; an integer is taken modulo its width."""
        key = (kind, repr(value))  # 0.0, -0.0 and 0 are equal, and not the same
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._scope.bind(_scalar(value, kind))
        return name

    def dtype(self, ptx_type: str) -> str:
        """The name of a PTX type's NumPy type."""
        key = ("dtype", ptx_type)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._scope.bind(NUMPY[kind_of(ptx_type)])
        return name

    def exact(self, operand: FloatImmediate, kind: str) -> str:
        """The name of a floating-point constant by its bits; "" where its width does not fit."""
        bits, width = operand.bits, operand.width // 8
        if width == 8 and width_of(kind) == 4:
            with np.errstate(all="ignore"):
                narrow = np.uint64(bits).view(np.float64).astype(np.float32)
            bits, width = int(narrow.view(np.uint32)), 4
        if width != width_of(kind):
            return ""
        return self._scope.bind(NUMPY[unsigned(kind)](bits).view(NUMPY[kind]))


def _scalar(value: int | float, kind: str) -> np.generic:
    if kind == "pred":
        return np.bool_(value)
    if kind[0] in "us":
        wrapped = int(value) & ((1 << 8 * width_of(kind)) - 1)
        return NUMPY[unsigned(kind)](wrapped).view(NUMPY[kind])
    return NUMPY[kind](value)
