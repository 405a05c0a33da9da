"""`wmma` with every shape, layout and type, its matrices in global memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from .case import Buffer, Case

_THREADS: Final = 32
_STAGED: Final = 8192
_STRIDE: Final = {"u4": 128, "s4": 128, "b1": 256}
"""Elements from a row, or column, to the next: 32 of other types."""
_KINDS: Final = {"f16": "f16", "bf16": "bf16", "tf32": "tf32", "f64": "f64"}
_WORDS: Final = {
    "m16n16k16": (8, 8), "m8n32k16": (8, 8), "m32n8k16": (8, 8), "m16n16k8": (4, 4),
    "m8n8k4": (1, 1), "m8n8k32": (1, 1), "m8n8k128": (1, 1),
}  # fmt: skip
_BYTES: Final = {"m16n16k16": (2, 2), "m8n32k16": (1, 4), "m32n8k16": (4, 1)}
_BRAIN: Final = {"m16n16k16": (4, 4), "m8n32k16": (2, 8), "m32n8k16": (8, 2)}


@dataclass(frozen=True, slots=True)
class _Product:
    """One `wmma.mma`.

    Attributes:
        layouts: of A and B.
        factor: the type of A and B.
        first, result: the types of C and D.
        words: the registers of a thread for A, B, and C or D.
        modifiers: before and after the shape.
    """

    shape: str
    layouts: tuple[str, str]
    factor: str
    first: str
    result: str
    words: tuple[int, int, int, int]
    modifiers: tuple[str, str] = ("", "")

    @property
    def name(self) -> str:
        """The instruction without its operands."""
        types = [self.result, self.first]
        if self.factor != "f16":
            types[1:1] = [self.factor, self.factor]
        before, after = self.modifiers
        head = f"wmma.mma{before}.sync.aligned.{'.'.join(self.layouts)}.{self.shape}"
        return f"{head}.{'.'.join(types)}{after}"


def _products(shape: str) -> Iterator[_Product]:
    layouts = list(product(("row", "col"), ("row", "col")))
    words = _WORDS[shape]
    if shape in _BYTES:
        for each, c, d in product(layouts, ("f16", "f32"), ("f16", "f32")):
            counts = (*words, 4 if c == "f16" else 8, 4 if d == "f16" else 8)
            yield _Product(shape, each, "f16", c, d, counts)
        for each in layouts:
            yield _Product(shape, each, "bf16", "f32", "f32", (*_BRAIN[shape], 8, 8))
            for t, sat in product(("s8", "u8"), ("", ".satfinite")):
                counts = (*_BYTES[shape], 8, 8)
                yield _Product(shape, each, t, "s32", "s32", counts, ("", sat))
    elif shape == "m16n16k8":
        for each in layouts:
            yield _Product(shape, each, "tf32", "f32", "f32", (*words, 8, 8))
    elif shape == "m8n8k4":
        for each in layouts:
            yield _Product(shape, each, "f64", "f64", "f64", (*words, 2, 2))
    elif shape == "m8n8k32":
        for t, sat in product(("s4", "u4"), ("", ".satfinite")):
            counts = (*words, 2, 2)
            yield _Product(shape, ("row", "col"), t, "s32", "s32", counts, ("", sat))
    else:
        for op in ("xor", "and"):
            counts = (*words, 2, 2)
            yield _Product(shape, ("row", "col"), "b1", "s32", "s32", counts, (f".{op}.popc", ""))


def warp_products_case(number: int) -> Case:
    """Return the case of one shape, below the number of shapes."""
    shape = tuple(_WORDS)[number]
    products = list(_products(shape))
    inputs: list[str] = []
    lines: list[str] = []
    for index, each in enumerate(products):
        lines += _text(each, index, inputs)
    names = [*(f"I{k}" for k in range(len(inputs))), *(f"O{k}" for k in range(len(products)))]
    parameters = ",".join(f".param .u64 {name}" for name in names)
    rows, columns = (int(part) for part in shape[1:].partition("k")[0].split("n"))
    buffers = [
        *(Buffer(kind, _STAGED) for kind in inputs),
        *(Buffer("zero", rows * columns * _nbytes(each.result), "u4") for each in products),
    ]
    text = "\n".join((
        ".version 9.0", ".target sm_90", ".address_size 64", f".visible .entry K({parameters})",
        "{", ".reg .b64 x;", *lines, "ret;", "}", "",
    ))  # fmt: skip
    return Case(
        f"warp_products{number}",
        text,
        tuple(buffers),
        tuple(each.name for each in products),
        threads=_THREADS,
    )


SHAPES: Final = len(_WORDS)


def _nbytes(t: str) -> int:
    return {"f16": 2, "f64": 8}.get(t, 4)


def _text(each: _Product, index: int, inputs: list[str]) -> list[str]:
    """Return the lines that load the matrices, multiply, and store the product."""
    first_layout = ("row", "col")[index % 2]
    lines = ["{"]
    lists = []
    factor = "f64" if each.factor == "f64" else "b32"
    totals = {"f16": "b32", "s32": "b32"}
    registers = (factor, factor, *(totals.get(t, t) for t in (each.first, each.result)))
    for name, register, count in zip("abcd", registers, each.words, strict=True):
        lines.append(f".reg .{register} {name}<{count}>;")
        lists.append("{" + ",".join(f"{name}{k}" for k in range(count)) + "}")
    kind, stride = _KINDS.get(each.factor, "b32"), _STRIDE.get(each.factor, 32)
    sums = {"s32": "b32"}.get(each.first, each.first)
    for role, layout, t, source in (
        ("a", each.layouts[0], each.factor, kind),
        ("b", each.layouts[1], each.factor, f"{kind} b"),
        ("c", first_layout, each.first, f"{sums} c" if sums != "b32" else "b32"),
    ):
        if source not in inputs:
            inputs.append(source)
        step = 32 if role == "c" else stride
        lines.append(
            f"ld.param.u64 x,[I{inputs.index(source)}]; wmma.load.{role}.sync.aligned.{layout}."
            f"{each.shape}.global.{t} {lists['abc'.index(role)]},[x],{step};"
        )
    rows, columns = each.shape[1:].partition("k")[0].split("n")
    leading = columns if first_layout == "row" else rows
    lines += [
        f"{each.name} {lists[3]},{lists[0]},{lists[1]},{lists[2]};",
        f"ld.param.u64 x,[O{index}]; wmma.store.d.sync.aligned.{first_layout}.{each.shape}.global."
        f"{each.result} [x],{lists[3]},{leading};}}",
    ]
    return lines
