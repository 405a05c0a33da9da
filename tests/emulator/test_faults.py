"""What a kernel's fault does to its device."""

from __future__ import annotations

from ctypes import c_uint64

import numpy as np
import pytest

from cudadrv.driver._api import (
    CUcontext,
    CUfunction_attribute,
    CUpointer_attribute,
    CUresult,
    CUstreamCaptureMode,
)
from cudadrv.emulator import EmulatedDevice, Emulator, Limits
from ptx.emulate.model.errors import (
    EmulationFault,
    ExecutionError,
    Misaligned,
    OutOfBounds,
    Runaway,
    Trap,
    UseAfterFree,
)

from .calls import LEGACY, Parameters, code, download, functions, launch, load, ok
from .kernels import EMPTY, INCREMENT, MISALIGNED, SPIN, TRAP


def emulator_with(limits: Limits = Limits()) -> tuple[Emulator, CUcontext]:  # noqa: B008  # frozen
    emulator = Emulator(2, limits=limits)
    ok(emulator.cuInit(0))
    return emulator, ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))


@pytest.mark.parametrize(
    ("kernel", "name", "address", "expected", "kind"),
    [
        (INCREMENT, "increment", "outside", 700, OutOfBounds),
        (INCREMENT, "increment", "freed", 700, UseAfterFree),
        (MISALIGNED, "misaligned", "inside", 716, Misaligned),
        (TRAP, "traps", None, 719, Trap),
    ],
    ids=["out of bounds", "use after free", "misaligned", "trap"],
)
def test_a_fault_returns_the_code_of_hardware(
    kernel: str, name: str, address: str | None, expected: int, kind: type[EmulationFault]
) -> None:
    """700, 716 and 719 were measured on an H100 with driver 580."""
    emulator, _ = emulator_with()
    (function,) = functions(emulator, load(emulator, kernel), name)
    inside = int(ok(emulator.cuMemAlloc(64)))
    freed = ok(emulator.cuMemAlloc(64))
    ok(emulator.cuMemFree(freed))
    places = {"inside": inside, "outside": inside + 64, "freed": int(freed)}
    parameters = Parameters() if address is None else Parameters(c_uint64(places[address]))
    (result,) = launch(emulator, function, parameters)
    assert int(result) == expected
    assert type(emulator.last_fault) is kind
    said = ok(emulator.cuGetErrorString(result))
    assert said == str(emulator.last_fault).encode()


def test_each_error_of_the_engine_names_a_result_of_the_driver() -> None:
    kinds = [ExecutionError]
    for kind in kinds:  # grows meanwhile
        kinds += kind.__subclasses__()
    assert len(kinds) > 20
    names = {kind: f"CUDA_ERROR_{kind.result}" for kind in kinds[1:]}
    assert [kind for kind, name in names.items() if not hasattr(CUresult, name)] == []


def test_a_fault_reports_its_place() -> None:
    emulator, _ = emulator_with()
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    memory = int(ok(emulator.cuMemAlloc(64)))
    (result,) = launch(emulator, increment, Parameters(c_uint64(memory + 64)))
    fault = emulator.last_fault
    assert isinstance(fault, OutOfBounds)
    assert fault.address == memory + 64
    assert fault.where.kernel == "increment"
    assert fault.where.block == (0, 0, 0)
    assert fault.where.thread == (0, 0, 0)
    said = ok(emulator.cuGetErrorString(result))
    assert said is not None
    for part in ("increment", f"{memory + 64:#x}", "64 bytes", "ld.global.u32", "PTX line 8"):
        assert part.encode() in said


def test_a_runaway_kernel_is_ended_by_the_limit() -> None:
    emulator, _ = emulator_with(Limits(max_steps=1000))
    (spins,) = functions(emulator, load(emulator, SPIN), "spins")
    assert code(launch(emulator, spins)) == 702
    assert isinstance(emulator.last_fault, Runaway)


def test_after_a_fault_calls_on_the_device_return_as_on_hardware() -> None:
    """Which calls still work, and what the others answer, was measured on an H100."""
    emulator, context = emulator_with()
    device = ok(emulator.cuDeviceGet(0))
    module = load(emulator, EMPTY, TRAP)
    empty, traps = functions(emulator, module, "empty", "traps")
    memory, event = ok(emulator.cuMemAlloc(64)), ok(emulator.cuEventCreate(0))
    stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
    ok(emulator.cuStreamBeginCapture(stream, CUstreamCaptureMode(0)))
    graph = ok(emulator.cuStreamEndCapture(stream))
    executable = ok(emulator.cuGraphInstantiate(graph, 0))
    host = np.zeros(8, np.uint8)
    pool = ok(emulator.cuDeviceGetDefaultMemPool(device))
    assert code(launch(emulator, traps)) == 719
    attribute = CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
    failing: list[tuple[CUresult, *tuple[object, ...]]] = [
        emulator.cuCtxSynchronize(),
        emulator.cuMemGetInfo(),
        emulator.cuMemAlloc(4),
        emulator.cuMemFree(memory),
        emulator.cuMemAllocAsync(4, stream),
        emulator.cuMemFreeAsync(memory, stream),
        emulator.cuMemHostAlloc(64, 0),
        emulator.cuStreamSynchronize(LEGACY),
        emulator.cuStreamQuery(stream),
        emulator.cuStreamCreateWithPriority(1, 0),
        emulator.cuStreamGetPriority(stream),
        emulator.cuCtxGetStreamPriorityRange(),
        emulator.cuEventCreate(0),
        emulator.cuEventRecord(event, stream),
        emulator.cuEventQuery(event),
        emulator.cuEventSynchronize(event),
        emulator.cuEventElapsedTime(event, event),
        emulator.cuStreamWaitEvent(stream, event, 0),
        emulator.cuEventDestroy(event),
        emulator.cuMemcpyHtoDAsync(memory, host.ctypes.data, 8, stream),
        emulator.cuMemsetD8Async(memory, 1, 8, stream),
        emulator.cuModuleLoadData(b".version 8.0"),
        emulator.cuModuleGetFunction(module, b"empty"),
        emulator.cuModuleGetFunction(module, b"nope"),
        emulator.cuModuleGetGlobal(module, b"nope"),
        emulator.cuFuncGetAttribute(attribute, empty),
        emulator.cuFuncGetName(empty),
        emulator.cuFuncGetParamInfo(empty, 0),
        emulator.cuOccupancyMaxActiveBlocksPerMultiprocessor(empty, 32, 0),
        launch(emulator, empty, stream=stream),
        emulator.cuStreamBeginCapture(stream, CUstreamCaptureMode(0)),
        emulator.cuStreamIsCapturing(stream),
        emulator.cuStreamEndCapture(stream),
        emulator.cuGraphLaunch(executable, stream),
        emulator.cuModuleUnload(module),
        emulator.cuStreamDestroy(stream),
        emulator.cuDevicePrimaryCtxRetain(device),
        emulator.cuCtxCreate(None, 0, device),
    ]
    assert [code(result) for result in failing] == [719] * len(failing)
    pointer_type = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    working: list[tuple[CUresult, *tuple[object, ...]]] = [
        emulator.cuInit(0),
        emulator.cuDeviceGetCount(),
        emulator.cuDeviceGetName(20, device),
        emulator.cuDeviceTotalMem(device),
        emulator.cuDeviceGetDefaultMemPool(device),
        emulator.cuMemPoolTrimTo(pool, 0),
        emulator.cuCtxGetCurrent(),
        emulator.cuCtxGetDevice(),
        emulator.cuCtxPushCurrent(context),
        emulator.cuCtxPopCurrent(),
        emulator.cuCtxSetCurrent(context),
        emulator.cuPointerGetAttributes(1, (pointer_type,), int(memory)),
        emulator.cuGraphGetNodes(graph, 0),
        emulator.cuGraphDestroy(graph),
        emulator.cuGraphExecDestroy(executable),
        emulator.cuCtxDestroy(context),
    ]
    assert [code(result) for result in working] == [0] * len(working)


def test_a_fault_spoils_all_contexts_of_its_device_and_no_other_device() -> None:
    emulator, first = emulator_with()
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    assert code(launch(emulator, increment, Parameters(c_uint64(64)))) == 700
    ok(emulator.cuCtxSetCurrent(first))
    assert code(emulator.cuMemAlloc(4)) == 700
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(1))))
    memory = ok(emulator.cuMemAlloc(4))
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    ok(emulator.cuMemsetD8Async(memory, 0, 4, LEGACY))
    assert code(launch(emulator, increment, Parameters(c_uint64(int(memory))))) == 0
    assert download(emulator, memory, 1).tolist() == [1]


def test_the_fault_is_the_cause_of_later_failures_and_of_no_others() -> None:
    emulator, _ = emulator_with()
    (traps,) = functions(emulator, load(emulator, TRAP), "traps")
    code(launch(emulator, traps))
    fault = emulator.last_fault
    assert isinstance(fault, Trap)
    assert fault.__traceback__ is None
    code(emulator.cuMemAlloc(4))
    assert emulator.last_fault is fault
    assert code(emulator.cuDeviceGet(99)) == 101
    assert emulator.last_fault is None


def test_memory_of_another_device_is_out_of_bounds() -> None:
    emulator = Emulator([EmulatedDevice(), EmulatedDevice()])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(1))))
    memory = ok(emulator.cuMemAlloc(4))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    assert code(launch(emulator, increment, Parameters(c_uint64(int(memory))))) == 700


def test_a_reset_of_the_primary_context_heals_nothing() -> None:
    """As on hardware: the process has to be restarted, or here the emulator replaced."""
    emulator = Emulator()
    ok(emulator.cuInit(0))
    device = ok(emulator.cuDeviceGet(0))
    ok(emulator.cuCtxSetCurrent(ok(emulator.cuDevicePrimaryCtxRetain(device))))
    (traps,) = functions(emulator, load(emulator, TRAP), "traps")
    assert code(launch(emulator, traps)) == 719
    ok(emulator.cuDevicePrimaryCtxRelease(device))
    assert code(emulator.cuDevicePrimaryCtxRetain(device)) == 719
    assert code(emulator.cuMemAlloc(4)) == 709
