"""PTX executed in NumPy: what stands in for a GPU where there is none.

`Program(module, device)` loads a parsed module; `Program.kernel(name)` generates one Python
function for each basic block of the kernel and of what it may call; `EmulatedKernel.launch` runs.

How it runs
-----------
Thread blocks are executed in chunks, whole blocks of them, by default 65,536 threads
(`threads/resident_blocks.py`). A thread's number in its chunk is its lane. Lanes at the same place
form a fibre (`threads/fibre.py`) with registers of its own: a register's value is a NumPy scalar
where all its threads agree, else an (n,) array; both behave alike in operators, `.view`, `.astype`,
`.ndim`. Arrays are never changed in place. A branch that divides a fibre splits it; the fibre with
the smallest place runs (`exec/scheduler.py`); fibres at the same place become one
(`exec/merge.py`). What depends on a thread's place in its block alone is found by
`codegen/analysis/block_invariant.py`, computed once a launch and shared by its chunks
(`threads/launch_plan.py`). Fibres that wait, for others or for a time, are in
`exec/sync/waiting.py`; mbarrier objects are in `exec/sync/mbarrier.py`. Chunks of a grid that the
device would hold all at once take turns (`exec/launch.py`); those of a larger one run one after
another.

Where few threads come to a block often, or threads go their own ways, each has its registers as
Python numbers and runs code that is made for one thread (`exec/lane`, `codegen/lane`,
`ops/lane_arithmetic`, `ops/lane_data`); what has no such code goes on in NumPy, instruction by
instruction. Bits, faults and the order of accesses are the same in both forms.

With a `LaunchOrder` blocks, warps and lanes run in an order of their own (`exec/order`): what is
right only because threads run together goes wrong there.

The rooms, from top to bottom; a file imports from its own room and from those below:

- `program`: a module on a device, and its kernels.
- `requirements`: what instructions need of a module's target and version.
- `ops`: the operations, a group of the PTX ISA a file; `ops/__init__.py` says how to add one.
- `codegen`: basic blocks, the table of operations, the emitter, and the generator.
- `exec`: how fibres are scheduled, how they wait, and launches; `exec/sync`: what they wait for.
- `texture`: from coordinates to texels.
- `access`: accesses of threads to memory, and their faults.
- `threads`: fibres, the blocks that are executed together, and the launch that they are of.
- `count`: what launches execute, by calls in code that is made to count.
- `check`: what looks for races and for reads of what nothing has written.
- `kernel_facts`: what is known of a kernel's code beside its functions.
- `memory`: device memory, its layout, and the images in it.
- `model`: what all of them speak of: types, places of threads, addresses, faults, the clock.
- `ieee`: exact floating-point arithmetic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ptx.emulate.memory.device_memory import Allocation, DeviceMemory
from ptx.emulate.memory.texture_object import AddressMode, TexelImage, TextureObject
from ptx.emulate.model.errors import (
    AddressSpaceExhausted,
    AssertionFailed,
    BadFree,
    BarrierDivergence,
    Deadlock,
    EmulationFault,
    EndlessLoop,
    InvalidBranch,
    InvalidCall,
    InvalidCondition,
    InvalidFree,
    InvalidTensorMap,
    InvalidTextureHandle,
    LaunchError,
    MemoryFault,
    Misaligned,
    MisalignedCoordinate,
    NegativeCoordinate,
    OutOfBounds,
    OutOfMemory,
    Runaway,
    StackOverflow,
    SynchronisationFault,
    TensorMemoryFault,
    Trap,
    UndefinedSymbol,
    UninitialisedRead,
    UnsupportedFetch,
    UnsupportedInstruction,
    UseAfterFree,
    Where,
)
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from ptx.emulate.program import EmulatedKernel, KernelAttributes, Program
    from ptx.emulate.requirements.check import UnsupportedTarget
    from ptx.emulate.requirements.sizes import SizeLimitExceeded

__all__ = [
    "DEFAULT_LIMITS",
    "AddressMode",
    "AddressSpaceExhausted",
    "Allocation",
    "AssertionFailed",
    "BadFree",
    "BarrierDivergence",
    "Deadlock",
    "DeviceMemory",
    "DeviceModel",
    "EmulatedKernel",
    "EmulationFault",
    "EndlessLoop",
    "InvalidBranch",
    "InvalidCall",
    "InvalidCondition",
    "InvalidFree",
    "InvalidTensorMap",
    "InvalidTextureHandle",
    "KernelAttributes",
    "LaunchError",
    "LaunchOrder",
    "Limits",
    "MemoryFault",
    "Misaligned",
    "MisalignedCoordinate",
    "NegativeCoordinate",
    "OutOfBounds",
    "OutOfMemory",
    "Program",
    "Runaway",
    "SizeLimitExceeded",
    "StackOverflow",
    "SynchronisationFault",
    "TensorMemoryFault",
    "TexelImage",
    "TextureObject",
    "Trap",
    "UndefinedSymbol",
    "UninitialisedRead",
    "UnsupportedFetch",
    "UnsupportedInstruction",
    "UnsupportedTarget",
    "UseAfterFree",
    "Where",
]

if not TYPE_CHECKING:  # type checkers know which names exist
    # The operations and the code generator: a device without a module needs neither.
    _AT_FIRST_USE = {
        "ptx.emulate.program": "EmulatedKernel KernelAttributes Program",
        "ptx.emulate.requirements.check": "UnsupportedTarget",
        "ptx.emulate.requirements.sizes": "SizeLimitExceeded",
    }

    def __getattr__(name: str) -> object:
        for module, names in _AT_FIRST_USE.items():
            if name in names.split():
                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
