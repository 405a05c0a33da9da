"""Barriers in shared memory that count arrivals and bytes. PTX ISA, "mbarrier".

Memory order and scope change nothing: every access is done at once, in order.
"""

from __future__ import annotations

from functools import partial

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.issued_copies import note_counted
from ptx.emulate.exec.sync.mbarrier import mbarriers_of, pending_count
from ptx.emulate.ops.bulk_copy import arrive_later
from ptx.isa.model import Instruction, Operand, Sink

_operation = partial(operation, section="mbarrier")
_HERE = ("shared", "shared::cta")
_ANYWHERE = (*_HERE, "shared::cluster")
_SCOPES = ("cta", "cluster")


def mbarrier_place(e: Emitter, i: Instruction, operand: Operand) -> str:
    """Write the location of an object: the addresses, the offset and the site, as arguments."""
    addresses, offset, space = e.address(operand, i.facts.space)
    if space not in ("shared", "generic"):
        raise e.reject("an mbarrier object lies in shared memory")
    return f"{addresses}, {offset}, {e.site(space, 'u64', writes=True)}"


def _objects(e: Emitter) -> str:
    return f"{e.helper(mbarriers_of)}(f.blocks)"


def _initialise(e: Emitter, i: Instruction) -> None:
    location, count = mbarrier_place(e, i, i.operands[0]), e.value(i.operands[1], "u32")
    e.line(f"{_objects(e)}.initialise(f, {location}, {count})")


def _invalidate(e: Emitter, i: Instruction) -> None:
    e.line(f"{_objects(e)}.invalidate(f, {mbarrier_place(e, i, i.operands[0])})")


def _transaction(e: Emitter, i: Instruction) -> None:
    location, tx = mbarrier_place(e, i, i.operands[0]), e.value(i.operands[1], "u32")
    method = "expect" if "expect_tx" in i.modifiers else "deliver"
    e.line(f"{_objects(e)}.{method}(f, {location}, {tx})")


def _arrive(e: Emitter, i: Instruction) -> None:
    target, address, *remaining = i.operands
    if i.facts.reaches_cluster and not isinstance(target, Sink):
        raise e.reject("an arrival in another block's memory gives no state")
    location = mbarrier_place(e, i, address)
    last = e.value(remaining[0], "u32") if remaining else e.constant(1, "u32")
    options = ""
    if "expect_tx" in i.modifiers:
        last = f"{e.constant(1, 'u32')}, {last}"
    if "arrive_drop" in i.modifiers:
        options += ", drops=True"
    if "noComplete" in i.modifiers:
        options += ", completes=False"
    if "relaxed" in i.modifiers:
        options += ", releases=False"
    scope = next((word for word in i.modifiers if word in _SCOPES), "")
    options += f", scope={scope!r}"
    state = e.temporary(f"{_objects(e)}.arrive(f, {location}, {last}{options})")
    e.assign(target, "b64", state)


def _wait(e: Emitter, i: Instruction) -> None:
    target, address, phase, *remaining = i.operands
    parity = "parity" in i.modifiers
    limit = "0" if "test_wait" in i.modifiers else "None"
    if remaining:
        limit = e.value(remaining[0], "u32")
    state = e.value(phase, "u32" if parity else "u64")
    location = mbarrier_place(e, i, address)
    are_complete = e.temporary(
        f"f.scheduler.waiting.timed_waits.wait(f, {location}, {state}, {parity}, {limit}, {e.here},"
        f" acquires={'relaxed' not in i.modifiers})"
    )
    e.line(f"if {are_complete} is None: return -1")
    e.assign(target, "pred", are_complete)


def _pending(e: Emitter, i: Instruction) -> None:
    state = e.value(i.operands[1], "u64")
    e.assign(i.operands[0], "u32", f"{e.helper(pending_count)}({state})")


def _arrive_for_copies(e: Emitter, i: Instruction) -> None:
    """The thread's `cp.async` are done, so the arrival follows at once, unless they are late.

    Without `.noinc` one more arrival becomes pending before: nothing changes in the end.
    """
    location = mbarrier_place(e, i, i.operands[0])
    e.line(f"{e.helper(note_counted)}(f, {location})")
    if e.late.copies:
        e.line(f"{e.helper(arrive_later)}(f, {location}, counted={'noinc' in i.modifiers})")
    elif "noinc" in i.modifiers:
        e.line(f"{_objects(e)}.arrive(f, {location}, {e.constant(1, 'u32')})")
    else:
        e.line(f"{_objects(e)}.check(f, {location})")


def _record(
    name: str, arity: int | tuple[int, ...], emit: object, modifiers: tuple[str, ...], writes: int
) -> None:
    assert callable(emit)
    _operation(
        name, ("b64",), arity, emit, effect=Effect.MEMORY, modifiers=modifiers, writes=writes
    )


_record("mbarrier.init", 2, _initialise, _HERE, 0)
_record("mbarrier.inval", 1, _invalidate, _HERE, 0)
for _name in ("expect_tx", "complete_tx"):
    _record(f"mbarrier.{_name}", 2, _transaction, ("relaxed", *_SCOPES, *_ANYWHERE), 0)
for _name in ("mbarrier.arrive", "mbarrier.arrive_drop"):
    _orders = ("release", "relaxed", *_SCOPES)
    _record(_name, (2, 3), _arrive, (*_orders, *_ANYWHERE), 1)
    _record(f"{_name}.expect_tx", 3, _arrive, (*_orders, *_ANYWHERE), 1)
    _record(f"{_name}.noComplete", 3, _arrive, ("release", "cta", *_HERE), 1)
for _name, _arity in (("test_wait", (3,)), ("try_wait", (3, 4))):
    _operation(
        f"mbarrier.{_name}",
        ("b64",),
        _arity,
        _wait,
        effect=Effect.SYNCS,
        modifiers=("parity", "acquire", "relaxed", *_SCOPES, *_HERE),
    )
_operation("mbarrier.pending_count", ("b64",), 2, _pending)
_record("cp.async.mbarrier.arrive", 1, _arrive_for_copies, ("noinc", *_HERE), 0)
