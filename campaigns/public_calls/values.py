"""Values by annotation, and values that no annotation allows."""

from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import enum
import os
import random
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from cudadrv import Stream

from .surface import members, parameters_of
from .world import SOURCE, OursError, World

_WHOLE: Final = (
    0, 1, 2, 3, 7, 8, 32, 100, -1, -(2**31), 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64,
    2**64 - 1, -(2**63), 10**30,
)  # fmt: skip
_REAL: Final = (0.0, -0.0, 1.0, 1.5, -2.0, 1e-320, 1e308, float("nan"), float("inf"), -float("inf"))
# NVRTC 13.5 overflows its stack with 2,500 parentheses in a name expression.
_TEXT: Final = (
    "", "x", "put", "table", SOURCE, "int x;", "sm_90", "compute_75", "a\0b", "\ud800", "é", "none",
    "cuMemAllocAsync", "c++17", "a b", "[" * 50_000, "{" * 50_000, "(" * 1000, "-I", "--x", "{}",
    "x" * 5000, ".version 7.5\n.target sm_75",
)  # fmt: skip
DTYPES: Final = (
    np.float32, np.dtype("i4"), "f8", "u1", "i2", np.float16, np.complex64, "M8[s]", "S3", "S0",
    "O", ">f4", [("a", "i4"), ("b", "f8")], np.dtype([("o", "O")]), bool, int, "U", "V7", None,
)  # fmt: skip
_PLAIN: Final[tuple[object, ...]] = (
    None, object(), b"", b"ab", bytearray(3), (), [], {}, {"a": 1}, set(), range(3), 1j,
    Exception("x"), iter(()), ..., True, slice(1, 2), ctypes.c_int(3), (1,) * 50,
)  # fmt: skip
_DEEP: Final = 5000


def arrays() -> list[object]:
    """What NumPy makes an array of, and what it does not."""
    read_only = np.arange(6, dtype=np.int32)
    read_only.flags.writeable = False
    unaligned = np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float64)
    return [
        np.zeros((4, 8), np.float32), np.arange(6, dtype=np.int32), np.zeros((0, 3), np.int16),
        np.array(1.5), np.float32(2), np.int64(3), read_only, unaligned,
        np.zeros((8, 8))[::2, ::-3],
        np.zeros((3, 4), order="F"), np.zeros(3, [("a", "i4"), ("b", "f8")]), np.array([1, None]),
        np.ma.masked_array([1.0, 2.0], [True, False]), np.ma.masked, np.zeros(4, "M8[s]"),
        np.zeros(2, "S0"), np.broadcast_to(np.float32(1), (4, 8)), np.zeros(3, ">f4"),
        np.asmatrix(np.eye(2)), np.ones(100, np.uint8), np.recarray(2, [("a", "i4")]), [1, 2, 3],
        [[1.0, 2.0], [3.0, 4.0]], [], (), 5, 2.5, [[1], [2, 3]], "text", b"bytes", None,
        np.zeros((1,) * 32), np.zeros(8, np.complex64),
    ]  # fmt: skip


class Foreign:
    """An object with what other libraries' streams and arrays have, right or wrong."""

    def __init__(self, answer: object, interface: object = None) -> None:
        self._answer = answer
        if interface is not None:
            self.__cuda_array_interface__ = interface

    def __cuda_stream__(self) -> object:
        return self._answer


def _foreign() -> list[object]:
    good = {"shape": (2,), "typestr": "<f4", "data": (0, False), "version": 3}
    return [
        Foreign((0, 1)), Foreign((0, 2)), Foreign(None), Foreign((0, "x")), Foreign((1, 0)),
        Foreign((0, -5)), Foreign((0, 2**70)), Foreign((0, 0), good),
        Foreign((0, 0), {**good, "typestr": "?x"}), Foreign((0, 0), {**good, "shape": None}),
        Foreign((0, 0), {"version": 3}), Foreign((0, 0), {**good, "data": (2**70, 0)}),
        Foreign((0, 0), {**good, "strides": (1, 2, 3)}), Foreign((0, 0), {**good, "data": "x"}),
        Foreign((0, 0), {**good, "stream": -7}), Foreign((0, 0), {**good, "stream": 2**80}),
    ]  # fmt: skip


class Hostile:
    """An object whose conversions raise the fuzzer's own error."""

    def _reject(self, *_: object) -> NoReturn:
        raise OursError("the fuzzer's own")

    __index__ = __int__ = __float__ = __bool__ = __len__ = __iter__ = __fspath__ = _reject
    __array__ = __call__ = __getitem__ = __cuda_stream__ = __lt__ = __str__ = _reject


class Liar:
    """An object whose conversions give what they must not."""

    def __index__(self) -> int:
        return "a lie"  # type: ignore[return-value]  # what is tried

    def __float__(self) -> float:
        return "a lie"  # type: ignore[return-value]  # what is tried

    def __iter__(self) -> Iterator[object]:
        return iter((1, self, "a lie"))

    def __fspath__(self) -> str:
        return 5  # type: ignore[return-value]  # what is tried

    def __len__(self) -> int:
        return -1

    def __array__(self, *_: object, **__: object) -> object:
        return "a lie"


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


class Values:
    """A source of values: one stream of chances, one world."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self._pools: dict[str, tuple[object, ...]] = {
            "whole": _WHOLE,
            "real": _REAL,
            "text": _TEXT,
            "plain": _PLAIN,
            "hostile": (Hostile(), Liar(), _nested(_DEEP), [Hostile()], (Liar(),), {1: Liar()}),
        }

    def any(self) -> object:
        """Any value at all."""
        pick = self._chance.choice
        kinds = ("whole", "real", "text", "plain", "array", "world", "world", "foreign", "hostile")
        kind = pick(kinds)
        if kind == "world":
            return pick(pick(list(self._world.objects.values())))
        if kind in ("array", "foreign"):
            return pick(arrays() if kind == "array" else _foreign())
        return pick(self._pools[kind])

    def wrong_for(self, annotation: object) -> object:
        """Any value, or one that the annotation allows but for one of its elements."""
        value = self.of(annotation)
        if self._chance.random() < 0.5 and isinstance(value, (list, tuple, dict)) and value:
            place = self._chance.randrange(len(value))
            if isinstance(value, dict):
                return {**value, list(value)[place]: self.any()}
            changed = [*value[:place], self.any(), *value[place + 1 :]]
            return changed if isinstance(value, list) else tuple(changed)
        return self.any()

    def of(self, annotation: object, depth: int = 0) -> object:
        """A value that an annotation allows."""
        chosen = self._chance.choice(members(annotation))
        if chosen is None or chosen is type(None):
            return None
        origin = typing.get_origin(chosen)
        if origin is typing.Literal:
            return self._chance.choice(typing.get_args(chosen))
        if isinstance(origin, type) or origin is collections.abc.Callable:
            return self._generic(origin, typing.get_args(chosen), depth)
        if isinstance(chosen, type) and chosen is not object:
            return self._instance(chosen, depth)
        return self.any()

    def _instance(self, cls: type, depth: int) -> object:
        pick = self._chance.choice
        if issubclass(cls, enum.Enum):
            return pick(list(cls))
        simple: dict[type, tuple[object, ...]] = {
            bool: (False, True),
            str: _TEXT,
            float: (*_REAL, *_WHOLE[:4]),
            typing.SupportsIndex: (*_WHOLE[:8], -1, np.int64(3), np.uint8(4), True, 2**70),
            collections.abc.Hashable: (*_WHOLE[:8], *_TEXT[:4], (1, 2), None),
            slice: (slice(0, 1), slice(-1, None), slice(None, None, 2), slice(5, 2)),
            range: (range(0), range(5), range(2, 10**6)),
        }
        if cls in simple:
            return pick(simple[cls])
        if cls is int:
            return pick(_WHOLE) if self._chance.random() < 0.5 else pick(_WHOLE[:8])
        if cls in (bytes, bytearray, memoryview):
            data = pick((b"", b"abc", b"\x7fELF", SOURCE.encode(), b"\0" * 64))
            return {bytes: bytes, bytearray: bytearray, memoryview: memoryview}[cls](data)
        if cls is np.ndarray:
            return pick([each for each in arrays() if isinstance(each, np.ndarray)])
        if cls in (os.PathLike, Path):
            return self._world.folder / pick(("a", "b", "none/c", "é", "x" * 300, "a\0b"))
        if cls.__name__ == "CudaStream":
            return pick(_foreign())
        if cls.__name__ == "StreamName":
            return pick(self._world.of(Stream))
        return pick(self._world.of(cls) or [self._made(cls, depth)])

    def _made(self, cls: type, depth: int) -> object:
        """A value of the library's own; anything, where it refuses or has no such constructor."""
        if not dataclasses.is_dataclass(cls) or depth > 2:
            return self.any()
        make: Callable[..., object] = cls
        taken = parameters_of(vars(cls)["__init__"])[1:]
        try:
            return make(**{each.name: self.of(each.annotation, depth + 1) for each in taken})
        except Exception:
            return self.any()

    def _generic(self, origin: Any, args: tuple[object, ...], depth: int) -> object:
        if origin is collections.abc.Callable:
            return self._chance.choice(self._functions())
        if origin in (type, np.dtype):
            return self._chance.choice(DTYPES[:2])
        count = self._chance.choice((0, 1, 1, 2))
        if origin is tuple and args[-1] is not ...:
            return tuple(self.of(each, depth + 1) for each in args)
        if issubclass(origin, collections.abc.Mapping):
            pairs = [
                (self.of(args[0], depth + 1), self.of(args[1], depth + 1)) for _ in range(count)
            ]
            return {key: value for key, value in pairs if _has_hash(key)}
        if origin.__module__ in ("collections.abc", "builtins"):
            several = [self.of(args[0], depth + 1) for _ in range(count)]
            return tuple(several) if origin is tuple else several
        return self._instance(origin, depth)

    def _functions(self) -> list[Callable[..., object]]:
        def raises(*_: object) -> object:
            raise OursError("the fuzzer's own")

        return [lambda *_: None, lambda *_: 5, lambda *_: "int x;", lambda *_: self.any(), raises]


def _has_hash(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
