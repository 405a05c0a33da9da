"""The values of the matrix: every kind that a launch may get, with the facts that decide on it."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, Final

import numpy as np
from cuda.bindings.driver import CUdeviceptr

import cudadrv
from cudadrv.memory.array import AnyDeviceArray

from .facts import Bytes, Complex, Either, Memory, Null, Number, View, Wrong
from .foreign import DLPACK_TYPES, ByDlpack, ByInterface, Known, KnownInPart, library

try:
    import ml_dtypes

    HAS_ML_DTYPES = True
except ImportError:
    HAS_ML_DTYPES = False  # its values are left out

HALF_WAY: Final = 2.0**128 - 2.0**103
"""Between the largest float32 and infinity."""
TWICE_ROUNDED: Final = 2**60 + 2**36 + 1
"""Rounded to a float64 first, it is halfway between two float32."""
_SMALL: Final = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn",
                 "float8_e3m4")  # fmt: skip


@dataclass(frozen=True)
class Value:
    """A value, its name in reports, and its facts.

    Attributes:
        name: the name.
        value: what a launch gets.
        facts: what the oracle gets.
    """

    name: str
    value: Any
    facts: object


class _Seven(IntEnum):
    SEVEN = 7


class _Own(int):
    pass


class _OwnFloat(float):
    pass


class _Index:
    def __index__(self) -> int:
        return 7


class _Float:
    def __float__(self) -> float:
        return 0.1


class _Broken:
    def __index__(self) -> int:
        raise ZeroDivisionError

    __float__ = __index__


def fact(number: float) -> Fraction | float:
    """A real number as the oracle takes it."""
    is_plain = math.isfinite(number) and (number != 0 or math.copysign(1, number) > 0)
    return Fraction(number) if is_plain else float(number)


def numbers() -> Iterator[Value]:
    """Numbers of Python, ctypes, NumPy and ml_dtypes, at the edges of each type."""
    for flag in (False, True):
        for value in (flag, np.bool_(flag), np.array(flag), ctypes.c_bool(flag)):
            yield Value(f"{type(value).__name__} {flag}", value, Number("bool", Fraction(flag)))
    edges = {0, 2**53 + 1, TWICE_ROUNDED, 10**400, 448, 464, 465, 65504, 65519, 65520, 57344, 61440}
    for bits in (1, 7, 8, 15, 16, 31, 32, 63, 64):
        edges |= {2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1}
    for whole in sorted(edges):
        yield Value(
            f"int {whole:.6g}" if abs(whole) < 10**300 else "int 10**400",
            whole,
            Number("int", Fraction(whole)),
        )
    reals = (
        0.0, -0.0, 1.0, 1.5, -2.5, 0.1, 3.0, 464.0, 464.1, -465.0, 65519.9, 65520.0, 2.0**-24,
        2.0**-25, 2.0**-149, 2.0**-150, -1.5 * 2.0**-150, 5e-324, 61439.0, 61440.0, HALF_WAY,
        math.nextafter(HALF_WAY, 0), -HALF_WAY, 3.3961775292304957e38, 3.4e38, 1e39, 1e308,
        math.inf, -math.inf, math.nan, 2.0**-17, 2.0**-10 * 1.5, 1.0625, 1.1875, 1.00390625,
        1.01171875,
    )  # fmt: skip
    for real in reals:
        yield Value(f"float {real!r}", real, Number("float", fact(real)))
        for kind in (np.float16, np.float32, np.float64, np.longdouble):
            with np.errstate(over="ignore"):
                scalar = kind(real)
            of_half = scalar.tobytes() if kind is np.float16 else b""
            yield Value(
                f"{kind.__name__} {real!r}",
                scalar,
                Number(np.dtype(kind).name, fact(float(scalar)), of_half),
            )
    yield from _integers_of_numpy()
    yield from _others()
    yield from _of_ctypes()
    yield from _of_ml_dtypes()


def _integers_of_numpy() -> Iterator[Value]:
    for code in "bBhHiIlLqQ":
        kind = np.dtype(code).type
        info = np.iinfo(kind)
        for whole in (info.min, info.max, 1):
            for value in (kind(whole), np.array(whole, kind)):
                yield Value(
                    f"{code} {type(value).__name__} {whole}",
                    value,
                    Number(np.dtype(kind).name, Fraction(int(whole))),
                )


def _others() -> Iterator[Value]:
    exact = {"IntEnum": (_Seven.SEVEN, 7), "own int": (_Own(-5), -5), "index": (_Index(), 7)}
    for name, (value, whole) in exact.items():
        yield Value(name, value, Number("int", Fraction(whole)))
    real: dict[str, tuple[object, Fraction | float]] = {
        "own float": (_OwnFloat(0.1), 0.1), "object with __float__": (_Float(), 0.1),
        "Fraction": (Fraction(1, 3), Fraction(1, 3)), "Decimal": (Decimal("0.1"), Fraction(1, 10)),
        "large Fraction": (Fraction(10) ** 400, Fraction(10) ** 400),
        "large Decimal": (Decimal("1e400"), Fraction(10) ** 400),
        "small Decimal": (Decimal("1e-99999999"), Fraction(0)),
        "Decimal NaN": (Decimal("NaN"), math.nan), "Decimal inf": (Decimal("-Infinity"), -math.inf),
        "Fraction rounded twice": (Fraction(TWICE_ROUNDED), Fraction(TWICE_ROUNDED)),
        "array of a float": (np.array(0.1), 0.1), "array float32": (np.array(1.5, "f4"), 1.5),
        "object array": (np.array(Fraction(1, 3), object), Fraction(1, 3)),
    }  # fmt: skip
    for name, (given, number) in real.items():
        known = fact(number) if isinstance(number, float) else number
        is_float = isinstance(given, float) or "array" in name.split()[0]
        yield Value(name, given, Number("float" if is_float else "real", known))
    if np.finfo(np.longdouble).maxexp > 1024:
        large = np.longdouble("1e4000")
        yield Value("longdouble 1e4000", large, Number("longdouble", Fraction(10) ** 400))
        near = np.longdouble(TWICE_ROUNDED)
        yield Value("longdouble rounded twice", near, Number("longdouble", Fraction(TWICE_ROUNDED)))
    wrong: tuple[object, ...] = (
        "1", b"", "", [], (1,), {}, object(), NotImplemented, ..., int, _Broken(), [1.0], range(3),
        np.str_("1"), np.datetime64(5, "s"), np.timedelta64(5, "s"), np.array(5, "m8[s]"),
        np.ma.array(3.0, mask=True), np.ma.masked, np.array([1.5]), np.array([1], "i4"),
        np.array([1.5], "f2"), np.zeros(4, "f4"), np.array([1, 2]), np.array([None]), np.array("1"),
        (1).__add__, ctypes.c_char_p(b"ab"), np.array([True]), np.clongdouble(1 + 2j),
    )  # fmt: skip
    for number, value in enumerate(wrong):
        yield Value(f"wrong {number} {type(value).__name__}", value, Wrong())
    yield Value("complex", 1 + 2j, Complex(1, 2))
    yield Value("large complex", complex(1e39, -0.0), Complex(1e39, -0.0))
    yield Value("complex64", np.complex64(0.1 + 2j), Complex(float(np.float32(0.1)), 2, 8))
    yield Value("complex128", np.complex128(0.1 - 2j), Complex(0.1, -2))
    yield Value("array complex128", np.array([0.1 - 2j]), Complex(0.1, -2, is_array=True))


def _of_ctypes() -> Iterator[Value]:
    for kind, whole in (
        (ctypes.c_int8, -128), (ctypes.c_uint8, 255), (ctypes.c_int16, -3),
        (ctypes.c_uint16, 65535),
        (ctypes.c_int32, -(2**31)), (ctypes.c_uint32, 2**32 - 1), (ctypes.c_int64, -(2**63)),
        (ctypes.c_uint64, 2**64 - 1), (ctypes.c_void_p, 2**48),
    ):  # fmt: skip
        yield Value(kind.__name__, kind(whole), Number("int", Fraction(whole)))
    for real in (0.1, math.inf, math.nan):
        single = ctypes.c_float(real)
        yield Value(f"c_float {real}", single, Number("float", fact(single.value)))
        for wide in (ctypes.c_double, ctypes.c_longdouble):
            yield Value(f"{wide.__name__} {real}", wide(real), Number("float", fact(real)))
    yield Value("c_void_p(None)", ctypes.c_void_p(), Null())
    yield Value("None", None, Null())
    yield Value("py_object(3)", ctypes.py_object(3), Number("int", Fraction(3)))
    number = ctypes.c_int(3)
    wrong_ones: tuple[object, ...] = (
        ctypes.c_wchar("a"),
        ctypes.pointer(number),
        ctypes.byref(number),
        ctypes.py_object([]),
    )
    for wrong in wrong_ones:
        yield Value(f"ctypes {type(wrong).__name__}", wrong, Wrong())
    for size in (1, 2, 3, 4, 8, 12, 16, 128):
        data = bytes(range(1, size + 1))
        yield Value(f"bytes {size}", data, Bytes(data))
        if size not in (3, 128):
            yield from _structures(data)
    yield Value("c_char", ctypes.c_char(b"a"), Bytes(b"a"))


def _structures(data: bytes) -> Iterator[Value]:
    """Structures of some bytes, of ctypes and NumPy."""
    size = len(data)
    members = {"_fields_": [("x", ctypes.c_uint8 * size)]}
    # Any: classes that are made here.
    structure_class: Any = type("Structure", (ctypes.Structure,), members)
    union_class: Any = type("Union", (ctypes.Union,), members)
    structure, union = structure_class.from_buffer_copy(data), union_class.from_buffer_copy(data)
    dtype = np.dtype([("x", "u1", (size,))])
    record = np.frombuffer(data, dtype)
    values = {
        "Structure": structure, "Union": union, "Array": (ctypes.c_uint8 * size)(*data),
        "bytearray": bytearray(data), "memoryview": memoryview(data), "void": np.void(data),
        "record": record[0], "array of a record": record,
        "array () of a record": record.reshape(()), "bytes_": np.bytes_(data),
    }  # fmt: skip
    for name, value in values.items():
        is_array = name == "array of a record"
        yield Value(f"{name} {size}", value, Bytes(data, is_array))
    yield Value(f"array of two records {size}", np.repeat(record, 2), Wrong())
    yield from _swapped(data)
    if size == 8:
        objects = np.zeros(1, [("x", "O")])
        yield Value("record of an object", objects[0], Wrong())
        yield Value("masked record", np.ma.array(record, mask=True), Wrong())


def _of_ml_dtypes() -> Iterator[Value]:
    for name in _SMALL if HAS_ML_DTYPES else ():
        kind = getattr(ml_dtypes, name)
        for real in (1.5, -2.0, 0.5, 448.0, math.inf, math.nan):
            scalar = kind(real)
            held = float(scalar)
            for value in (scalar, np.array(scalar)):
                yield Value(
                    f"{name} {type(value).__name__} {real}",
                    value,
                    Number(name, fact(held), scalar.tobytes()),
                )
    wholes = (("int4", -8), ("uint4", 15), ("int2", 1), ("int4", 7))
    for name, whole in wholes if HAS_ML_DTYPES else ():
        value = getattr(ml_dtypes, name)(whole)
        yield Value(f"{name} {whole}", value, Number(name, Fraction(whole)))


def _swapped(data: bytes) -> Iterator[Value]:
    """Structures of two numbers of the other byte order, of some bytes."""
    part = {4: "u2", 8: "u4", 16: "u8"}.get(len(data))
    if part is None:
        return
    record = np.frombuffer(data, [("x", f">{part}"), ("y", f">{part}")])
    nested = np.frombuffer(data, [("z", record.dtype)])
    # Any: classes that are made here.
    number: Any = np.ctypeslib.as_ctypes_type(np.dtype(f">{part}"))
    fields = [("x", number), ("y", number)]
    structure: Any = type("Structure", (ctypes.BigEndianStructure,), {"_fields_": fields})
    inner: Any = type("Inner", (ctypes.Structure,), {"_fields_": [("z", structure)]})
    values = {
        "record": record[0],
        "array of a record": record,
        "record in a record": nested[0],
        "Structure": structure.from_buffer_copy(data),
        "Array": (number * 2).from_buffer_copy(data),
        "memoryview": np.frombuffer(data, f">{part}").data,
        "Structure in a Structure": inner.from_buffer_copy(data),
    }
    for name, value in values.items():
        yield Value(f"{name} {len(data)} of another byte order", value, Wrong())


LAYOUTS: Final[dict[str, Callable[[Any], Any]]] = {
    "dense": lambda a: a,
    "rows from 1": lambda a: a[1:],
    "[::2]": lambda a: a[::2],
    "[:, ::2]": lambda a: a[:, ::2],
    "[::-1]": lambda a: a[::-1],
    ".T": lambda a: a.T,
    "row of 1": lambda a: a[2:3].T,
    "[:1, ::2]": lambda a: a[:1, ::2],
    "column": lambda a: a[:, 1],
    "no rows": lambda a: a[::2][:0],
    "no columns": lambda a: a.T[:, :0],
    "one element": lambda a: a[1:2, 2:3],
    "one element [::2]": lambda a: a[3:4:2, 1:2:3],
    "new axis": lambda a: a[:, None],
    "16 bytes short": lambda a: a.reshape(32)[:31],
}
"""Views of an array of 4 by 8."""
# With strides that no view of a device array has.
ODD_STRIDES: Final = {
    "repeated": ((4, 8), (0, 4)), "repeated element": ((8,), (0,)),
    "repeated row": ((4, 8), (0, 1)), "Fortran": ((4, 8), (1, 4)),
    "overlapping": ((3, 4), (2, 1)), "explicit": ((4, 8), (8, 1)),
    "one of any stride": ((1, 8, 1), (-7, 1, 99)), "none of any stride": ((0, 8), (-3, 5)),
}  # fmt: skip
DTYPES: Final = ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "c8",
                 "c16", "S3", "V16", "f4,i4", ">f4", ">f4,>i4", "longdouble", "clongdouble",
                 "M8[s]", "m8[D]", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                 "float6_e2m3fn", "float4_e2m1fn", "int4", "uint2")  # fmt: skip
_TIMES: Final = ("M8[s]", "m8[D]")
_OTHER: Final = ("S3", "V16", "f4,i4")
_SWAPPED: Final = (">f4", ">f4,>i4")


def dtypes() -> dict[str, np.dtype[Any]]:
    """The dtypes of arrays, by the name that the oracle has for them."""
    found = {}
    for name in DTYPES:
        is_small = name in (*_SMALL, "float6_e2m3fn", "int4", "uint2")
        if is_small and not HAS_ML_DTYPES:
            continue
        dtype = np.dtype(getattr(ml_dtypes, name) if is_small else name)
        key = {
            **dict.fromkeys(_OTHER, "other"),
            **dict.fromkeys(_TIMES, "time"),
            **dict.fromkeys(_SWAPPED, "swapped"),
        }
        found[f"{key.get(name, dtype.name)}:{name}"] = dtype
    return found


class Arrays:
    """Arrays of each library over memory of one device.

    Attributes:
        stream: where the memory was allocated.
        device: the device.
        is_reachable: whether the kernels' device is the same.
    """

    def __init__(self, stream: cudadrv.Stream, *, is_reachable: bool = True) -> None:
        self.stream, self.device = stream, stream.context.ordinal
        self.is_reachable = is_reachable
        self._mark = "" if is_reachable else "elsewhere: "

    def base(self, dtype: np.dtype[Any]) -> tuple[AnyDeviceArray, np.ndarray[Any, Any]]:
        """An array of 4 by 8, and one of the host for its addresses."""
        return self.stream.empty((4, 8), dtype), np.empty((4, 8), dtype)

    def facts(
        self, name: str, array: AnyDeviceArray, host: Any, view: Any, **changed: Any
    ) -> Memory:
        """The facts of a view, by the same view of a host array."""
        address = array.ptr + view.ctypes.data - host.ctypes.data
        if view.size == 0:
            address = array.ptr
        return Memory(
            address,
            name.partition(":")[0],
            view.dtype.itemsize,
            view.shape,
            view.strides,
            is_reachable=self.is_reachable,
            **changed,
        )

    def own(self) -> Iterator[Value]:
        """Arrays and buffers of cudadrv."""
        for name, dtype in dtypes().items():
            array, host = self.base(dtype)
            facts = self.facts(name, array, host, host)
            yield Value(f"{self._mark}own {name}", array, facts)
        array, host = self.base(np.dtype("f4"))
        for layout, view in LAYOUTS.items():
            own, facts = view(array), self.facts("float32", array, host, view(host))
            if 0 in own.shape:
                facts = Memory(own.ptr, "float32", 4, own.shape, is_reachable=self.is_reachable)
            yield Value(f"{self._mark}own {layout}", own, facts)
        whole = Memory(array.ptr, "", 1, (array.nbytes,), is_reachable=self.is_reachable)
        yield Value(f"{self._mark}buffer", array.buffer, whole)
        yield Value(f"{self._mark}origin", array.T.origin, whole)
        other = self.stream.alloc(48)
        facts = Memory(other.ptr, "", 1, (48,), is_reachable=self.is_reachable)
        yield Value(f"{self._mark}own buffer", other, facts)
        closed = self.stream.empty(4, "f4")
        closed.close()
        yield Value(f"{self._mark}closed", closed, Wrong())
        array, host = self.base(np.dtype("f4"))
        frozen = self.facts("float32", array, host, host, is_read_only=True)
        imported = self.stream.import_array(ByInterface(frozen, "<f4", array))
        yield Value(f"{self._mark}imported read-only", imported, frozen)
        yield Value(
            f"{self._mark}buffer of read-only",
            imported.buffer,
            Memory(array.ptr, "", 1, (128,), is_read_only=True, is_reachable=self.is_reachable),
        )
        if self.is_reachable:
            yield Value("CUdeviceptr", CUdeviceptr(array.ptr), Memory(array.ptr, "", 1, (128,)))

    def foreign(self) -> Iterator[Value]:
        """Arrays of other libraries, in each layout and dtype, by each protocol."""
        for name, dtype in dtypes().items():
            array, host = self.base(dtype)
            for is_read_only in (False, True):
                facts = self.facts(name, array, host, host, is_read_only=is_read_only)
                mark = "read-only " if is_read_only else ""
                yield from self._by_each(f"{mark}{name}", facts, dtype, array, None)
        array, host = self.base(np.dtype("f4"))
        for layout, view in LAYOUTS.items():
            of_host = view(host)
            own = view(array) if 0 not in of_host.shape else None
            facts = self.facts("float32", array, host, of_host)
            yield from self._by_each(layout, facts, host.dtype, array, own)
        for layout, (shape, steps) in ODD_STRIDES.items():
            strides = tuple(4 * step for step in steps)
            facts = Memory(array.ptr, "float32", 4, shape, strides, is_reachable=self.is_reachable)
            yield from self._by_each(layout, facts, host.dtype, array, None)

    def _by_each(
        self, name: str, facts: Memory, dtype: np.dtype[Any], owner: AnyDeviceArray, own: Any
    ) -> Iterator[Value]:
        """One array by each way that it can be shared."""
        typestr = dtype.str
        ways: dict[str, Any] = {}
        if dtype.isbuiltin != 2:
            # The array interface cannot tell the types of ml_dtypes from raw bytes.
            fields = {"descr": dtype.descr} if dtype.names else {}
            ways["interface"] = ByInterface(facts, typestr, owner, **fields)
            ways["in part"] = KnownInPart(facts, typestr, owner, self.device, **fields)
        if facts.dtype in DLPACK_TYPES:
            if not facts.is_read_only:
                ways["DLPack 0"] = ByDlpack(facts, owner, self.device, is_versioned=False)
            ways["DLPack 1"] = ByDlpack(facts, owner, self.device, is_versioned=True)
        if own is not None and facts.dtype == "float32" and self.is_reachable:
            ways["exchange"] = library.kind(own, flags=int(facts.is_read_only))
        for way, value in ways.items():
            yield Value(f"{self._mark}{way} {name}", value, facts)
        known = Known(facts, dtype, _is_usual(facts), owner, self.device)
        yield Value(f"{self._mark}known {name}", known, replace(facts, tells_size=False))

    def elements_of_dlpack(self) -> Iterator[Value]:
        """Types of elements that NumPy has no dtype for, and a tensor that lies elsewhere."""
        array, host = self.base(np.dtype("f4"))
        facts = replace(self.facts("float32", array, host, host), strides=None)
        of_each = {
            "opaque": ((3, 32, 1, 2), replace(facts, dtype="unnamed")),
            "unknown": ((200, 32, 1, 2), replace(facts, dtype="unnamed")),
            "of 24 bits": ((2, 24, 1, 2), replace(facts, dtype="unnamed", itemsize=3)),
            "of 4 lanes": ((2, 32, 4, 2), replace(facts, itemsize=16, shape=(8,))),
            "of 2 whole lanes": ((0, 16, 2, 2), replace(facts, dtype="int16")),
            "of the host": ((2, 32, 1, 1), Wrong()),
            "of pinned memory": ((2, 32, 1, 3), Wrong()),
        }
        for name, (entries, expected) in of_each.items():
            shown = expected if isinstance(expected, Memory) else facts
            plain = replace(shown, dtype="float32")
            for is_versioned in (False, True):
                value = ByDlpack(plain, array, self.device, is_versioned=is_versioned)
                tensor = value.managed.tensor
                tensor.code, tensor.bits, tensor.lanes, tensor.device_type = entries
                yield Value(f"{self._mark}DLPack {int(is_versioned)} {name}", value, expected)

    def versions(self) -> Iterator[Value]:
        """The array interface in each version, with streams, masks, and wrong entries."""
        array, host = self.base(np.dtype("f4"))
        facts = self.facts("float32", array, host, host)
        plain = replace(facts, strides=None)
        with_stream = {"stream": int(self.stream.handle)}
        entries: list[dict[str, Any]] = [
            {"version": 0}, {"version": 1}, {"version": 2}, {"version": 3, "stream": None},
            {"stream": 1}, {"stream": 2}, with_stream, {"strides": None}, {"strides": (32, 4)},
            {"descr": [("", "<f4")]},
        ]  # fmt: skip
        for changed in entries:
            value = ByInterface(plain, "<f4", array, **changed)
            yield Value(f"interface with {changed}", value, plain)
        for kept in ("strides", "version"):
            value = ByInterface(plain, "<f4", array)
            del value.__cuda_array_interface__[kept]
            yield Value(f"interface without {kept}", value, plain)
        masked = replace(facts, is_masked=True)
        yield Value("masked interface", ByInterface(masked, "<f4", array), masked)
        wrong: list[dict[str, Any]] = [
            {"strides": (4,)}, {"strides": (32, 4, 4)}, {"strides": "ab"}, {"data": (-4, False)},
            {"data": (2**64, False)}, {"data": ("0", False)}, {"data": None}, {"stream": "a"},
            {"stream": -1}, {"shape": (4, "a"), "strides": (4, 4)},
        ]  # fmt: skip
        for changed in wrong:
            value = ByInterface(plain, "<f4", array, **changed)
            yield Value(f"interface with {changed}", value, Wrong())


def _is_usual(memory: Memory) -> bool:
    """What a library would answer; computed by NumPy."""
    if 0 in memory.shape:
        return True
    span = np.empty(4096, "u1")[2048:]
    view = np.lib.stride_tricks.as_strided(
        span[: memory.itemsize].view(f"V{memory.itemsize}"), memory.shape, memory.strides
    )
    return bool(view.flags.c_contiguous)


def views_of_memory(stream: cudadrv.Stream) -> Iterator[Value]:
    """Textures and surfaces, which a 64-bit integer takes, and a tensor map."""
    texture = cudadrv.texture.Texture(stream.zeros(64, "f4"))
    yield Value("texture", texture, View(texture.handle))
    surface = cudadrv.texture.Surface(
        cudadrv.texture.CudaArray(stream.context, (8, 8), "f4", surface=True)
    )
    yield Value("surface", surface, View(surface.handle))


def host_arrays(stream: cudadrv.Stream) -> Iterator[Value]:
    """Arrays of the host: pinned ones are memory of the device, ordinary ones are not."""
    pinned = cudadrv.pinned_empty((4, 8), "f4")
    for layout, view in LAYOUTS.items():
        part = view(pinned)
        if part.ndim == 0:
            continue
        address = part.ctypes.data
        facts = Memory(address, "float32", 4, part.shape, part.strides)
        yield Value(f"pinned {layout}", part, facts)
        ordinary = np.zeros((4, 8), "f4")
        if 0 not in part.shape:
            yield Value(f"ordinary {layout}", view(ordinary), Wrong())
    frozen = pinned[:]
    frozen.flags.writeable = False
    facts = Memory(pinned.ctypes.data, "float32", 4, (4, 8), is_read_only=True)
    yield Value("pinned read-only", frozen, facts)
    yield Value("in place read-only", stream.in_place(frozen), facts)
    yield Value(
        "in place", stream.in_place(pinned), Memory(pinned.ctypes.data, "float32", 4, (4, 8))
    )
    for dtype, number in (("f4", 1.5), ("i8", 7.0)):
        single = cudadrv.pinned_empty((), dtype)
        single[()] = number
        yield Value(
            f"pinned () {dtype}",
            single,
            Either(
                Memory(single.ctypes.data, single.dtype.name, single.itemsize, ()),
                Number(single.dtype.name, Fraction(number)),
            ),
        )
    yield Value("masked pinned", np.ma.array(pinned, mask=True), Wrong())
    for dtype in ("f8", "i4", "u1", "f2"):
        other = cudadrv.pinned_empty(8, dtype)
        yield Value(
            f"pinned {dtype}",
            other,
            Memory(other.ctypes.data, other.dtype.name, other.itemsize, (8,)),
        )
