"""What a launch requests of the scheduler and of the caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver._api import CUkernelNodeAttrID as _Id
from cudadrv.errors import (
    ArgumentTypeError,
    ClosedError,
    CudaError,
    LaunchConfigError,
    UnsupportedError,
    WrongDeviceError,
)
from cudadrv.launch import AccessWindow, LaunchAttributes
from cudadrv.launch.config import ClusterSizeMode, SharedMemoryMode

from .conftest import all_functions, newest_of_both
from .test_launch_values import passed

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


def test_a_node_that_kernels_may_update_has_its_handle(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    number = _Id.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
    for requested in (False, True):
        node, graph = node_with(kernels, stream, LaunchAttributes(device_updatable=requested))
        with graph:
            value = of_node(node, number).deviceUpdatableKernelNode
            assert bool(value.deviceUpdatable) is requested
            if requested:
                assert node.make_updatable() == int(value.devNode) > 0
            with graph.instantiate() as executable:
                executable.launch(stream)
                if requested:
                    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
                        graph.instantiate()


def test_a_captured_launch_that_kernels_may_update_has_its_handle(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    array, add = stream.zeros(64, np.int32), kernels.kernel("add")
    for requested in (False, True, False, True):
        attributes = LaunchAttributes(device_updatable=requested)
        with stream.capture() as graph:
            add.launch(stream, LaunchConfig(2, 32, attributes=attributes), array, 1)
        (node,) = graph.nodes
        assert isinstance(node, cudadrv.graph.KernelNode)
        number = _Id.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
        value = of_node(node, number).deviceUpdatableKernelNode
        assert bool(value.deviceUpdatable) is requested
        if requested:
            assert node.make_updatable() == int(value.devNode) > 0
        with graph.instantiate() as executable:
            executable.launch(stream)
            if requested:
                for use in (graph.instantiate, graph.clone):
                    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
                        use()
        graph.close()
    assert stream.to_host(array).tolist() == [4] * 64


def test_a_launch_outside_of_a_graph_is_not_updatable(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    array, add = stream.zeros(64, np.int32), kernels.kernel("add")
    for requested in (False, True):
        attributes = LaunchAttributes(device_updatable=requested)
        config = LaunchConfig(2, 32, attributes=attributes)
        _, values = passed(stream, config)
        found = {number: value.deviceUpdatableKernelNode for number, value in values.items()}
        assert {number: bool(each.deviceUpdatable) for number, each in found.items()} == {
            13: requested
        }
        prepared = add.bind(stream, config).prepare(array, 1)
        for launch in (lambda config=config: add.launch(stream, config, array, 1), prepared):
            with pytest.raises(LaunchConfigError, match="is for nodes of a graph\n.*capture"):
                launch()
    assert not stream.to_host(array).any()


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
        ({"cluster_size_mode": "large"}, "cluster_size_mode is 'large': give one of require_port"),
        ({"cluster_size_mode": "allow_oversized"}, "cluster_size_mode is 'allow_oversized': give"),
        ({"shared_memory_mode": 2}, "shared_memory_mode is 2: give one of require_portable, allow"),
    ],
)
def test_values_out_of_range_are_rejected(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchConfigError) as raised:
        LaunchAttributes(**given)
    assert message in str(raised.value)


def test_values_of_another_type_are_rejected() -> None:
    with pytest.raises(ArgumentTypeError, match="access_window is .* give an AccessWindow"):
        LaunchAttributes(access_window=(4096, 4))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ArgumentTypeError, match="nvlink_centric is 1, .* give a bool"):
        LaunchAttributes(nvlink_centric=1)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ArgumentTypeError, match="device_updatable is 1, .* give a bool"):
        LaunchAttributes(device_updatable=1)  # type: ignore[arg-type]  # the mistake
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


class Newer(NamedTuple):
    """A value of an attribute that older drivers and bindings lack, and what the driver gets."""

    name: str
    value: object
    since: tuple[int, int]
    number: int
    field: str
    native: int


NEWER: Final = [
    Newer(name, value, since, number, field, native)
    for name, since, number, field, values in (
        ("nvlink_centric", (13, 0), 16, "nvlinkUtilCentricScheduling", {False: 0, True: 1}),
        (
            "cluster_size_mode",
            (13, 2),
            17,
            "portableClusterSizeMode",
            {"require_portable": 1, "allow_non_portable": 2},
        ),
        (
            "shared_memory_mode",
            (13, 2),
            18,
            "sharedMemoryMode",
            {"require_portable": 1, "allow_non_portable": 2},
        ),
    )
    for value, native in values.items()
]


def wrong_rejections(
    kernels: cudadrv.Module, stream: cudadrv.Stream, names: Sequence[str]
) -> list[str]:
    """Launch, and add as a node, each attribute that is too new; return what is not rejected."""
    array, wrong = stream.zeros(64, np.int32), []
    for each in NEWER:
        if each.name not in names:
            continue
        attributes = LaunchAttributes(**{each.name: each.value})  # type: ignore[arg-type]  # any
        config = LaunchConfig(2, 32, attributes=attributes)
        needs = (
            f"{each.name} needs a driver and cuda-bindings of CUDA {each.since[0]}.{each.since[1]}"
        )
        for use in (
            lambda config=config: kernels.kernel("add").launch(stream, config, array, 1),
            lambda attributes=attributes: node_with(kernels, stream, attributes),
        ):
            try:
                use()
            except UnsupportedError as error:
                if needs in str(error):
                    continue
            wrong.append(f"{each.name}={each.value!r}")
    assert not stream.to_host(array).any()
    return wrong


def test_newer_attributes_reach_the_driver_or_are_rejected_by_version(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    installed = newest_of_both()
    wrong = wrong_rejections(
        kernels, stream, [each.name for each in NEWER if each.since > installed]
    )
    array, count = stream.zeros(64, np.int32), 0
    for each in NEWER:
        if each.since > installed:
            continue
        attributes = LaunchAttributes(**{each.name: each.value})  # type: ignore[arg-type]  # any
        config = LaunchConfig(2, 32, attributes=attributes)
        _, values = passed(stream, config)
        found = {number: int(getattr(value, each.field)) for number, value in values.items()}
        if found != {each.number: each.native}:
            wrong.append(f"{each.name}={each.value!r}: the driver gets {found}")
        kernels.kernel("add").launch(stream, config, array, 1)
        _, graph = node_with(kernels, stream, attributes)
        with graph, graph.instantiate() as executable:
            executable.launch(stream)
        count += 1
    assert stream.to_host(array).tolist() == [count] * 64
    assert wrong == []


PTX: Final = """.version 7.0\n.target sm_80\n.address_size 64
.visible .entry add(.param .u64 x, .param .u32 step) { ret; }"""


def test_an_older_driver_rejects_newer_attributes_with_its_version() -> None:
    for version, names in {
        (12, 9): ("nvlink_centric", "cluster_size_mode", "shared_memory_mode"),
        (13, 0): ("cluster_size_mode", "shared_memory_mode"),
        (13, 1): ("cluster_size_mode", "shared_memory_mode"),
    }.items():
        with cudadrv.emulator.session(driver_version=version):
            stream = cudadrv.cuda_context_for(0).new_stream()
            module = stream.context.load_module(PTX)
            assert wrong_rejections(module, stream, names) == []


def test_an_oversized_mode_needs_a_device_that_has_such_memory(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    array, device = stream.zeros(32, np.int32), stream.context.device
    for mode in ("allow_oversized", "prefer_oversized"):
        attributes = LaunchAttributes(shared_memory_mode=mode)
        config = LaunchConfig(1, 32, attributes=attributes)
        try:
            largest = device.attribute(cudadrv.driver.DeviceAttribute(150))
        except CudaError:  # of an older driver
            largest = 0
        if not largest or newest_of_both() < (13, 4):
            with pytest.raises(UnsupportedError, match=r"shared_memory_mode"):
                kernels.kernel("add").launch(stream, config, array, 1)
        else:
            kernels.kernel("add").launch(stream, config, array, 1)


def test_the_shared_memory_mode_replaces_the_limit_of_the_kernel(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    device, kernel = stream.context.device, kernels.kernel("add")
    portable = device.properties.max_shared_memory_per_block
    largest = device.properties.max_shared_memory_per_block_optin
    if newest_of_both() < (13, 2) or largest <= portable:
        pytest.skip("needs CUDA 13.2, and a device with more shared memory than 48 KiB a block")
    array = stream.zeros(32, np.int32)

    def launch(mode: SharedMemoryMode, nbytes: int) -> None:
        attributes = LaunchAttributes(shared_memory_mode=mode)
        config = LaunchConfig(1, 32, shared_bytes=nbytes, attributes=attributes)
        kernel.launch(stream, config, array, 1)

    before = kernel.attributes.max_dynamic_shared_bytes
    launch("require_portable", portable)
    launch("allow_non_portable", portable + 1)
    launch("allow_non_portable", largest)
    assert kernel.attributes.max_dynamic_shared_bytes == before
    with pytest.raises(LaunchConfigError, match=f"{portable} a block with shared_memory_mode 'req"):
        launch("require_portable", portable + 1)
    with pytest.raises(LaunchConfigError, match=f"{largest} a block with shared_memory_mode 'all"):
        launch("allow_non_portable", largest + 1)
    assert stream.to_host(array).tolist() == [3] * 32


def test_the_cluster_size_mode_replaces_the_attribute_of_the_kernel(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    if newest_of_both() < (13, 2) or stream.context.device.compute_capability < (9, 0):
        pytest.skip("needs CUDA 13.2 and compute capability 9.0")
    kernel, array = kernels.kernel("add"), stream.zeros(512, np.int32)

    def config(mode: ClusterSizeMode, size: int) -> LaunchConfig:
        attributes = LaunchAttributes(cluster_size_mode=mode)
        return LaunchConfig(16, 32, cluster=size, attributes=attributes)

    kernel.launch(stream, config("require_portable", 8), array, 1)
    kernel.launch(stream, config("allow_non_portable", 16), array, 1)
    assert kernel.max_potential_cluster_size(config("require_portable", 1)) == 8
    assert kernel.max_potential_cluster_size(config("allow_non_portable", 1)) >= 16
    kernel.attributes.allows_non_portable_clusters = 1
    with pytest.raises(CudaError, match="cluster"):
        kernel.launch(stream, config("require_portable", 16), array, 1)
    assert stream.to_host(array).tolist() == [2] * 512


def test_windows_out_of_range_are_rejected() -> None:
    for given in ((0, 4), (4096, 0), (4096, 4, 1.5), (4096, 4, -0.5), (4096, 4, 1.0, "persistent")):
        with pytest.raises(LaunchConfigError):
            AccessWindow(*given)
    with pytest.raises(LaunchConfigError, match="miss is 'persisting': give one of normal"):
        AccessWindow(4096, 4, 1.0, "normal", "persisting")


def test_a_timed_completion_event_is_rejected(context: cudadrv.Context) -> None:
    with pytest.raises(LaunchConfigError, match="timing=False"):
        LaunchAttributes(completion_event=cudadrv.Event(context))
