"""Conditions of graphs: a number that kernels set, and which bodies it lets run.

CUDA Programming Guide, "Conditional Graph Nodes".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from weakref import WeakValueDictionary

from ptx.errors import PtxError

from ..driver._api import CUresult
from .refusal import Refusal, invalid_value

# A run of a body takes the emulator as long as so many steps of a kernel, or longer.
_STEPS_OF_A_RUN: Final = 20


class ConditionKind(Enum):
    """What a conditional node does with its number."""

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"


@dataclass(eq=False, slots=True, weakref_slot=True)
class ConditionState:
    """A handle of a condition, and the node that it is for.

    Attributes:
        default: what each launch of the graph sets it to at its begin; None leaves it as it is.
        value: what it is now.
        kind: what its node does; None until there is one.
        handles: of the bodies, at the place that the caller was told.
        most_steps: how many a loop may take, of which a run of its body counts as some.
    """

    handle: int
    default: int | None
    most_steps: int
    value: int = 0
    kind: ConditionKind | None = None
    handles: ctypes.Array[ctypes.c_size_t] | None = None

    def begin(self) -> None:
        """A launch of the graph begins."""
        if self.default is not None:
            self.value = self.default

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """What the conditional node does."""
        if self.kind is ConditionKind.WHILE:
            for _ in range(max(1, self.most_steps // _STEPS_OF_A_RUN)):
                if not self.value:
                    return
                bodies[0]()
            raise self._endless()
        # Of an if, the second body is for where it does not hold.
        which = int(not self.value) if self.kind is ConditionKind.IF else self.value
        if which < len(bodies):
            bodies[which]()

    def _endless(self) -> Refusal:
        text = (
            f"a loop of a graph has not ended after {self.most_steps // _STEPS_OF_A_RUN} runs of "
            "its body, which the emulator takes for an endless one: does a kernel set the "
            f"condition to 0?\n  if it is only long, raise the limit of {self.most_steps} steps: "
            "Limits(max_steps=...), or CUDADRV_EMULATOR_STEPS"
        )
        return Refusal(CUresult.CUDA_ERROR_LAUNCH_TIMEOUT, text, PtxError(text))


class Conditions:
    """The conditions of an emulator, by their handles; kernels set them.

    Each lives as long as its graph, and what was made of that.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[int, ConditionState] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, handle: int, default: int | None, most_steps: int) -> ConditionState:
        """A new one."""
        found = self._known[handle] = ConditionState(handle, default, most_steps)
        return found

    def free_one(self, handle: int) -> ConditionState:
        """One that no node has yet.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if there is none of this handle.
        """
        found = self._known.get(handle)
        if found is None:
            raise invalid_value(f"{handle:#x} is no handle of a condition")
        if found.kind is not None:
            raise invalid_value(f"another node has the condition {handle:#x} already")
        return found

    def set(self, handle: int, value: int) -> bool:
        """What `cudaGraphSetConditional` does; False if there is no such condition."""
        found = self._known.get(handle)
        if found is not None:
            found.value = value
        return found is not None
