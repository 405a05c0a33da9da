"""The classes that executed instructions are counted by.

They follow the classes of Nsight Compute as far as PTX has them (docs/counters.md).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Instruction


class InstructionClass(Enum):
    """Classes of PTX instructions by their kind of work."""

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


_CLASSES: Final[dict[InstructionKind, InstructionClass]] = {
    **dict.fromkeys(
        (
            InstructionKind.ADDITION, InstructionKind.MULTIPLICATION,
            InstructionKind.MULTIPLY_ADD, InstructionKind.DIVISION,
            InstructionKind.ARITHMETIC, InstructionKind.CARRY, InstructionKind.VIDEO,
        ),
        InstructionClass.INTEGER,
    ),
    InstructionKind.SPECIAL: InstructionClass.SPECIAL,
    InstructionKind.BIT: InstructionClass.BIT,
    InstructionKind.CONVERSION: InstructionClass.CONVERSION,
    InstructionKind.MOVE: InstructionClass.MOVE,
    InstructionKind.COPY: InstructionClass.COPY,
    InstructionKind.TENSOR_MAP: InstructionClass.COPY,
    InstructionKind.PREFETCH: InstructionClass.PREFETCH,
    InstructionKind.TEXTURE: InstructionClass.TEXTURE,
    InstructionKind.SURFACE: InstructionClass.SURFACE,
    InstructionKind.LOAD_MATRIX: InstructionClass.LOAD_MATRIX,
    InstructionKind.STORE_MATRIX: InstructionClass.STORE_MATRIX,
    InstructionKind.MATRIX: InstructionClass.MATRIX,
    InstructionKind.BARRIER: InstructionClass.BARRIER,
    InstructionKind.MBARRIER: InstructionClass.BARRIER,
    InstructionKind.FENCE: InstructionClass.FENCE,
    **dict.fromkeys(
        (
            InstructionKind.WARP_BARRIER, InstructionKind.EXCHANGE,
            InstructionKind.ELECTION, InstructionKind.WARP_STATE,
        ),
        InstructionClass.WARP,
    ),
    **dict.fromkeys(
        (
            InstructionKind.BRANCH, InstructionKind.CALL, InstructionKind.RETURN,
            InstructionKind.EXIT, InstructionKind.TRAP, InstructionKind.CONTROL,
        ),
        InstructionClass.CONTROL,
    ),
}  # fmt: skip
_FLOATS: Final = {
    "f16": "fp16", "f16x2": "fp16", "bf16": "fp16", "bf16x2": "fp16",
    "f32": "fp32", "f32x2": "fp32", "f64": "fp64",
}  # fmt: skip
# The second half of a class's name: after the type, or before the state space.
_OF_FLOATS: Final = {
    InstructionKind.ADDITION: "add",
    InstructionKind.MULTIPLICATION: "mul",
    InstructionKind.MULTIPLY_ADD: "fma",
    InstructionKind.ARITHMETIC: "other",
}
_OF_SPACES: Final = {
    InstructionKind.LOAD: "load",
    InstructionKind.STORE: "store",
    InstructionKind.ATOMIC: "atomic",
    InstructionKind.REDUCTION: "reduction",
}


def class_of(instruction: Instruction) -> InstructionClass:
    """Return the class of an instruction."""
    facts = instruction.facts
    if facts.kind in _OF_SPACES:
        return InstructionClass(f"{_OF_SPACES[facts.kind]}.{facts.space}")
    # A comparison's result may have another type than its operands, the last one.
    element = _FLOATS.get(facts.types[-1]) if facts.types else None
    if element is not None and facts.kind is InstructionKind.DIVISION:
        return InstructionClass.SPECIAL
    if element is not None and facts.kind in _OF_FLOATS:
        return InstructionClass(f"{element}.{_OF_FLOATS[facts.kind]}")
    return _CLASSES.get(facts.kind, InstructionClass.OTHER)
