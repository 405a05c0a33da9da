"""Executables of graphs: uploaded, with the priorities of nodes, for launches by kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import cudadrv
from cudadrv import Graph, LaunchConfig, Stream
from cudadrv.driver._api import CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig
from cudadrv.driver.driver_selection import current
from cudadrv.errors import ArgumentError, ClosedError, CudaError
from cudadrv.graph import DotDetail, KernelNode
from cudadrv.launch import LaunchAttributes

from .conftest import all_functions

SOURCE = """
extern "C" __global__ void add(int* out, int value) { atomicAdd(out, value); }
"""


@pytest.fixture
def graph(context: cudadrv.Context) -> Graph:
    return context.new_graph()


def test_a_graph_is_uploaded_as_it_is_instantiated(
    graph: Graph, stream: Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(1, np.int32)
    graph.add_kernel(kernels.kernel("add"), LaunchConfig(1, 1), out, 3)
    with graph.instantiate(upload=stream) as executable:
        executable.launch(stream)
        executable.launch(stream)
        assert stream.to_host(out).tolist() == [6]


def test_kernels_run_with_the_priorities_of_their_nodes(
    context: cudadrv.Context, graph: Graph, stream: Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(1, np.int32)
    most_urgent = context.new_stream(priority=-1).priority
    config = LaunchConfig(1, 32, attributes=LaunchAttributes(priority=most_urgent))
    graph.add_kernel(kernels.kernel("add"), config, out, 1)
    with graph.instantiate(node_priority=True) as executable:
        executable.launch(stream)
        assert stream.to_host(out).tolist() == [32]


def test_a_graph_for_launches_by_kernels_is_launched_by_the_host_too(
    graph: Graph, stream: Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(1, np.int32)
    graph.add_kernel(kernels.kernel("add"), LaunchConfig(1, 2), out, 1)
    with graph.instantiate(device_launch=True, upload=stream) as executable:
        executable.launch(stream)
        assert stream.to_host(out).tolist() == [2]


def test_an_error_names_the_node_that_is_not_supported(graph: Graph, stream: Stream) -> None:
    array = stream.zeros(4, np.int32)
    fill = graph.add_fill(array, 1)
    host = graph.add_host(print, after=fill)
    with pytest.raises(CudaError, match="instantiating a graph") as caught:
        graph.instantiate(device_launch=True)
    text = str(caught.value)
    assert "not supported" in text
    if f"{int(host.handle):#x}" in text:  # drivers that name it
        assert "host function" in text
        assert f"{int(fill.handle):#x}" not in text
    with graph.instantiate() as executable:  # it is as before
        executable.launch(stream)
    assert stream.to_host(array).tolist() == [1] * 4


def test_an_empty_graph_is_not_launched_by_kernels(graph: Graph) -> None:
    with pytest.raises(CudaError):
        graph.instantiate(device_launch=True)


def test_a_node_that_kernels_update_has_a_handle_and_binds_its_graph(
    graph: Graph, stream: Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(1, np.int32)
    node = graph.add_kernel(kernels.kernel("add"), LaunchConfig(1, 2), out, 1)
    other = graph.add_kernel(kernels.kernel("add"), LaunchConfig(1, 1), out, 4)
    handle = node.make_updatable()
    assert handle > 0
    assert node.make_updatable() == handle
    assert other.make_updatable() != handle
    executable = graph.instantiate(upload=stream)
    rejected: dict[str, Callable[[], object]] = {
        "cloned": graph.clone,
        "instantiated again": graph.instantiate,
        "removed": node.remove,
        "updated": lambda: executable.update(graph),
    }
    codes = {}
    for name, use in rejected.items():
        try:
            use()
        except CudaError as error:
            codes[name] = int(error.code or 0)
        else:
            codes[name] = 0
    assert codes == dict.fromkeys(rejected, 801)  # CUDA_ERROR_NOT_SUPPORTED
    executable.launch(stream)
    node.update_in(executable, kernels.kernel("add"), LaunchConfig(1, 1), out, 10)
    executable.upload(stream)
    executable.launch(stream)
    assert stream.to_host(out).tolist() == [6 + 14]
    executable.close()
    with graph.instantiate() as again:
        again.launch(stream)
        assert stream.to_host(out).tolist() == [26]


def test_a_launch_has_a_node_that_kernels_update_in_a_capture_only(
    stream: Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(1, np.int32)
    kernel = kernels.kernel("add")
    assert [_launched(stream, kernel, out, value)[0] for value in (0, 1, 2)] == [801] * 3
    codes, nodes = {}, {}
    for value in (0, 1, 2):
        with stream.capture() as graph:
            codes[value], written = _launched(stream, kernel, out, value)
        nodes[value] = graph.nodes
        if value == 1:
            (node,) = graph.nodes
            assert isinstance(node, KernelNode)
            assert node.make_updatable() > 0
            # cuda-bindings 13.5.0 returns the attributes as they were given.
            assert written in (0, node.make_updatable())
            with graph.instantiate() as executable:
                for use in (graph.instantiate, graph.clone):
                    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
                        use()
                executable.launch(stream)
        else:
            assert written == 0
            with graph.instantiate() as executable, graph.clone(), graph.instantiate():
                executable.launch(stream)
    assert codes == {0: 0, 1: 0, 2: 1}  # the capture goes on after the wrong one
    assert [len(nodes[value]) for value in nodes] == [1, 1, 0]
    assert stream.to_host(out).tolist() == [2]


def _launched(
    stream: Stream, kernel: cudadrv.Kernel, out: cudadrv.DeviceArray[np.int32], value: int
) -> tuple[int, int]:
    """Launch with the attribute of the driver; return the code and the handle that it wrote."""
    attribute, config = CUlaunchAttribute(), CUlaunchConfig()
    attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
    attribute.value.deviceUpdatableKernelNode.deviceUpdatable = value
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX = config.blockDimY = config.blockDimZ = 1
    config.hStream, config.attrs, config.numAttrs = stream.handle, [attribute], 1
    address, added = ctypes.c_uint64(out.ptr), ctypes.c_int32(1)
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(added))
    launch = all_functions().cuLaunchKernelEx
    (code,) = launch(config, kernel.handle, ctypes.addressof(parameters), 0)
    return int(code), int(config.attrs[0].value.deviceUpdatableKernelNode.devNode)


def test_memory_left_allocated_is_freed_by_the_next_launch(stream: Stream) -> None:
    with stream.capture() as graph:
        array = stream.zeros(1 << 20, np.uint8)
    assert graph.allocates
    with graph.instantiate(node_priority=True, upload=stream) as executable:
        for _ in range(3):
            executable.launch(stream)
        assert not stream.to_host(array).any()


def test_a_wrong_upload_is_rejected(graph: Graph, context: cudadrv.Context) -> None:
    graph.add_empty()
    with pytest.raises(ArgumentError, match=r"Graph\.instantiate: upload"):
        graph.instantiate(upload=cast(Any, 3))
    closed = context.new_stream()
    closed.close()
    with pytest.raises(ClosedError):
        graph.instantiate(upload=closed)


@pytest.mark.parametrize("detail", list(DotDetail), ids=lambda detail: detail.name)
def test_a_graph_is_written_with_each_detail(
    graph: Graph, stream: Stream, kernels: cudadrv.Module, tmp_path: Path, detail: DotDetail
) -> None:
    out = stream.zeros(1, np.int32)
    node = graph.add_kernel(kernels.kernel("add"), LaunchConfig(1, 2), out, 1)
    path = tmp_path / "graph.dot"
    graph.write_dot(path, details=detail)
    text = path.read_text()
    assert text.lstrip().startswith("digraph")
    if detail is DotDetail.HANDLES and current().is_emulated:
        assert "add" in text
        assert f"{int(node.handle):x}" in text.lower()
    graph.write_dot(path, details=detail | DotDetail.KERNELS, verbose=True)
    with pytest.raises(ArgumentError, match="details"):
        graph.write_dot(path, details=cast(Any, 4))
