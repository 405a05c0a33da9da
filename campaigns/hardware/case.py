"""`Case`: a kernel of many forms, or of one random program, with its buffers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .forms import Form
from .forms.form import OPERANDS, bits

Bits: TypeAlias = NDArray[Any]
THREADS: Final = 256
_SEED: Final = 977
_PLACE: Final = re.compile(r"\$(s64|s0|d\d|p2|[a-fmsp])")
_FORMAT: Final = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "f64": (11, 52),
                  "e4m3": (4, 3), "e5m2": (5, 2)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of the kernel, whose address is a parameter.

    Attributes:
        kind: of its contents: "raw16", "raw32" and "raw64" for numbers of all kinds, the name of a
            format for elements of a matrix (with " b" and " c" for others than the first), "zero",
            "map" with extents and a box for a tensor map over the first buffer.
        nbytes: its size.
        dtype: the type of a result, such as "f4" or "u8"; "" of a buffer that is not compared.
    """

    kind: str
    nbytes: int
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel, `K`, of one block.

    Attributes:
        name: unique in its set.
        ptx: its module.
        buffers: its parameters, each an address.
        forms: the name of the form of each result; empty of a program.
        threads: of its block.
        shared_bytes: of dynamic shared memory.
        seed: of its inputs.
    """

    name: str
    ptx: str
    buffers: tuple[Buffer, ...]
    forms: tuple[str, ...] = ()
    threads: int = THREADS
    shared_bytes: int = 0
    seed: int = _SEED

    @property
    def inputs(self) -> tuple[Bits, ...]:
        """The first contents of each buffer, as bytes."""
        return tuple(contents(buffer.kind, buffer.nbytes, self.seed) for buffer in self.buffers)

    @property
    def results(self) -> tuple[int, ...]:
        """The numbers of the buffers that are compared."""
        return tuple(k for k, buffer in enumerate(self.buffers) if buffer.dtype)


@cache  # by kind, size and seed, of which a set of forms has few
def contents(kind: str, nbytes: int, seed: int) -> Bits:
    """Return the bytes of a buffer, the same with every NumPy."""
    kind, _, operand = kind.partition(" ")
    if kind in ("zero", "map"):
        return np.zeros(nbytes, np.uint8)
    if kind.startswith("raw"):
        return _raw(int(kind[3:]), nbytes, seed)
    return _elements(kind, nbytes, seed + sum(map(ord, operand)))


def _random(seed: int, count: int) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood, 2014): NumPy promises no stable stream."""
    z = np.uint64(seed << 32) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _edges(width: int) -> list[int]:
    """Return numbers at the edges: of integers, and of the float of this width."""
    exponent, fraction = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[width]
    top, one, half = 1 << (width - 1), ((1 << exponent - 1) - 1) << fraction, 1 << fraction - 1
    infinity = ((1 << exponent) - 1) << fraction
    floats = [
        0, 1, (1 << fraction) - 1, 1 << fraction, one, one - 1, one + 1, one + half, one - 2 * half,
        one + (fraction << fraction), one + (width - 1 << fraction), one + (width << fraction),
        infinity - 1, infinity, infinity + half, infinity + 1, infinity + 2 * half - 1,
    ]  # fmt: skip
    integers = [2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, top - 1, top - 2]
    mixed = [0x5555555555555555, 0x0123456789ABCDEF, 0x7FFF, 0x8000, 0xFFFF]
    found = [*floats, *(top | each for each in floats), *integers, *(~each for each in integers)]
    return [each % (1 << width) for each in (*found, *mixed, *(~each for each in mixed))]


def _raw(width: int, nbytes: int, seed: int) -> Bits:
    """Bits of all kinds: any, floats near each other, and edges of integers and floats."""
    count = nbytes * 8 // width
    first, second = _random(seed + width, count), _random(seed + width + 1, count)
    exponent, fraction = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[width]
    bias = (1 << exponent - 1) - 1
    near = np.uint64(bias) - np.uint64(bias >> 4) + first % np.uint64(bias >> 3)
    floats = (near << np.uint64(fraction)) | (second >> np.uint64(64 - fraction))
    floats |= (second & np.uint64(1)) << np.uint64(width - 1)
    edges = np.array(_edges(width), np.uint64)
    chosen = second >> np.uint64(20) & np.uint64(15)
    values = np.where(chosen < 5, floats, first & np.uint64((1 << width) - 1))
    values = np.where(chosen > 9, edges[first % np.uint64(len(edges))], values)
    if width == 32:  # pairs of halves, too
        halves = np.array(_edges(16), np.uint64)
        pair = halves[first % np.uint64(len(halves))] << np.uint64(16)
        pair |= halves[second % np.uint64(len(halves))]
        values = np.where(chosen == 9, pair, values)
    return values.astype(f"<u{width // 8}").view(np.uint8)


def _elements(kind: str, nbytes: int, seed: int) -> Bits:
    """Elements of matrices: exponents near each other, some far apart, some zeros; no NaN."""
    if kind == "b32":
        return _random(seed, nbytes // 8).view(np.uint8)
    exponent, fraction = _FORMAT[kind]
    width = 32 if kind == "tf32" else 1 + exponent + fraction
    count = nbytes * 8 // width
    first, second = _random(seed, count), _random(seed + 1, count)
    bias = (1 << exponent - 1) - 1
    spread = np.where(first >> np.uint64(60) == 0, bias // 2, min(3, bias // 2)).astype(np.uint64)
    power = np.uint64(bias) - spread + first % (np.uint64(2) * spread)
    values = (power << np.uint64(fraction)) | (second >> np.uint64(64 - fraction))
    values |= (second & np.uint64(1)) << np.uint64(exponent + fraction)
    values = np.where(second >> np.uint64(8) & np.uint64(31) == 0, np.uint64(0), values)
    return values.astype(f"<u{width // 8}").view(np.uint8)


def case_of(name: str, forms: Sequence[Form], seed: int = _SEED) -> Case:
    """Return a case whose kernel executes the forms one after the other."""
    module = _Module()
    for number, form in enumerate(forms):
        if form.fragments is None:
            module.add(form, number)
        else:
            module.add_product(form, number)
    results = [Buffer("zero", nbytes, dtype) for nbytes, dtype in module.results]
    names = tuple(form.name for form in forms)
    buffers = (*module.buffers, *results)
    return Case(name, module.text(), buffers, names, seed=seed)


class _Module:
    """The text of a module, with its buffers."""

    def __init__(self) -> None:
        self.directive = ""
        self.buffers: list[Buffer] = []
        self.results: list[tuple[int, str]] = []
        self._lines: list[str] = []

    def text(self) -> str:
        """Return the module."""
        names = [
            *(f"I{k}" for k in range(len(self.buffers))),
            *(f"O{k}" for k in range(len(self.results))),
        ]
        parameters = ",".join(f".param .u64 {name}" for name in names)
        return "\n".join((
            ".version 9.0", ".target sm_90", ".address_size 64",
            f".visible .entry K({parameters}){self.directive}", "{",
            ".reg .b32 %t; .shared .align 128 .b8 sh[8192]; mov.u32 %t,%tid.x;",
            *self._lines, "ret;", "}", "",
        ))  # fmt: skip

    def _input(self, kind: str, nbytes: int, *, is_own: bool = False) -> str:
        buffer = Buffer(kind, nbytes)
        if is_own or buffer not in self.buffers:
            self.buffers.append(buffer)
            return f"I{len(self.buffers) - 1}"
        return f"I{self.buffers.index(buffer)}"

    def _load(self, register: str, kind: str, count: int, width: int) -> None:
        stride = count * width
        source = self._input(kind, THREADS * stride)
        self._lines.append(f"ld.param.u64 x,[{source}]; mad.wide.u32 x,%t,{stride},x;")
        self._lines += [
            f"ld.global.b{8 * width} {register}{k},[x+{k * width}];" for k in range(count)
        ]

    def add(self, form: Form, number: int) -> None:
        """Add a form of scalar operands."""
        lines = self._lines
        if form.group == "cluster":
            self.directive = " .reqnctapercluster 1"
        lines.append("{.reg .b64 x,y; .reg .pred %p,%q; setp.ne.u32 %p,0,0; setp.ne.u32 %q,0,0;")
        names = {"p": "%p", "p2": "%q"}
        for k, t in enumerate(form.inputs):
            names[OPERANDS[k]] = f"v{k}"
            lines.append(f".reg .{register_of(t)} v{k};")
            width = _width(t)
            source = self._input(f"raw{width}", THREADS * width // 2)
            lines.append(f"ld.param.u64 x,[{source}]; mad.wide.u32 x,%t,{width // 2},x;")
            lines.append(f"ld.global.b{width} v{k},[x+{k * width // 8}];")
        values = [t for t in form.outputs if not t.startswith("pred")]
        for k, t in enumerate(values):
            names["d" if not k else f"d{k + 1}"] = f"w{k}"
            lines.append(f".reg .{register_of(t)} w{k};")
        if form.group in ("memory", "cluster"):
            own = self._input("zero", THREADS * 16, is_own=True)
            names |= {"m": "mm", "s": "ss", "s64": "s64", "s0": "sh"}
            lines.append(
                f".reg .b64 mm,s64; .reg .b32 ss; ld.param.u64 mm,[{own}]; "
                "mad.wide.u32 mm,%t,16,mm; mov.u32 ss,sh; mad.lo.u32 ss,%t,16,ss; "
                "add.u32 ss,ss,64; cvt.u64.u32 s64,ss; bar.sync 0;"
            )
        text = _PLACE.sub(lambda match: names[match[1]], form.text)
        lines.append(re.sub(r"\bW(?=[:;])", f"W{number}", text))
        self._store(form, number)
        lines.append("bar.sync 0; }" if form.group in ("memory", "cluster") else "}")

    def _store(self, form: Form, number: int) -> None:
        stride = 8 * len(form.outputs)
        self._lines.append(f"ld.param.u64 y,[O{number}]; mad.wide.u32 y,%t,{stride},y;")
        value = 0
        for k, t in enumerate(form.outputs):
            if t.startswith("pred"):
                predicate = "%p" if t == "pred" else "%q"
                text = f"{{.reg .b32 z; selp.b32 z,1,0,{predicate}; st.global.b32 [y+{8 * k}],z;}}"
            else:
                text = f"st.global.b{_width(t)} [y+{8 * k}],w{value};"
                value += 1
            self._lines.append(text)
        is_float = form.outputs[0] in ("f32", "f64", "f16")
        dtype = f"f{bits(form.outputs[0]) // 8}" if is_float else "u4"
        if not is_float and "64" in form.outputs[0]:
            dtype = "u8"
        self.results.append((THREADS * stride, dtype))

    def add_product(self, form: Form, number: int) -> None:
        """Add a product of matrices."""
        assert form.fragments is not None, "the caller checks it"
        parts = form.fragments
        factor = "f64" if parts.factor == "f64" else "b32"
        total = parts.sum if parts.sum in ("f32", "f64") else "b32"
        width = bits(total) // 8
        self._lines.append(
            f"{{.reg .b64 x,y; .reg .b32 ee; .reg .{factor} aa<{parts.a}>,bb<{parts.b}>; "
            f".reg .{total} cc<{parts.c}>,dd<{parts.c}>; mov.b32 ee,0xE4E44E4E;"
        )
        self._load("aa", parts.factor, parts.a, bits(factor) // 8)
        self._load("bb", f"{parts.factor} b", parts.b, bits(factor) // 8)
        self._load("cc", f"{parts.sum} c", parts.c, width)
        stride = parts.c * width
        self._lines += [
            form.text,
            f"ld.param.u64 y,[O{number}]; mad.wide.u32 y,%t,{stride},y;",
            *(f"st.global.b{8 * width} [y+{k * width}],dd{k};" for k in range(parts.c)),
            "}",
        ]
        dtype = {"f32": "f4", "f64": "f8", "f16": "f2"}.get(parts.sum, "u4")
        self.results.append((THREADS * stride, dtype))


def register_of(t: str) -> str:
    """The type of a register for an operand or a result."""
    if t in ("u8", "s8", "u16", "s16", "f16", "bf16"):
        return "b16"
    if t in ("tf32", "f16x2", "bf16x2"):
        return "b32"
    return t if t[0] == "f" else f"b{bits(t)}"


def _width(t: str) -> int:
    """The bits of an operand, and of its register."""
    return bits(register_of(t))
