"""PTX executed in NumPy, without a GPU.

`Program(module, device)` loads a parsed module; `Program.kernel(name)` generates one Python
function for each basic block of the kernel and of what it may call; `EmulatedKernel.launch` runs.

How it runs
-----------
Thread blocks are executed in chunks of whole blocks, by default of 65,536 threads
(`threads/resident_blocks.py`). A thread's number in its chunk is its lane.

Lanes at the same place in the code form a fibre, a group of threads that execute together
(`threads/fibre.py`). Each fibre has registers of its own. A register's value is a NumPy scalar if
all threads agree, else an (n,) array. Both behave alike in operators, `.view`, `.astype`, `.ndim`.
Arrays are never changed in place.

A divergent branch splits a fibre. The fibre with the smallest place runs (`exec/scheduler.py`), and
fibres at the same place merge (`exec/merge.py`). Waiting fibres are in `exec/sync/waiting.py`,
mbarrier objects in `exec/sync/mbarrier.py`.

Some values depend only on a thread's position in its block. `codegen/analysis/block_invariant.py`
finds them; they are computed once a launch and shared by its chunks (`threads/launch_plan.py`).

If the device would hold the whole grid at once, its chunks take turns (`exec/launch.py`). Chunks of
a larger grid run one after another.

If few threads execute a block often, or threads diverge, each thread has its registers as Python
numbers and runs code for a single thread (`exec/lane`, `codegen/lane`, `ops/lane_arithmetic`,
`ops/lane_data`). Instructions without such code run in NumPy, one by one. Bits, faults and the
order of accesses are the same in both forms.

With a `LaunchOrder` blocks, warps and lanes run in another order (`exec/order`). Kernels that are
correct only because threads run together fail there.

The layers, from top to bottom; a file imports from its own layer and from those below. From a
module to its code:

- `program`: a module on a device, and its kernels; `watchers`: the observers of its launches.
- `check`: observers that report races, unwritten memory, accesses out of bounds, and divisors.
- `count`: an observer that counts executed instructions and accesses.
- `history`: an observer that records accesses in their order.
- `requirements`: what instructions need of a module's target and version.
- `ops`: the operations, a group of the PTX ISA a file; `ops/__init__.py` shows how to add one.
- `codegen`: basic blocks, the table of operations, the emitter, and the generator.

Execution:

- `exec`: scheduling of fibres, and launches; `exec/sync`: waits and synchronisation.
- `texture`: conversion of coordinates to texels.
- `access`: accesses of threads to memory, and their faults.
- `threads`: fibres, the blocks that are executed together, and their launch.

Memory and definitions:

- `check.findings`: what checks report.
- `kernel_facts`: facts about a kernel's code beside its functions; `observer`: the interface of
  what observes a launch.
- `memory`: device memory, its layout, and the images in it.
- `model`: shared definitions: types, positions of threads, addresses, faults, the clock.
- `ieee`: exact floating-point arithmetic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptx.emulate.memory.address_ranges import Allocation
    from ptx.emulate.memory.device_memory import DeviceMemory
    from ptx.emulate.memory.texture_object import AddressMode, TexelImage, TextureObject
    from ptx.emulate.model.errors import (
        AddressSpaceExhausted,
        AssertionFailed,
        BadFree,
        BarrierDivergence,
        Deadlock,
        EmulationFault,
        EndlessLoop,
        ExecutionError,
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
        OutsideCluster,
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
    from ptx.emulate.program import EmulatedKernel, KernelAttributes, Program
    from ptx.emulate.requirements.check import UnsupportedTarget
    from ptx.emulate.requirements.sizes import SizeLimitExceeded
    from ptx.emulate.threads.device_model import DeviceModel
    from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits

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
    "ExecutionError",
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
    "OutsideCluster",
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
    # This file imports none of the package's: see `tests/pure/test_layers.py`.
    _AT_FIRST_USE = {
        "ptx.emulate.memory.address_ranges": "Allocation",
        "ptx.emulate.memory.device_memory": "DeviceMemory",
        "ptx.emulate.memory.texture_object": "AddressMode TexelImage TextureObject",
        "ptx.emulate.model.errors": (
            "AddressSpaceExhausted AssertionFailed BadFree BarrierDivergence Deadlock "
            "EmulationFault EndlessLoop ExecutionError InvalidBranch InvalidCall InvalidCondition "
            "InvalidFree InvalidTensorMap InvalidTextureHandle LaunchError MemoryFault Misaligned "
            "MisalignedCoordinate NegativeCoordinate OutOfBounds OutOfMemory OutsideCluster "
            "Runaway StackOverflow SynchronisationFault TensorMemoryFault Trap UndefinedSymbol "
            "UninitialisedRead UnsupportedFetch UnsupportedInstruction UseAfterFree Where"
        ),
        "ptx.emulate.model.order": "LaunchOrder",
        "ptx.emulate.threads.device_model": "DeviceModel",
        "ptx.emulate.threads.limits": "DEFAULT_LIMITS Limits",
        "ptx.emulate.program": "EmulatedKernel KernelAttributes Program",
        "ptx.emulate.requirements.check": "UnsupportedTarget",
        "ptx.emulate.requirements.sizes": "SizeLimitExceeded",
    }

    def __getattr__(name: str) -> object:
        for module, names in _AT_FIRST_USE.items():
            if name in names.split():
                value = getattr(importlib.import_module(module), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
