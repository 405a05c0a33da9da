"""Kernels that apply a list of instructions or expressions to the same lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.emulator.differential.case import Argument, Bound, Case, In, Out
from tests.emulator.differential.inputs import Kind, dtype_of

_C_TYPES = {"u1": "unsigned char", "u2": "unsigned short", "u4": "unsigned", "i4": "int",
            "u8": "unsigned long long", "f4": "float", "f8": "double"}  # fmt: skip
_CONSTRAINTS = {"u1": "h", "u2": "h", "u4": "r", "i4": "r", "u8": "l", "f4": "f", "f8": "d"}
_OPERANDS = "xyzw"
LANES = 768


@dataclass(frozen=True, slots=True)
class Lanes:
    """A kernel of rows, each an instruction (with %0 for the result and %1, %2, … for the sources)
    or a C++ expression of x, y, z and w; row j of lane i is element j · n + i of the output.

    Attributes:
        inputs: the kinds of x, y, z and w.
        output: the type of every row's result, such as "u4".
        open_rows: see `Case`.
        uniform: whether a loop gives all threads the same values, instead of each its own.
    """

    name: str
    group: str
    inputs: tuple[Kind, ...]
    output: str
    rows: tuple[str, ...]
    count: int = LANES
    bound: Bound | None = None
    uniform: bool = False
    open_rows: tuple[str, ...] = ()

    def text(self) -> str:
        """CUDA C++ of the kernel."""
        types = [dtype_of(kind).str[1:] for kind in self.inputs]
        pointers = ", ".join(f"const {_C_TYPES[t]}* in_{k}" for k, t in enumerate(types))
        loads = "".join(
            f"  {_C_TYPES[t]} {_OPERANDS[k]} = in_{k}[i];\n" for k, t in enumerate(types)
        )
        body = "".join(self._row(number, row, types) for number, row in enumerate(self.rows))
        result = _C_TYPES[self.output]
        head = f'extern "C" __global__ void {self.name}({pointers}, {result}* out, int n) {{\n'
        if self.uniform:
            start = "  #pragma unroll 1\n  for (int i = 0; i < n; i++) {\n"
            return f"{head}{start}{loads}{body}  }}\n}}\n"
        start = "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n"
        return f"{head}{start}{loads}{body}}}\n"

    def _row(self, number: int, row: str, types: Sequence[str]) -> str:
        result = _C_TYPES[self.output]
        if "%0" not in row:
            return f"  out[{number} * n + i] = {row};\n"
        sources = ", ".join(
            f'"{_CONSTRAINTS[t]}"({name})' for name, t in zip(_OPERANDS, types, strict=False)
        )
        end = "" if row.endswith("}") else ";"
        # Where the result keeps what it held, as under a guard, that is zero.
        held = "+" if "@" in row else "="
        constraint = held + _CONSTRAINTS[self.output]
        return (
            f'  {{ {result} r = 0; asm volatile("{row}{end}" : "{constraint}"(r) : {sources});'
            f" out[{number} * n + i] = r; }}\n"
        )

    def case(self) -> Case:
        """Its launch."""
        inputs: list[Argument] = [In(kind, self.count) for kind in self.inputs]
        outputs = (Out(self.output, self.count * len(self.rows)), self.count)
        grid, block = (1, 32) if self.uniform else (-(-self.count // 128), 128)
        return Case(
            self.name,
            self.group,
            (*inputs, *outputs),
            grid,
            block,
            bound=self.bound,
            rows=self.rows,
            open_rows=self.open_rows,
        )


def lanes(
    name: str,
    group: str,
    inputs: str | tuple[Kind, ...],
    output: str,
    rows: Iterable[str],
    *,
    count: int = LANES,
    bound: Bound | None = None,
    open_rows: tuple[str, ...] = (),
) -> Lanes:
    """A kernel of rows; `inputs` may be names of kinds, separated by spaces."""
    kinds = tuple(inputs.split()) if isinstance(inputs, str) else inputs
    return Lanes(name, group, kinds, output, tuple(rows), count, bound, open_rows=open_rows)


def uniform(kernel: Lanes, count: int = 40) -> Lanes:
    """The same rows on values that all threads share."""
    return Lanes(
        f"{kernel.name}_uniform",
        kernel.group,
        kernel.inputs,
        kernel.output,
        kernel.rows,
        count,
        kernel.bound,
        True,
    )


def three(*opcodes: str) -> list[str]:
    """Instructions with a result and two sources."""
    return [f"{opcode} %0, %1, %2" for opcode in opcodes]


def four(*opcodes: str) -> list[str]:
    """Instructions with a result and three sources."""
    return [f"{opcode} %0, %1, %2, %3" for opcode in opcodes]


def two(*opcodes: str) -> list[str]:
    """Instructions with a result and one source."""
    return [f"{opcode} %0, %1" for opcode in opcodes]


def predicates(*comparisons: str) -> list[str]:
    """Comparisons that set a predicate, as 0 or 1."""
    return [f"{{ .reg .pred p; {each} p, %1, %2; selp.u32 %0, 1, 0, p; }}" for each in comparisons]
