"""A case: a kernel of the corpus with its launch, its inputs and what is compared afterwards."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TypeAlias

import ptx
from tests.emulator.differential.inputs import Kind


@dataclass(frozen=True, slots=True)
class In:
    """An array that the kernel reads."""

    kind: Kind
    count: int


@dataclass(frozen=True, slots=True)
class Out:
    """An array of zeros that the kernel writes; `dtype` is one of NumPy's, such as "f4"."""

    dtype: str
    count: int


@dataclass(frozen=True, slots=True)
class Held:
    """An array that the kernel reads and writes."""

    kind: Kind
    count: int


Argument: TypeAlias = In | Out | Held | int | float | bytes


@dataclass(frozen=True, slots=True)
class Bound:
    """How far an approximate result may be off: the largest of the three.

    Attributes:
        ulp: units in the last place of the GPU's result.
        relative: a share of it.
        absolute: whatever it is.
        source: where the bound is stated.
    """

    ulp: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel's launch.

    Attributes:
        name: the kernel's name, one of its kind in the corpus.
        group: the group of instructions that it stands for.
        arguments: in the kernel's order.
        bound: None where the results must have the GPU's bits.
        rows: what made each part of the output, if it has as many equal parts.
        open_rows: those of them that are not compared, because PTX leaves their result open.
    """

    name: str
    group: str
    arguments: tuple[Argument, ...]
    grid: int | tuple[int, ...] = 1
    block: int | tuple[int, ...] = 128
    shared_bytes: int = 0
    cluster: int | None = None
    cooperative: bool = False
    bound: Bound | None = None
    rows: tuple[str, ...] = ()
    open_rows: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """What its inputs are made from."""
        return zlib.crc32(self.name.encode())


@dataclass(frozen=True, slots=True)
class Source:
    """CUDA C++ of several kernels, compiled together: one pair of PTX and cubin.

    Attributes:
        name: of the recording.
        text: CUDA C++.
        cases: one for each kernel that is launched.
        options: NVRTC's, without the target.
    """

    name: str
    text: str
    cases: tuple[Case, ...]
    options: ptx.CompileOptions = field(default_factory=ptx.CompileOptions)

    @property
    def digest(self) -> str:
        """What changes when the text, the options or a launch does."""
        launches = [
            (c.name, c.arguments, c.grid, c.block, c.shared_bytes, c.cluster, c.cooperative,
             c.rows, c.bound is None)
            for c in self.cases
        ]  # fmt: skip
        said = repr((self.text, self.options.flags(), launches))
        return f"{zlib.crc32(said.encode()):08x}"
