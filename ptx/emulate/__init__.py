"""PTX executed in NumPy: what stands in for a GPU where there is none.

`Program(module, device)` loads a parsed module; `Program.kernel(name)` generates one Python
function for each basic block of the kernel and of what it may call; `EmulatedKernel.launch` runs.

How it runs
-----------
Thread blocks are executed in chunks (`chunk.Chunk`), whole blocks of them, by default 65,536
threads. A thread's number in its chunk is its lane. Lanes at the same place form a fibre
(`fibre.Fibre`) with registers of its own: a register's value is a NumPy scalar where all its
threads agree, else an (n,) array; both behave alike in operators, `.view`, `.astype`, `.ndim`.
Arrays are never changed in place. A branch that divides a fibre splits it; the fibre with the
smallest place runs; fibres that meet become one (`merge.py`). What depends on a thread's place in
its block alone is computed once a launch and shared by its chunks (`steady.py`, `kept.py`).
Fibres that wait for others or for a time are in `waiting.WaitingFibres`; mbarrier objects are in
`mbarrier.Mbarriers`. Chunks of a grid that the device
would hold all at once take turns (`launch.py`); those of a larger one run one after another.

How to add an opcode
--------------------
Write `ops/<family>.py`, import it in `ops/__init__.py`, and call for each opcode

    operation("bfe", ("u32", "s32", "u64", "s64"), 4, _extract, section="bfe")

with the type suffixes as they are written ("f32.s32" for two), the number of operands, and an
emitter. Modifiers that only vary the emitter's work go into `modifiers=`; one that is not named
there refuses the instruction. A modifier may also be part of the name, so that another family can
own it: the record whose name covers most modifiers wins ("bar.warp.sync" before "bar"). Two
records for the same name and type fail at import. `writes=` is how many of the first operands are
destinations (1 unless told; 0 for `st`, `red`, `bar`), `updates` that it reads them, too;
`reads_carry` and `writes_carry` say that it uses CC.CF, which emitters read and write as the
operand `flow.CARRY`. A text may have modifiers in any order: an emitter finds those of the record's
name in front, in the name's order.

An emitter gets an `emitter.Emitter` and the `Instruction`, and writes Python:

    def _extract(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        value = e.value(i.operands[1], kind)
        start, length = (e.value(operand, "u32") for operand in i.operands[2:])
        e.assign(i.operands[0], kind, f"{e.helper(extract)}({value}, {start}, {length})")

- `e.value(operand, type)` gives an expression for a register, constant, special register, symbol
  or negated predicate, its bits read as that PTX type; `e.values` the elements of a vector.
- `e.assign(operand, type, expression)` writes a result. The expression must have exactly the NumPy
  type of that PTX type (`types.NUMPY`; bit, packed and bf16/fp8 types are unsigned integers).
  It sees to guards, sinks and wider registers. `e.assign_all` writes a vector destination.
- `e.constant(value, kind)` names a typed scalar; `e.helper(function)` names a Python function,
  which gets arrays or scalars and must give a scalar if all its arguments are (`emitter.choose` is
  `where` with that habit; index a 0-d array with `[()]`).
- `e.temporary(expression)` names an intermediate value, `e.line(code)` is a statement, `f` is the
  fibre and `R` its registers. `e.is_used(operand)` says whether a result is ever read.
- `raise e.refuse("why")` when a form is not executed: never guess.

The effect says what else an operation does. `PURE`: nothing; it may run for absent threads, and is
dropped where its result is not used. `MEMORY`: it touches memory or may fault; under a guard it is
branched around, so emitters never see its guard. `ENDS`: it ends its basic block; the emitter calls
`e.leave(expression)` with what to return: the next block's number (`e.following`) or `GONE`.

Memory: `where, offset, space = e.address(operand, space)` and `site = e.site(space, type, count)`
are handed to `access.load`, `store`, or, for anything else, `access.locate(f, where, offset,
site)`, which checks the access and gives an array and an index: an int for one common address,
else (n,). `is_mixed` and `divide` part generic addresses of several spaces, see `ops/atomic.py`.

Meetings: an operation with `Effect.SYNCS` always starts its basic block, so that the block can be
executed again. Its emitter calls `ops.meet.meet`:

    value = e.temporary(e.value(i.operands[1], "b32"))
    group = meet(e, i, i.operands[-1], {"value": value})
    e.assign(i.operands[0], "b32", f"{e.helper(function)}(f, {group}, {value})")

When the generated code goes on behind it, all lanes that the membermask names (and that have not
exited) have arrived, and `group` is a `warp_group.Group`: rows of 32 places, one row for each set
of lanes that meet. `group.grid(f, "value", value)` gives what every place brought, also from lanes
in other fibres, `group.mine` the places of this fibre's threads, `group.each` spreads one result a
row. Parked lanes are in `warp_meeting.WarpSync`, threads at barriers in
`block_barrier.BlockBarriers` and `cluster_barrier.ClusterBarriers`; block barriers end a block
instead: see `ops/barrier.py`. What a whole warp must execute at one place, as the instructions of
the tensor cores, meets by `ops.aligned.meet_warp`.

Textures and surfaces: a handle in a register names a `texture.Texture` or `texture.Image` of the
`DeviceModel`; `handles.by_handle` finds it. `ops/texture.py` calls `texture_fetch.fetch`, which
goes to `sampling` (with `texel_place`, `mipmap`, `cubemap`, `texels`, `filtering`);
`ops/surface.py` calls `surface_access`. Their arithmetic is an H100's, measured; each module says
where it is only near.

Functions that PTX only declares (`vprintf`, `malloc`): `table.external(name, emit)`, whose emitter
reads the caller's arguments with `e.parameter(symbol, type)`, writes its result with
`e.set_parameter(symbol, type, expression)`, and may leave values in `f.blocks.launch.results`.

Faults are raised with a place: `f.blocks.launch.where(f, position, instruction)`; `position` is an
index into the fibre's threads and the instruction is named by `e.scope.bind(i, "instruction")`.
"""

from __future__ import annotations

from ptx.emulate.exec.device_model import DeviceModel
from ptx.emulate.exec.limits import DEFAULT_LIMITS, Limits
from ptx.emulate.memory.device_memory import Allocation, DeviceMemory
from ptx.emulate.model.errors import (
    AddressSpaceExhausted,
    AssertionFailed,
    BadFree,
    BarrierDivergence,
    Deadlock,
    EmulationFault,
    InvalidBranch,
    InvalidCall,
    InvalidFree,
    InvalidTextureHandle,
    LaunchError,
    MemoryFault,
    Misaligned,
    OutOfBounds,
    OutOfMemory,
    Runaway,
    StackOverflow,
    SynchronisationFault,
    Trap,
    UninitialisedRead,
    UnsupportedFetch,
    UnsupportedInstruction,
    UseAfterFree,
    Where,
)
from ptx.emulate.program import EmulatedKernel, KernelAttributes, Program
from ptx.emulate.texture.texture import AddressMode, Image, Texture

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
    "Image",
    "InvalidBranch",
    "InvalidCall",
    "InvalidFree",
    "InvalidTextureHandle",
    "KernelAttributes",
    "LaunchError",
    "Limits",
    "MemoryFault",
    "Misaligned",
    "OutOfBounds",
    "OutOfMemory",
    "Program",
    "Runaway",
    "StackOverflow",
    "SynchronisationFault",
    "Texture",
    "Trap",
    "UninitialisedRead",
    "UnsupportedFetch",
    "UnsupportedInstruction",
    "UseAfterFree",
    "Where",
]
