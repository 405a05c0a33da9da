"""`Form`: one way to write an instruction, and the list that families add theirs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Group = Literal["plain", "approximate", "warp", "memory", "cluster", "matrix"]
INTEGERS: Final = ("u16", "s16", "u32", "s32", "u64", "s64")
ROUNDINGS: Final = (".rn", ".rz", ".rm", ".rp")
OPERANDS: Final = "abce"
"""The names of inputs in a form's text; `d` is its first result."""


@dataclass(frozen=True, slots=True)
class Fragments:
    """The registers of a product of matrices: their numbers, and the formats of A and of C."""

    a: int
    b: int
    c: int
    factor: str
    sum: str


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write an instruction.

    Attributes:
        name: unique among all forms.
        inputs: the type of each operand: `$a`, `$b`, `$c` and `$e` of the text.
        outputs: the type of each result: `$d`, `$d2` and so on; "pred" for `$p`, "pred2" for `$p2`.
        text: the PTX. `$m` is a thread's 16 bytes of global memory, `$s` and `$s64` its 16 bytes of
            shared memory by a 32-bit and a 64-bit address, `$s0` the shared memory of the block.
        group: how it is run and compared.
        fragments: of a product of matrices, whose registers are aa, bb, cc and dd.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    text: str
    group: Group = "plain"
    fragments: Fragments | None = None


@dataclass
class FormList:
    """The forms, by name."""

    by_name: dict[str, Form] = field(default_factory=dict)

    def add(
        self,
        name: str,
        inputs: Sequence[str],
        outputs: str | Sequence[str],
        text: str,
        group: Group = "plain",
        fragments: Fragments | None = None,
    ) -> None:
        """Add a form.

        Raises:
            ValueError: another one has its name.
        """
        if name in self.by_name:
            raise ValueError(f"two forms are named {name}")
        results = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        self.by_name[name] = Form(name, tuple(inputs), results, text, group, fragments)

    def plain(
        self, opcode: str, inputs: Sequence[str], output: str, group: Group = "plain"
    ) -> None:
        """Add an instruction of one result, followed by its operands."""
        operands = ", ".join(f"${name}" for name in OPERANDS[: len(inputs)])
        self.add(opcode, inputs, output, f"{opcode} $d, {operands};", group)


def bits(ptx_type: str) -> int:
    """Return the width of a scalar type."""
    return int("".join(filter(str.isdigit, ptx_type.removesuffix("x2"))))
