"""What a launch requests of the scheduler and of the caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver._api import CUkernelNodeAttrID as _Id
from cudadrv.errors import ArgumentTypeError, ClosedError, LaunchConfigError, WrongDeviceError
from cudadrv.launch import AccessWindow, LaunchAttributes

from .conftest import all_functions

SOURCE = """
extern "C" __global__ void add(int* x, int step)
{ x[blockIdx.x * blockDim.x + threadIdx.x] += step; }
"""


def of_node(node: cudadrv.graph.KernelNode, number: _Id) -> Any:
    """Read an attribute of a kernel's node from the driver, as the binding's union."""
    code, value = all_functions().cuGraphKernelNodeGetAttribute(node.handle, number)
    assert not code
    return value


def node_with(
    kernels: cudadrv.Module, stream: cudadrv.Stream, attributes: LaunchAttributes
) -> tuple[cudadrv.graph.KernelNode, cudadrv.Graph]:
    graph = stream.context.new_graph()
    config = LaunchConfig(2, 32, attributes=attributes)
    return graph.add_kernel(kernels.kernel("add"), config, stream.zeros(64, np.int32), 1), graph


def test_the_driver_gets_the_priority_and_the_memory_domain(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    _, highest = stream.context.priority_range()
    node, graph = node_with(
        kernels, stream, LaunchAttributes(priority=highest, memory_domain="remote")
    )
    with graph:
        assert of_node(node, _Id.CU_LAUNCH_ATTRIBUTE_PRIORITY).priority == highest
        assert int(of_node(node, _Id.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain) == 1


def test_the_driver_gets_the_access_window(kernels: cudadrv.Module, stream: cudadrv.Stream) -> None:
    if stream.context.device.compute_capability < (8, 0):
        pytest.skip("needs compute capability 8.0")
    array = stream.zeros(1024, np.float32)
    window = AccessWindow.of(array, 0.5, hit="persisting", miss="normal")
    assert (window.address, window.nbytes) == (array.ptr, 4096)
    node, graph = node_with(kernels, stream, LaunchAttributes(access_window=window))
    with graph:
        policy = of_node(node, _Id.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow
        assert (int(policy.base_ptr), policy.num_bytes) == (array.ptr, 4096)
        assert (policy.hitRatio, int(policy.hitProp), int(policy.missProp)) == (0.5, 2, 0)


def test_launches_with_attributes_compute_the_same(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    array = stream.zeros(64, np.int32)
    event = cudadrv.Event(stream.context, timing=False)
    attributes = LaunchAttributes(
        priority=0, memory_domain="default", shared_carveout=25, completion_event=event
    )
    config = LaunchConfig(2, 32, attributes=attributes)
    for _ in range(4):
        kernels.kernel("add").launch(stream, config, array, 2)
    kernels.kernel("add").bind(stream, config).prepare(array, 3)()
    assert stream.to_host(array).tolist() == [11] * 64
    assert config == LaunchConfig(2, 32, attributes=attributes)
    assert hash(config) == hash(LaunchConfig(2, 32, attributes=attributes))
    assert config != LaunchConfig(2, 32)


def test_the_completion_event_is_recorded_by_the_launch(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    event = cudadrv.Event(stream.context, timing=False)
    config = LaunchConfig(2, 32, attributes=LaunchAttributes(completion_event=event))
    array = stream.zeros(64, np.int32)
    kernels.kernel("add").launch(stream, config, array, 1)
    event.synchronize()
    assert event.is_done()
    assert stream.to_host(array).sum() == 64


def test_a_closed_completion_event_is_rejected(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    event = cudadrv.Event(stream.context, timing=False)
    config = LaunchConfig(2, 32, attributes=LaunchAttributes(completion_event=event))
    array = stream.zeros(64, np.int32)
    launcher = kernels.kernel("add").bind(stream, config)
    launcher(array, 1)
    event.close()
    with pytest.raises(ClosedError, match="event was closed"):
        launcher(array, 1)
    assert stream.to_host(array).sum() == 64


def test_an_event_of_another_context_is_rejected(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    with cudadrv.Context.create(0) as other:
        event = cudadrv.Event(other, timing=False)
        config = LaunchConfig(1, 32, attributes=LaunchAttributes(completion_event=event))
        with pytest.raises(WrongDeviceError, match="completion_event"):
            kernels.kernel("add").launch(stream, config, stream.zeros(32, np.int32), 1)


def test_a_priority_that_the_device_lacks_is_rejected(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    least, greatest = stream.context.priority_range()
    config = LaunchConfig(1, 32, attributes=LaunchAttributes(priority=greatest - 1))
    with pytest.raises(LaunchConfigError, match=f"has {greatest} to {least}"):
        kernels.kernel("add").launch(stream, config, stream.zeros(32, np.int32), 1)


def test_a_preferred_cluster_needs_a_device_that_has_one(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    attributes = LaunchAttributes(preferred_cluster=(4, 1, 1))
    config = LaunchConfig(8, 32, cluster=2, attributes=attributes)
    array = stream.zeros(256, np.int32)
    if stream.context.device.compute_capability < (10, 0):
        with pytest.raises(LaunchConfigError, match=r"compute capability 10\.0"):
            kernels.kernel("add").launch(stream, config, array, 1)
        return
    kernels.kernel("add").launch(stream, config, array, 1)
    assert stream.to_host(array).tolist() == [1] * 256
    odd = LaunchConfig(9, 32, cluster=3, attributes=attributes)
    with pytest.raises(LaunchConfigError, match="no multiple of cluster"):
        kernels.kernel("add").launch(stream, odd, array, 1)


def test_a_window_larger_than_the_device_allows_is_rejected(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    window = AccessWindow(1 << 20, 1 << 40)
    config = LaunchConfig(1, 32, attributes=LaunchAttributes(access_window=window))
    with pytest.raises(LaunchConfigError, match="access window of 1099511627776 bytes"):
        kernels.kernel("add").launch(stream, config, stream.zeros(32, np.int32), 1)


def test_a_node_has_no_completion_event(kernels: cudadrv.Module, stream: cudadrv.Stream) -> None:
    event = cudadrv.Event(stream.context, timing=False)
    with pytest.raises(LaunchConfigError, match="as a node"):
        node_with(kernels, stream, LaunchAttributes(completion_event=event))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"priority": 0.5}, "priority is 0.5"),
        ({"preferred_cluster": (2, 0)}, "preferred_cluster is"),
        ({"memory_domain": "far"}, "memory_domain is 'far': give one of default, remote"),
        ({"shared_carveout": 101}, "shared_carveout is 101: give 0 to 100 percent"),
        ({"shared_carveout": -1}, "shared_carveout is -1: give 0 to 100 percent"),
        ({"shared_carveout": 0.5}, "shared_carveout is 0.5: give 0 to 100 percent"),
    ],
)
def test_values_out_of_range_are_rejected(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchConfigError) as raised:
        LaunchAttributes(**given)
    assert message in str(raised.value)


def test_values_of_another_type_are_rejected() -> None:
    with pytest.raises(ArgumentTypeError, match="access_window is .* give an AccessWindow"):
        LaunchAttributes(access_window=(4096, 4))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ArgumentTypeError, match="completion_event is 3, .* give an Event"):
        LaunchAttributes(completion_event=3)  # type: ignore[arg-type]  # the mistake


def test_the_least_and_the_greatest_values_are_accepted() -> None:
    carveouts = [LaunchAttributes(shared_carveout=each).shared_carveout for each in (0, 1, 99, 100)]
    assert carveouts == [0, 1, 99, 100]
    for ratio in (0, 1):
        for hit in ("normal", "streaming", "persisting"):
            for miss in ("normal", "streaming"):
                window = AccessWindow(1, 1, ratio, hit, miss)
                assert (window.hit_ratio, window.hit, window.miss) == (ratio, hit, miss)


def test_windows_out_of_range_are_rejected() -> None:
    for given in (
        (0, 4), (4096, 0), (4096, 4, 1.5), (4096, 4, -0.5), (4096, 4, 1.0, "persistent"),
    ):  # fmt: skip
        with pytest.raises(LaunchConfigError):
            AccessWindow(*given)
    with pytest.raises(LaunchConfigError, match="miss is 'persisting': give one of normal"):
        AccessWindow(4096, 4, 1.0, "normal", "persisting")


def test_a_timed_completion_event_is_rejected(context: cudadrv.Context) -> None:
    with pytest.raises(LaunchConfigError, match="timing=False"):
        LaunchAttributes(completion_event=cudadrv.Event(context))
