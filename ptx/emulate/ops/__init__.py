"""The operations, a group of the PTX ISA a file.

How to add an opcode
--------------------
Write its row in a chapter of `ptx.isa.opcodes` (`opcode_row` has the notation). The row names the
file of this folder that has the operation. In that file call

    operation("bfe", ("u32", "s32", "u64", "s64"), 4, _extract, section="bfe")

with the type suffixes as they are written ("f32.s32" for two), the number of operands, and an
emitter. Further arguments:

- `modifiers=`: modifiers that only vary the emitter's work. Any other modifier rejects the
  instruction.
- `writes=`: the number of leading operands that are destinations (default 1; 0 for `st`, `red`,
  `bar`).
- `updates`: the destinations are read, too.
- `reads_carry`, `writes_carry`: the operation uses CC.CF, which emitters read and write as the
  operand `codegen.registers.CARRY`.

A modifier may also be part of the name, so that another family can own it. The record whose name
covers most modifiers wins ("bar.warp.sync" before "bar"). Two records for the same name and type
fail at import.

A text may have modifiers in any order. An emitter finds those of the record's name first, in the
name's order.

An emitter gets a `codegen.emitter.Emitter` and the `Instruction`, and writes Python:

    def _extract(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        value = e.value(i.operands[1], kind)
        start, length = (e.value(operand, "u32") for operand in i.operands[2:])
        e.assign(i.operands[0], kind, f"{e.helper(extract)}({value}, {start}, {length})")

Operands and results:

- `e.value(operand, type)` returns an expression for a register, constant, special register, symbol
  or negated predicate, its bits read as that PTX type; `e.values` the elements of a vector.
- `e.assign(operand, type, expression)` writes a result. The expression must have exactly the NumPy
  type of that PTX type (`model.types.NUMPY`; bit, packed and bf16/fp8 types are unsigned integers).
  It handles guards, sinks and wider registers. `e.assign_all` writes a vector destination.
- `e.is_used(operand)` returns whether a result is ever read.

Names and statements:

- `e.constant(value, kind)` names a typed scalar; `e.helper(function)` names a Python function. The
  function receives arrays or scalars, and must return a scalar if all its arguments are
  (`codegen.emitter.choose` is such a `where`; index a 0-d array with `[()]`).
- `e.temporary(expression)` names an intermediate value, `e.line(code)` is a statement, `f` is the
  fibre and `R` its registers.
- `raise e.reject("why")` rejects a form that is not executed. Never guess its meaning.

When few threads run, they may use code for a single thread (`ops/lane_arithmetic.py`,
`ops/lane_data.py`). `lane_operation(name, types, emit)` registers its emitter, by the name and
types of the operation's record. The emitter gets a `codegen.lane.lane_emitter.LaneEmitter`, whose
expressions are Python numbers. It calls `e.reject()` for a form that NumPy executes; operations
without such an emitter always run in NumPy.

The effect of an operation, apart from its results, is one of:

- `PURE`: none. It may run for absent threads, and is dropped if its result is not used.
- `MEMORY`: it accesses memory or may fault. Under a guard it is branched around, so emitters never
  see its guard.
- `ENDS`: it ends its basic block. The emitter calls `e.leave(expression)` with the value to return:
  the next block's number (`e.following`) or `GONE`.

Memory: `where, offset, space = e.address(operand, space)` and `site = e.site(space, type, count)`
are arguments of `access.memory_access.load` and `store`. All other accesses use `locate(f, where,
offset, site)`, which checks the access and returns an array and an index: an int for one common
address, else (n,). `is_mixed` and `divide` separate generic addresses of several spaces, see
`ops/atomic.py`.

Waiting: an operation with `Effect.SYNCS` always starts its basic block, so that the block can be
executed again. Its emitter calls `ops.warp.sync_lanes`:

    value = e.temporary(e.value(i.operands[1], "b32"))
    group = sync_lanes(e, i, i.operands[-1], {"value": value})
    e.assign(i.operands[0], "b32", f"{e.helper(function)}(f, {group}, {value})")

When the generated code continues after it, all lanes that the membermask names (and that have not
exited) have arrived. `group` is an `exec.sync.warp_group.Group`: rows of 32 places, one row for
each set of lanes that wait for each other.

- `group.grid(f, "value", value)` returns the values of every place, also of lanes in other fibres.
- `group.mine` are the places of this fibre's threads.
- `group.each` spreads one result a row.

Lanes wait in `exec.sync.warp_sync.WarpSync`, threads at barriers in
`exec.sync.block_barrier.BlockBarriers` and `exec.sync.cluster_barrier.ClusterBarriers`. Block
barriers end a block instead: see `ops/barrier.py`. Instructions that a whole warp must execute
together, such as those of the tensor cores, wait by `ops.warp.sync_warp`.

Textures and surfaces: a handle in a register names a `TextureObject` or `TexelImage` of the
`DeviceModel`; `texture.handles.by_handle` finds it. `ops/texture.py` calls
`texture.texture_fetch.fetch`, which goes to `sampling` and `texels`; `ops/surface.py` calls
`texture.surface_access`. Their arithmetic is an H100's, measured; each module states where it is
only near.

Functions that PTX only declares (`vprintf`, `malloc`): `codegen.table.external(name, count, emit)`,
whose emitter reads the caller's arguments with `e.parameter(symbol, type)`, and writes its result
with `e.set_parameter(symbol, type, expression)`.

Faults are raised with a place: `f.where(position, instruction)`; `position` is an index into the
fibre's threads and the instruction is named by `e.scope.bind(i, "instruction")`.
"""
