"""Events that two processes of one host have."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import cudadrv
from cudadrv import Event, MemoryPool
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CudaError,
    ExportError,
    InvalidHandleError,
    WrongDeviceError,
)
from cudadrv.ipc import IpcEventHandle

from .peer import KEPT, Peer


def keep(name: str, value: object) -> None:
    KEPT[name] = value


def kept(name: str) -> object:
    return KEPT[name]


def drop(name: str) -> None:
    del KEPT[name]
    gc.collect()


def test_a_stream_of_one_process_waits_for_work_of_another(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    context = stream.context
    with cudadrv.using_memory(MemoryPool(shareable=True)):
        array, copy = stream.zeros(1 << 22, np.int32), stream.zeros(1 << 22, np.int32)
    done = Event(context, timing=False, interprocess=True)
    theirs = peer.ask(keep_all, array, copy, done)
    for value in range(60):
        stream.fill(array, value)
    done.record(stream)
    # Their stream copies what stands there once this one is so far, and records an event of theirs.
    peer.ask(copy_after_the_event)
    stream.wait(theirs)
    stream.copy(array, copy)
    assert stream.to_host(array[-1:]).item() == 59
    assert stream.to_host(array[:1]).item() == 59
    done.synchronize()
    theirs.synchronize()
    assert (done.is_done(), theirs.is_done()) == (True, True)
    theirs.close()
    peer.ask(drop, "all")


def keep_all(array: object, copy: object, done: Event) -> Event:
    context = cudadrv.cuda_context_for(0)
    KEPT["all"] = array, copy, done, Event(context, timing=False, interprocess=True)
    assert done.interprocess
    assert not done.timing
    own = KEPT["all"][3]
    assert isinstance(own, Event)
    return own


def copy_after_the_event() -> None:
    array, copy, done, own = KEPT["all"]
    with cudadrv.cuda_context_for(0).new_stream() as stream:
        stream.wait(done)
        stream.copy(copy, array)
        own.record(stream)


def test_an_event_is_shared_whichever_context_is_current(
    context: cudadrv.Context, second_context: cudadrv.Context, peer: Peer
) -> None:
    events = [Event(context, timing=False, interprocess=True) for _ in range(2)]
    with second_context.new_stream() as stream:
        for event in events:  # the driver of CUDA 13.0 ended the process at the first
            assert current().api.cuCtxSetCurrent(second_context.handle) == (0,)
            assert peer.ask(opened_and_recorded, pickle.dumps(IpcEventHandle.of(event)))
            stream.wait(event)
        stream.synchronize()
    assert all(event.is_done() for event in events)


@pytest.mark.slow
def test_a_stream_of_another_device_waits_for_an_event_of_several_processes(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    done = Event(stream.context, timing=False, interprocess=True)
    array = stream.zeros(1 << 22, np.int32)
    for value in range(60):
        stream.fill(array, value)
    done.record(stream)
    with second_context.new_stream() as other, other.unordered():
        other.wait(done)
        copy = other.empty(1 << 22, np.int32)
        other.copy(copy, array)
        assert other.to_host(copy[-1:]).item() == 59
    with second_context.new_graph() as graph, pytest.raises(WrongDeviceError):
        graph.add_wait(done)


def test_an_event_that_comes_back_is_the_event_itself(
    context: cudadrv.Context, stream: cudadrv.Stream, peer: Peer
) -> None:
    event = Event(context, timing=False, interprocess=True)
    peer.ask(keep, "event", event)
    back = peer.ask(kept, "event")
    assert int(back.handle) == int(event.handle)
    event.close()
    back.record(stream)
    back.synchronize()
    peer.ask(drop, "event")
    assert back.is_done()


def test_a_handle_is_bytes_and_is_opened_in_any_process(
    context: cudadrv.Context, peer: Peer
) -> None:
    event = Event(context, timing=False, interprocess=True)
    handle = IpcEventHandle.of(event)
    assert pickle.loads(pickle.dumps(handle)) == handle
    assert peer.ask(opened_and_recorded, pickle.dumps(handle))
    event.synchronize()
    assert event.is_done()


def opened_and_recorded(pickled: bytes) -> bool:
    context = cudadrv.cuda_context_for(0)
    with pickle.loads(pickled).open(context) as event, context.new_stream() as stream:
        event.record(stream)
        event.synchronize()
        return bool(event.is_done())


@pytest.mark.slow
def test_a_killed_process_leaves_events_of_others_usable(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    event = Event(context, timing=False, interprocess=True)
    killed = Peer()
    killed.ask(keep, "event", event)
    handle = killed.ask(handle_of_own)
    killed.kill()
    if context.device.is_emulated:
        with pytest.raises(CudaError):
            handle.open(context)
    else:
        handle.open(context).close()  # the driver of CUDA 13.0 keeps it for who asks
    event.record(stream)
    event.synchronize()
    assert event.is_done()


def handle_of_own() -> IpcEventHandle:
    context = cudadrv.cuda_context_for(0)
    KEPT["own"] = Event(context, timing=False, interprocess=True)
    return IpcEventHandle.of(KEPT["own"])


@pytest.mark.slow
def test_what_cannot_be_shared_is_rejected_with_what_to_do(
    context: cudadrv.Context, peer: Peer
) -> None:
    with pytest.raises(ArgumentValueError, match="give timing=False"):
        Event(context, interprocess=True)
    plain = Event(context, timing=False)
    with Event(context, timing=False, interprocess=True) as event:
        with pytest.raises(ExportError, match="make it with interprocess=True"):
            IpcEventHandle.of(plain)
        with pytest.raises(ExportError, match="make it with interprocess=True"):
            peer.ask(keep, "event", plain)
        with pytest.raises(ArgumentTypeError, match="interprocess=True"):
            pickle.dumps(event)
        with pytest.raises(InvalidHandleError):
            event.elapsed_ms(plain)
    device = context.device.uuid.bytes
    with pytest.raises(ArgumentValueError, match="3 bytes are not the handle of an event"):
        IpcEventHandle(b"abc", device).open(context)
    with pytest.raises(WrongDeviceError):
        IpcEventHandle(bytes(64), bytes(16)).open(context)
    with pytest.raises(CudaError):
        IpcEventHandle(bytes(64), device).open(context)
