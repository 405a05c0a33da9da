"""What the driver refuses where its answer was not looked at: waits, a profiler, a function."""

from __future__ import annotations

import pytest

import cudadrv
from cudadrv import DeviceArray, emulator
from cudadrv.errors import CudaError, DriverSymbolMissingError
from cudadrv.memory import GrowingBuffer
from cudadrv.memory.array import AnyDeviceArray
from cudadrv.tensor_map import TensorMap
from tests.noted_calls import calls_of

MIB = 1 << 20


def a_range(stream: cudadrv.Stream) -> tuple[GrowingBuffer, AnyDeviceArray]:
    buffer = GrowingBuffer(stream, 4 * MIB, 4 * MIB)
    array: AnyDeviceArray = DeviceArray(buffer, MIB, "u4")
    stream.fill(array, 3)
    return buffer, array


def test_a_full_host_lets_the_context_be_waited_for_in_another_way() -> None:
    with emulator.session(order="late") as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        buffer, _ = a_range(stream)
        waits = ("cuCtxSynchronize", "cuMemUnmap")
        with machine.fail("cuMemHostAlloc", with_=2), calls_of(*waits) as calls:
            buffer.close()
        assert calls == [("cuCtxSynchronize", 0), ("cuMemUnmap", 0)]


@pytest.mark.parametrize("code", [1, 2, 801])
def test_memory_stays_where_its_context_cannot_be_waited_for(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: told.append(args.exc_value))
    with emulator.session(order="late") as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        buffer, _ = a_range(stream)
        with (
            machine.fail("cuMemHostAlloc", with_=2),
            machine.fail("cuCtxSynchronize", with_=code),
            calls_of("cuMemUnmap") as unmapped,
            pytest.raises(CudaError) as caught,
        ):
            buffer.close()
        assert (caught.value.call, caught.value.code) == ("cuCtxSynchronize", code)
        assert (unmapped, told) == ([], [])


@pytest.mark.parametrize("code", [1, 2, 801])
def test_what_the_wait_itself_could_not_release_is_reported(code: int) -> None:
    with emulator.session(order="late") as machine:
        buffer, _ = a_range(cudadrv.cuda_context_for(0).new_stream())
        with machine.fail("cuMemFreeHost", with_=code), pytest.raises(CudaError) as caught:
            buffer.close()
        assert (caught.value.call, caught.value.code) == ("cuMemFreeHost", code)


@pytest.mark.parametrize("code", [1, 2, 700, 801, 999])
def test_a_profiler_that_does_not_stop_is_reported_unless_the_block_has_raised(code: int) -> None:
    with emulator.session() as machine, machine.fail("cuProfilerStop", times=9, with_=code):
        context = cudadrv.cuda_context_for(0)
        with pytest.raises(CudaError) as caught, context.profiling():
            pass
        assert (caught.value.call, caught.value.code) == ("cuProfilerStop", code)
        with pytest.raises(KeyError), context.profiling():
            raise KeyError("of the block")


@pytest.mark.parametrize("code", [1, 2, 700, 801, 999])
def test_a_driver_that_rejects_to_look_for_a_function_is_not_said_to_lack_it(code: int) -> None:
    with emulator.session() as machine:
        array = cudadrv.cuda_context_for(0).new_stream().zeros((16, 16), "f4")
        with machine.fail("cuGetProcAddress", with_=code), pytest.raises(CudaError) as caught:
            TensorMap(array, (4, 4))
        assert (caught.value.call, caught.value.code) == ("cuGetProcAddress", code)
        with (
            machine.fail("cuGetProcAddress", with_=500),
            pytest.raises(DriverSymbolMissingError, match="cuTensorMapEncodeTiled is not in the"),
        ):
            TensorMap(array, (4, 4))
