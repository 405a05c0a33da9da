"""Each public member of each object: after its close, its parent's, and its session's end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import ClosedError, emulator
from tests.ended_objects import (
    CALLS,
    DESCRIBES,
    FAIL_ALIVE,
    NO_ROW,
    NOT_OF_THE_CONTEXT,
    OBJECTS,
    Lab,
    classes,
    differences,
    members,
    outcomes,
)


def test_every_public_class_and_member_has_a_row() -> None:
    assert classes().keys() == OBJECTS.keys() | NO_ROW.keys()
    known = {full for name in OBJECTS for full, _ in members(name)}
    described = {f"{name}.{each}" for name, text in DESCRIBES.items() for each in text.split()}
    assert CALLS.keys() | described | FAIL_ALIVE <= known


@pytest.mark.slow
def test_each_call_answers_on_live_objects() -> None:
    with emulator.session(2):
        found = outcomes(Lab(), OBJECTS)
    wrong = {full: error for full, error in found.items() if error and full not in FAIL_ALIVE}
    assert not wrong
    assert len(found) > 350


def test_objects_of_an_ended_session_raise() -> None:
    with emulator.session(2):
        first, second = Lab(), Lab()
    assert not differences(outcomes(first, OBJECTS), "ClosedError")
    with emulator.session(2):
        assert not differences(outcomes(second, OBJECTS), "ClosedError")


@pytest.mark.slow
def test_objects_of_a_closed_context_raise() -> None:
    names = [name for name in OBJECTS if name not in NOT_OF_THE_CONTEXT]
    with emulator.session(2):
        lab = Lab()
        lab.context.close()
        assert not differences(outcomes(lab, names), "ClosedError")


@pytest.mark.slow
def test_closed_objects_raise() -> None:
    with emulator.session(2):
        lab = Lab()
        found: dict[str, str] = {}
        for name, attribute in OBJECTS.items():
            item: Any = getattr(lab, attribute)
            # An arena is only emptied, and a device has no end.
            if hasattr(item, "close") and name != "DeviceArena":
                item.close()
                found |= outcomes(lab, [name])
        assert not differences(found, "ClosedError")
        assert len(found) > 200


def test_memory_that_a_cache_holds_is_not_handed_out_after_the_end() -> None:
    """A hit of a cache makes no driver call that could fail."""
    arena = cudadrv.DeviceArena()
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).new_stream()
        allocator = cudadrv.memory.CudaAllocator(stream)
        allocator.deallocate(allocator.allocate(64), 64)
        late = allocator.allocate(32)
        arena.release(*arena.alloc(stream, 4, "a"))
        with pytest.raises(ClosedError):
            stream.close()
            allocator.allocate(64)
        allocator.deallocate(late, 32)
        for call in (
            lambda: allocator.allocate(32),
            allocator.freeze,
            allocator.reset,
            lambda: arena.alloc(stream, 4, "a"),
        ):
            with pytest.raises(ClosedError):
                call()
        assert allocator.statistics().cached_bytes == 0
        other = stream.context.new_stream()
        bucket, slab = arena.alloc(other, 4, "a")  # from the closed stream's list
        assert arena.statistics().hits == 1
        arena.release(bucket, slab)
    with pytest.raises(ClosedError, match="emulator session has ended"):
        other.synchronize()
    with pytest.raises(ClosedError):
        arena.alloc(other, 4, "a")
    with emulator.session():
        new = cudadrv.cuda_context_for(0).new_stream()
        _, slab = arena.alloc(new, 4, "a")
        assert new.to_host(slab).tolist() == np.zeros(4).tolist()
        assert arena.statistics().held_bytes == slab.nbytes
