"""Programs: templates of kernels whose slots hold the right text, or that of one fault."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ATOMIC: Final = "atomic left out"
GUARD: Final = "guard around the wrong thing"
BARRIER: Final = "barrier left out"
MOVED: Final = "barrier or publication moved"
NARROW: Final = "scope too narrow"
FENCE: Final = "fence left out"
HEARD: Final = "fence left out before a barrier"  # NVIDIA's own samples do so
BOUND: Final = "bound off by one"
PLAIN: Final = "plain access to an atomic"
BUFFER: Final = "one buffer for two"
WAIT: Final = "wait for a copy left out"
RIGHT: Final = "none"

_SLOT: Final = re.compile(r"⟦(\w+): ?([^⟧]*)⟧")
_SIGNATURES: Final = {
    "graph": "int nv, int ne, const int* row, const int* from, const int* col, $T* value, $T* out, "
    "int* parent, int* flags",
    "array": "int n, $T* a, $T* o, int* flags",
}
HEADER_FILE: Final = Path(__file__).with_name("asynchronous.cuh")
HEADER: Final = """\
#include <cooperative_groups.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
""" + HEADER_FILE.read_text()


@dataclass(frozen=True, slots=True)
class Fault:
    """What one fault puts into the slots of a template.

    Attributes:
        kind: the class of the fault.
        detail: tells faults of one class in a pattern apart.
        slots: the text of the slots that differ from the right program.
        only: the threads of a block with which it is one; 0 for all.
    """

    kind: str
    detail: str
    slots: dict[str, str]
    only: int = 0


def fault(kind: str, detail: str = "", *, only: int = 0, **slots: str) -> Fault:
    """A fault by its class and what it puts into slots."""
    return Fault(kind, detail, slots, only)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A template: `⟦name: right text⟧` is a slot, $T the type, $BLOCK the threads of a block.

    Attributes:
        name: of the pattern.
        body: the kernel's body; `i` is the thread's number in the grid, `t` that in its block.
        faults: what can be wrong.
        over: what the grid has a thread for: "vertex" or "edge" of a graph, or "element".
        types: of the data.
        blocks: threads of a block.
        cooperative: whether the launch is.
        cluster: blocks of a cluster.
    """

    name: str
    body: str
    faults: tuple[Fault, ...]
    over: str = "element"
    types: tuple[str, ...] = ("int", "float")
    blocks: tuple[int, ...] = (64, 256)
    cooperative: bool = False
    cluster: int = 1

    def programs(self) -> Iterator[Program]:
        """The right program of each variant, and those with a fault."""
        right = Fault(RIGHT, "", {})
        for kind in self.types:
            for block in self.blocks:
                for each in (right, *self.faults):
                    if each.only in (0, block):
                        yield self._program(each, kind, block)

    def _program(self, each: Fault, kind: str, block: int) -> Program:
        unknown = set(each.slots) - {name for name, _ in _SLOT.findall(self.body)}
        if unknown:
            raise ValueError(f"pattern {self.name} has no slots {sorted(unknown)}")
        named = [self.name, kind, self.over, str(block), each.kind, each.detail]
        name = ".".join(word.replace(" ", "-") for word in named if word)
        symbol = re.sub(r"\W", "_", name)
        body = _SLOT.sub(lambda slot: each.slots.get(slot[1], slot[2]), self.body.strip("\n"))
        signature = _SIGNATURES["array" if self.over == "element" else "graph"]
        text = (
            f'extern "C" __global__ void {symbol}({signature}) {{\n'
            f"  const int t = threadIdx.x, i = blockIdx.x * $BLOCK + t;\n{body}\n}}\n"
        )
        text = text.replace("$T", kind).replace("$BLOCK", str(block))
        return Program(
            name,
            symbol,
            self.name,
            each.kind,
            self.over,
            kind,
            block,
            self.cooperative,
            self.cluster,
            text,
        )


@dataclass(frozen=True, slots=True)
class Program:
    """One kernel, right or with one fault.

    Attributes:
        name: tells pattern, type, what it is over, threads of a block, and the fault.
        symbol: the kernel's name.
        pattern, fault, over, kind, block, cooperative, cluster: see `Pattern`.
        text: in CUDA C++.
    """

    name: str
    symbol: str
    pattern: str
    fault: str
    over: str
    kind: str
    block: int
    cooperative: bool
    cluster: int
    text: str

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.fault == RIGHT
