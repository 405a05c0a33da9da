"""What a launch passes to the driver for each field of its configuration."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.driver._api import CUlaunchAttributeID as _Id
from cudadrv.errors import CudadrvError, LaunchConfigError
from cudadrv.launch import AccessWindow, LaunchAttributes
from tests.noted_calls import replaced_calls

from .conftest import compile_module

# Any: fields have the type int; programs without a type checker pass NumPy's integers too.
integers: Any = np
SOURCE = 'extern "C" __global__ void add(int* x, int step) { x[threadIdx.x] += step; }'


# Any: the union of the binding has a member for each attribute.
def passed(stream: cudadrv.Stream, config: LaunchConfig) -> tuple[Any, dict[int, Any]]:
    """Launch; return the driver's structure and the values of its attributes by number."""
    given: list[Any] = []

    def launch(structure: Any, *_rest: Any) -> tuple[int]:
        given.append(structure)
        return (0,)

    with replaced_calls(cuLaunchKernelEx=launch):
        module = compile_module(stream.context, SOURCE)
        module.kernel("add").launch(stream, config, stream.zeros(64, np.int32), 1)
    (structure,) = given
    assert structure.numAttrs == len(structure.attrs)
    return structure, {int(each.id): each.value for each in structure.attrs}


def test_extents_and_shared_memory_are_those_of_the_configuration(stream: cudadrv.Stream) -> None:
    config = LaunchConfig((2, 3, 4), (5, 6, 7), shared_bytes=48, cooperative=True)
    structure, values = passed(stream, config)
    assert (structure.gridDimX, structure.gridDimY, structure.gridDimZ) == (2, 3, 4)
    assert (structure.blockDimX, structure.blockDimY, structure.blockDimZ) == (5, 6, 7)
    assert structure.sharedMemBytes == 48
    assert {number: value.cooperative for number, value in values.items()} == {
        int(_Id.CU_LAUNCH_ATTRIBUTE_COOPERATIVE): 1
    }


def test_each_attribute_has_the_value_that_the_manual_names(stream: cudadrv.Stream) -> None:
    event = cudadrv.Event(stream.context, timing=False)
    array = stream.zeros(64, np.int32)
    window = AccessWindow.of(array, np.float64(0.25))
    capability = stream.context.device.compute_capability
    config = LaunchConfig(
        2,
        64,
        programmatic=capability >= (9, 0),
        cluster=2 if capability >= (9, 0) else None,
        attributes=LaunchAttributes(
            priority=integers.int64(0),
            memory_domain="remote",
            shared_carveout=integers.uint8(75),
            completion_event=event,
            access_window=window if capability >= (8, 0) else None,
        ),
    )
    _, values = passed(stream, config)
    found: dict[_Id, Callable[[Any], bool]] = {
        _Id.CU_LAUNCH_ATTRIBUTE_PRIORITY: lambda value: value.priority == 0,
        _Id.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: lambda value: int(value.memSyncDomain) == 1,
        _Id.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: (
            lambda value: value.sharedMemCarveout == 75
        ),
        _Id.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: lambda value: (
            (int(value.launchCompletionEvent.event), value.launchCompletionEvent.flags)
            == (int(event.handle), 0)
        ),
    }
    if capability >= (8, 0):
        found[_Id.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW] = lambda value: (
            (
                int(value.accessPolicyWindow.base_ptr),
                value.accessPolicyWindow.num_bytes,
                value.accessPolicyWindow.hitRatio,
                int(value.accessPolicyWindow.hitProp),
                int(value.accessPolicyWindow.missProp),
            )
            == (array.ptr, 256, 0.25, 2, 1)
        )
    if capability >= (9, 0):
        found[_Id.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION] = lambda value: (
            value.programmaticStreamSerializationAllowed == 1
        )
        found[_Id.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] = lambda value: (
            (value.clusterDim.x, value.clusterDim.y, value.clusterDim.z) == (2, 1, 1)
        )
    assert values.keys() == {int(number) for number in found}
    assert [number for number, is_right in found.items() if not is_right(values[number])] == []


def test_a_plain_configuration_has_no_attribute(stream: cudadrv.Stream) -> None:
    structure, values = passed(stream, LaunchConfig(2, 32))
    assert (structure.gridDimX, structure.blockDimX, structure.sharedMemBytes) == (2, 32, 0)
    assert values == {}


def test_the_text_of_a_configuration_names_each_value_that_is_no_default() -> None:
    assert repr(LaunchConfig(2, 32)) == "LaunchConfig(grid=(2, 1, 1), block=(32, 1, 1))"
    config = LaunchConfig(
        2,
        32,
        shared_bytes=16,
        cluster=2,
        cooperative=True,
        programmatic=True,
        attributes=LaunchAttributes(priority=-1),
    )
    assert repr(config) == (
        "LaunchConfig(grid=(2, 1, 1), block=(32, 1, 1), shared_bytes=16, cluster=(2, 1, 1), "
        "cooperative=True, programmatic=True, attributes=LaunchAttributes(priority=-1))"
    )


def test_integers_of_numpy_become_integers_of_python() -> None:
    window = AccessWindow(integers.int64(4096), integers.uint16(64))
    attributes = LaunchAttributes(priority=integers.int8(-1), shared_carveout=integers.int32(5))
    config = LaunchConfig(
        integers.int64(3), (integers.int32(4), 2), integers.uint8(8), integers.int64(1)
    )
    values = (
        window.address, window.nbytes, attributes.priority, attributes.shared_carveout,
        *config.grid, *config.block, config.shared_bytes, *(config.cluster or ()),
    )  # fmt: skip
    assert values == (4096, 64, -1, 5, 3, 1, 1, 4, 2, 1, 8, 1, 1, 1)
    assert {type(value) for value in values} == {int}


def test_configurations_of_equal_values_are_equal_whichever_was_made_before() -> None:
    plain = cudadrv.LaunchConfig(3, 64)
    for known in (plain, cudadrv.LaunchConfig(3, 64)):
        assert (known.grid, known.block, known.shared_bytes) == ((3, 1, 1), (64, 1, 1), 0)
        for copied in (copy.copy(known), copy.deepcopy(known), pickle.loads(pickle.dumps(known))):
            assert copied == known
            assert hash(copied) == hash(known)
        assert dataclasses.replace(known, grid=(4, 1, 1)) == cudadrv.LaunchConfig((4, 1), (64,))
        assert known != cudadrv.LaunchConfig(3, 64, cooperative=True)
        assert known != cudadrv.LaunchConfig(3, 64, 8)
        # They equal integers, and are none.
        for wrong in (3.0, True, np.float64(3)):
            with pytest.raises(LaunchConfigError, match="each extent must be an integer"):
                cudadrv.LaunchConfig(wrong, 64)  # type: ignore[arg-type]
        assert cudadrv.LaunchConfig(np.int32(3), 64) == known


def test_a_share_of_hits_is_between_0_and_1() -> None:
    assert [AccessWindow(1, 1, ratio).hit_ratio for ratio in (0, 1)] == [0, 1]
    for ratio in (-0.01, -1, 1.01, float("nan")):
        with pytest.raises(LaunchConfigError, match="hit_ratio"):
            AccessWindow(1, 1, ratio)


def test_a_written_signature_is_taken_or_rejected_by_its_sizes(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    param = ptx.KernelParam("x", "u64", 8, 8, 0, True, 1)
    step = ptx.KernelParam("step", "s32", 4, 4, 8, False, 1)
    right = ptx.KernelSignature("add", (param, step), 12, 0, None, None)
    array = stream.zeros(64, np.int32)
    kernels.kernel("add", signature=right).launch(stream, LaunchConfig(1, 64), array, 2)
    assert stream.to_host(array).tolist() == [2] * 64
    change = dataclasses.replace
    wrong = {
        "no element": change(right, params=(param, change(step, count=0))),
        "no byte": change(right, params=(param, change(step, nbytes=0))),
        "no whole number": change(right, params=(param, change(step, nbytes=4.0))),
        "one over the other": change(right, params=(param, change(step, offset=4))),
        "shorter than its parameters": change(right, nbytes=11),
        "longer than any": change(right, nbytes=(1 << 16) + 1),
        "of no number": change(right, nbytes="12"),
        "of no type": change(right, params=(param, change(step, ptx_type=None))),
    }
    taken = []
    for what, signature in wrong.items():
        try:
            kernels.kernel("add", signature=signature)
        except CudadrvError:
            continue
        taken.append(what)
    assert taken == []
