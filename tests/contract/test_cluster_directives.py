"""Directives of kernels about clusters, on every path to a launch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, Kernel, LaunchConfig, Stream
from cudadrv.errors import CudaError, InvalidClusterSizeError, InvalidPTXError, InvalidValueError

Extents = tuple[int, int, int]
Out = DeviceArray[np.uint32]
CLUSTERS = ".reqntid 1, 1, 1\n.reqnctapercluster {}\n.blocksareclusters"
# gridDim, the blocks that ran, the blocks of a cluster.
TEXT = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{}
{{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %nctaid.x;
    st.global.u32 [%rd1], %r1;
    mov.u32 %r1, %nctaid.y;
    st.global.u32 [%rd1+4], %r1;
    mov.u32 %r1, %nctaid.z;
    st.global.u32 [%rd1+8], %r1;
    red.global.add.u32 [%rd1+12], 1;
    mov.u32 %r1, %cluster_nctarank;
    st.global.u32 [%rd1+16], %r1;
    ret;
}}
"""
# Directives, the launch's grid, the cluster that it names, and the words that the kernel writes or
# the error. Measured on an H200 with driver 580.
LAUNCHES: list[tuple[str, Extents, Extents | None, list[int] | type[CudaError]]] = [
    (CLUSTERS.format("2, 1, 1"), (4, 1, 1), None, [8, 1, 1, 8, 2]),
    (CLUSTERS.format("2"), (4, 1, 1), None, [8, 1, 1, 8, 2]),
    (CLUSTERS.format("2, 1, 1"), (3, 1, 1), None, [6, 1, 1, 6, 2]),
    (CLUSTERS.format("2, 1, 1"), (4, 1, 1), (2, 1, 1), [8, 1, 1, 8, 2]),
    (CLUSTERS.format("2, 1, 1"), (3, 1, 1), (2, 1, 1), [6, 1, 1, 6, 2]),
    (CLUSTERS.format("2, 2, 1"), (3, 5, 2), None, [6, 10, 2, 120, 4]),
    (CLUSTERS.format("2, 1, 1"), (4, 1, 1), (4, 1, 1), InvalidClusterSizeError),
    (CLUSTERS.format("2, 1, 1"), (4, 1, 1), (1, 1, 1), InvalidClusterSizeError),
    (CLUSTERS.format("2, 2, 1"), (1, 32768, 1), None, InvalidValueError),
    (".reqnctapercluster 2, 1, 1", (4, 1, 1), None, [4, 1, 1, 4, 2]),
    (".reqnctapercluster 2, 1, 1", (3, 1, 1), None, InvalidClusterSizeError),
    (".reqnctapercluster 2\n.explicitcluster", (4, 1, 1), None, [4, 1, 1, 4, 2]),
    (".explicitcluster", (4, 1, 1), None, InvalidClusterSizeError),
    (".explicitcluster", (4, 1, 1), (1, 1, 1), [4, 1, 1, 4, 1]),
    (".explicitcluster", (4, 1, 1), (2, 1, 1), [4, 1, 1, 4, 2]),
    (".maxclusterrank 2", (8, 1, 1), None, [8, 1, 1, 8, 1]),
    (".maxclusterrank 2", (8, 1, 1), (2, 1, 1), [8, 1, 1, 8, 2]),
    (".maxclusterrank 2", (8, 1, 1), (4, 1, 1), InvalidClusterSizeError),
]
# Nodes of graphs that differ from that: they have clusters of one block.
NODES: dict[object, list[int]] = {(".explicitcluster", (4, 1, 1), None): [4, 1, 1, 4, 1]}
REJECTED = (
    ".reqnctapercluster 2\n.blocksareclusters",
    ".reqntid 1\n.blocksareclusters",
    ".blocksareclusters",
    ".maxntid 1\n.reqnctapercluster 2\n.blocksareclusters",
    ".reqntid 1\n.reqnctapercluster 2\n.maxclusterrank 4",
)


@pytest.fixture(autouse=True)
def _clusters(context: cudadrv.Context) -> None:
    if not context.capability.has_cluster_launch:
        pytest.skip("needs cluster launch (compute capability 9.0)")


def _launch(stream: Stream, kernel: Kernel, config: LaunchConfig, out: Out) -> None:
    kernel.launch(stream, config, out)


def _prepare(stream: Stream, kernel: Kernel, config: LaunchConfig, out: Out) -> None:
    kernel.bind(stream, config).prepare(out)()


def _capture(stream: Stream, kernel: Kernel, config: LaunchConfig, out: Out) -> None:
    with stream.capture() as graph:
        kernel.launch(stream, config, out)
    graph.instantiate().launch(stream)


def _node(stream: Stream, kernel: Kernel, config: LaunchConfig, out: Out) -> None:
    graph = stream.context.new_graph()
    graph.add_kernel(kernel, config, out)
    graph.instantiate().launch(stream)


PATHS: tuple[Callable[[Stream, Kernel, LaunchConfig, Out], None], ...] = (
    _launch,
    _prepare,
    _capture,
    _node,
)


@pytest.mark.slow
def test_directives_about_clusters_hold_on_every_path_to_a_launch(
    stream: Stream, context: cudadrv.Context
) -> None:
    differing: list[str] = []
    for directives, grid, cluster, expected in LAUNCHES:
        kernel = context.load_module(TEXT.format(directives)).kernel("k")
        config = LaunchConfig(grid, 1, cluster=cluster)
        for path in PATHS:
            out = stream.zeros(5, np.uint32)
            found: object
            try:
                path(stream, kernel, config, out)
                found = stream.to_host(out).tolist()
            except CudaError as error:
                found = type(error)
            wanted: object = expected
            if path in (_capture, _node):
                wanted = NODES.get((directives, grid, cluster)) or expected
            if found != wanted:
                differing.append(f"{directives!r} {config} {path.__name__}: {found}")
    assert differing == []


def test_directives_about_clusters_that_do_not_go_together_are_rejected(
    context: cudadrv.Context,
) -> None:
    loaded = []
    for directives in REJECTED:
        try:
            context.load_module(TEXT.format(directives))
            loaded.append(directives)
        except InvalidPTXError:
            pass
    assert loaded == []


def test_a_kernel_reports_the_clusters_that_it_requires(context: cudadrv.Context) -> None:
    found = {}
    for directives in (CLUSTERS.format("2, 1, 1"), ".explicitcluster", ".maxclusterrank 4"):
        attributes = context.load_module(TEXT.format(directives)).kernel("k").attributes
        found[directives] = (
            attributes.cluster_size_must_be_set,
            attributes.required_cluster_width,
            attributes.required_cluster_height,
        )
    assert list(found.values()) == [(0, 2, 1), (1, 0, 0), (0, 0, 0)]
