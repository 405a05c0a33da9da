"""A thread closes a stream while another, which reuses its memory, asks for the stream's end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver._api import CUevent, CUresult, CUstream
from cudadrv.memory.reuse.arena import DeviceArena
from tests.noted_calls import replaced_calls


def _reuse_slab(former: cudadrv.Stream, stream: cudadrv.Stream) -> None:
    with DeviceArena("f4") as arena:
        bucket, slab = arena.alloc(former, 10)
        arena.release(bucket, slab)
        assert arena.alloc(stream, 10)[1] is slab


def _copy(former: cudadrv.Stream, stream: cudadrv.Stream) -> None:
    stream.copy(stream.empty(10, "f4"), former.zeros(10, "f4"))


def _release(former: cudadrv.Stream, stream: cudadrv.Stream) -> None:
    with stream.alloc(40) as buffer:
        buffer.record_use(former)


@pytest.mark.parametrize("follow", [_reuse_slab, _copy, _release])
def test_a_stream_that_closes_meanwhile_is_waited_for(
    follow: Callable[[cudadrv.Stream, cudadrv.Stream], None],
) -> None:
    closers: list[threading.Thread] = []
    recorded: list[int] = []

    def record_while_it_closes(event: CUevent, stream: CUstream) -> tuple[CUresult]:
        if int(stream) == own and not closers:
            closers.append(threading.Thread(target=former.close))
            closers[0].start()
            closers[0].join(0.2)  # as far as it comes
        result = machine.cuEventRecord(event, stream)
        if not result[0]:
            recorded.append(int(stream))
        return result

    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        with context.new_stream() as former, context.new_stream() as stream:
            own = int(former.handle)
            with replaced_calls(cuEventRecord=record_while_it_closes):
                follow(former, stream)
            closers[0].join()
            assert former.closed
            assert recorded[0] == own
