"""On which device memory is made that belongs to none: where there is a context already."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
from cudadrv import Context, emulator
from cudadrv.emulator import Emulator
from cudadrv.memory import Advice, RegisteredArray, advise
from cudadrv.memory.staging import LEAST_STAGED_BYTES


def advised() -> None:
    advise(cudadrv.managed_empty(4, "f4"), Advice.READ_MOSTLY)


# Each makes memory that belongs to no device.
MAKERS: dict[str, Callable[[], object]] = {
    "pinned": lambda: cudadrv.pinned_empty(4, "f4"),
    "managed": lambda: cudadrv.managed_empty(4, "f4"),
    "registered": lambda: RegisteredArray(np.zeros(4)),
    "advised": advised,
    "pool": lambda: cudadrv.memory.PinnedPool().empty(4, "f4"),
}


def with_context(machine: Emulator) -> list[int]:
    """The devices that have a primary context."""
    states = [machine.cuDevicePrimaryCtxGetState(machine.cuDeviceGet(n)[1]) for n in range(3)]
    return [ordinal for ordinal, (_, _, is_active) in enumerate(states) if is_active]


@pytest.mark.slow
@pytest.mark.parametrize("made", MAKERS)
def test_a_process_that_works_on_one_device_has_no_context_on_another(made: str) -> None:
    with emulator.session(devices=3) as machine:
        context = cudadrv.cuda_context_for(1)
        kept = MAKERS[made]()
        assert with_context(machine) == [1]
        stream = context.default_stream
        host = np.ones(LEAST_STAGED_BYTES, "u1")
        assert (stream.to_host(stream.to_device(host)) == 1).all()
        assert with_context(machine) == [1]
        del kept


@pytest.mark.parametrize("made", MAKERS)
def test_the_device_of_the_current_context_comes_before_others(made: str) -> None:
    with emulator.session(devices=3) as machine:
        cudadrv.cuda_context_for(1)
        own = Context.create(2)
        kept: list[object] = []

        def work() -> None:
            own.bind()
            kept.append(MAKERS[made]())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert with_context(machine) == [1, 2]
        kept.clear()


def test_a_context_of_one_s_own_is_enough_to_work_there() -> None:
    with emulator.session(devices=3) as machine, Context.create(2):
        kept = cudadrv.pinned_empty(4, "f4")
        assert with_context(machine) == [2]
        del kept


@pytest.mark.parametrize("call", ["cuCtxGetCurrent", "cuCtxGetDevice"])
def test_a_driver_that_does_not_say_where_the_thread_works_is_reported(call: str) -> None:
    with emulator.session() as machine:
        cudadrv.cuda_context_for(0).bind()
        with (
            machine.fail(call),
            pytest.raises(cudadrv.CudaError, match=f"{call} returned CUDA_ERROR_UNKNOWN"),
        ):
            cudadrv.pinned_empty(4, "f4")


def test_without_any_context_it_is_the_first_device() -> None:
    with emulator.session(devices=3) as machine:
        Context.create(1).close()
        kept = cudadrv.pinned_empty(4, "f4")
        assert with_context(machine) == [0]
        del kept
