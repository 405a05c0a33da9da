"""The classes that executed instructions are counted by.

They follow the classes of Nsight Compute as far as PTX has them (docs/counters.md).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ptx.isa.model import TYPE_BYTES, Instruction


class InstructionClass(Enum):
    """What kind of work an instruction of PTX is."""

    FP16_ADD = "fp16.add"
    FP16_MUL = "fp16.mul"
    FP16_FMA = "fp16.fma"
    FP16_OTHER = "fp16.other"
    FP32_ADD = "fp32.add"
    FP32_MUL = "fp32.mul"
    FP32_FMA = "fp32.fma"
    FP32_OTHER = "fp32.other"
    FP64_ADD = "fp64.add"
    FP64_MUL = "fp64.mul"
    FP64_FMA = "fp64.fma"
    FP64_OTHER = "fp64.other"
    SPECIAL = "special"
    INTEGER = "integer"
    BIT = "bit"
    CONVERSION = "conversion"
    MOVE = "move"
    CONTROL = "control"
    BARRIER = "barrier"
    FENCE = "fence"
    WARP = "warp"
    MATRIX = "matrix"
    LOAD_GLOBAL = "load.global"
    LOAD_SHARED = "load.shared"
    LOAD_LOCAL = "load.local"
    LOAD_CONST = "load.const"
    LOAD_PARAM = "load.param"
    LOAD_GENERIC = "load.generic"
    LOAD_MATRIX = "load.matrix"
    STORE_GLOBAL = "store.global"
    STORE_SHARED = "store.shared"
    STORE_LOCAL = "store.local"
    STORE_PARAM = "store.param"
    STORE_GENERIC = "store.generic"
    STORE_MATRIX = "store.matrix"
    ATOMIC_GLOBAL = "atomic.global"
    ATOMIC_SHARED = "atomic.shared"
    ATOMIC_GENERIC = "atomic.generic"
    REDUCTION_GLOBAL = "reduction.global"
    REDUCTION_SHARED = "reduction.shared"
    REDUCTION_GENERIC = "reduction.generic"
    COPY = "copy"
    PREFETCH = "prefetch"
    TEXTURE = "texture"
    SURFACE = "surface"
    OTHER = "other"


def _opcodes(words: str, kind: InstructionClass) -> dict[str, InstructionClass]:
    return dict.fromkeys(words.split(), kind)


_BY_OPCODE: Final[dict[str, InstructionClass]] = {
    **_opcodes("rcp sqrt rsqrt sin cos lg2 ex2 tanh", InstructionClass.SPECIAL),
    **_opcodes(
        "and or xor not cnot lop3 shl shr shf bfe bfi bfind brev clz popc fns bmsk szext prmt",
        InstructionClass.BIT,
    ),
    **_opcodes("cvt", InstructionClass.CONVERSION),
    **_opcodes(
        "mov selp slct cvta isspacep mapa getctarank createpolicy istypep movmatrix",
        InstructionClass.MOVE,
    ),
    **_opcodes(
        "bra brx call ret exit trap brkpt nanosleep griddepcontrol setmaxnreg",
        InstructionClass.CONTROL,
    ),
    **_opcodes("bar barrier mbarrier", InstructionClass.BARRIER),
    **_opcodes("membar fence", InstructionClass.FENCE),
    **_opcodes("shfl vote match redux activemask elect", InstructionClass.WARP),
    **_opcodes("mma wmma wgmma tcgen05", InstructionClass.MATRIX),
    **_opcodes("ldmatrix", InstructionClass.LOAD_MATRIX),
    **_opcodes("stmatrix", InstructionClass.STORE_MATRIX),
    **_opcodes("cp tensormap", InstructionClass.COPY),
    **_opcodes("prefetch prefetchu applypriority discard", InstructionClass.PREFETCH),
    **_opcodes("tex tld4 txq", InstructionClass.TEXTURE),
    **_opcodes("suld sust sured suq", InstructionClass.SURFACE),
    **_opcodes("ldu", InstructionClass.LOAD_GLOBAL),
}
_FLOATS: Final = {
    "f16": "fp16", "f16x2": "fp16", "bf16": "fp16", "bf16x2": "fp16",
    "f32": "fp32", "f32x2": "fp32", "f64": "fp64",
}  # fmt: skip
_ARITHMETIC: Final = {"add": "add", "sub": "add", "mul": "mul", "fma": "fma", "mad": "fma"}
_OF_NUMBERS: Final = _opcodes(
    "add sub mul fma mad div rem neg abs min max set setp copysign testp mul24 mad24 addc subc madc"
    " dp4a dp2a sad",
    InstructionClass.INTEGER,
)
_SPACES: Final = ("global", "shared", "local", "const", "param")
_MEMORY: Final = {"ld": "load", "st": "store", "atom": "atomic", "red": "reduction"}


def class_of(instruction: Instruction) -> InstructionClass:
    """The class of an instruction of PTX."""
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode in _MEMORY:
        names = (word.partition("::")[0] for word in words)
        space = next((name for name in names if name in _SPACES), "generic")
        return InstructionClass(f"{_MEMORY[opcode]}.{space}")
    if opcode == "wmma" and words[:1] in (("load",), ("store",)):
        return InstructionClass(f"{words[0]}.matrix")
    if opcode == "bar" and words[:1] == ("warp",):
        return InstructionClass.WARP
    found = _BY_OPCODE.get(opcode)
    if found is not None:
        return found
    if opcode in _OF_NUMBERS:
        return _of_floats(opcode, words) or _OF_NUMBERS[opcode]
    # `vadd`, `vmax4`…: the video instructions.
    return InstructionClass.INTEGER if opcode[:1] == "v" else InstructionClass.OTHER


def _of_floats(opcode: str, words: tuple[str, ...]) -> InstructionClass | None:
    """The class by the last type, as a comparison's result may have another; None for integers."""
    types = [word for word in words if word in TYPE_BYTES]
    kind = _FLOATS.get(types[-1]) if types else None
    if kind is None:
        return None
    if opcode == "div":
        return InstructionClass.SPECIAL
    return InstructionClass(f"{kind}.{_ARITHMETIC.get(opcode, 'other')}")
