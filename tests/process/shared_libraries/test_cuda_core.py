"""Memory and graphs as cuda.core has them, through the functions of C."""

from __future__ import annotations

import textwrap

import pytest

from tests.emulator.kernels import FILL

from .process import run_program
from .test_other_libraries import has

pytestmark = pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")

_CORE = (
    f"FILL_PTX = {FILL!r}"
    + """
def core():
    import cuda.core
    from cuda.core import utils
    if not hasattr(driver, "cuMemGetMemPool") or not hasattr(utils, "copy_batch"):
        print("none")  # these versions have no such memory
        sys.exit()
    device = cuda.core.Device(0)
    device.set_current()
    return cuda.core, utils, device, device.create_stream()

def filled(resource, value, stream, nbytes=4096):
    buffer = resource.allocate(nbytes, stream=stream)
    buffer.fill(value, stream=stream)
    return buffer

def seen(buffer, stream):
    found = np.zeros(buffer.size, np.uint8)
    ok(driver.cuMemcpyDtoHAsync(found.ctypes.data, int(buffer.handle), buffer.size, stream.handle))
    stream.sync()
    return sorted(set(found.tolist()))
"""
)
ORDERS = pytest.mark.parametrize("order", ["immediate", "late"])


def told(program: str, order: str, expected: list[str]) -> None:
    """A program prints this, if there are the functions that it needs."""
    names = {"CUDADRV_EMULATOR_ORDER": order}
    out = run_program(_CORE + textwrap.dedent(program), names).splitlines()
    assert out in (expected, ["none"])


@pytest.mark.slow
def test_an_error_of_cuda_core_is_raised_while_it_frees_what_it_made() -> None:
    told(
        """
        stand_in()
        core, utils, device, stream = core()
        try:
            device.create_graph_builder().begin_building(mode="none")
        except ValueError as error:
            print(type(error).__name__)
    """,
        "immediate",
        ["ValueError"],
    )


@pytest.mark.slow
@ORDERS
def test_buffers_are_copied_in_a_batch(order: str) -> None:
    told(
        """
        stand_in()
        core, utils, device, stream = core()
        pinned = core.LegacyPinnedMemoryResource()
        sources = [filled(device.memory_resource, value, stream) for value in (1, 2, 3)]
        targets = [pinned.allocate(4096) for _ in range(2)] + [device.allocate(4096, stream=stream)]
        options = [utils.CopyOptions(), utils.CopyOptions(), utils.CopyOptions()]
        utils.copy_batch(stream, sources, targets, options=options)
        print([seen(each, stream) for each in targets])
        stream.sync()
        sources[0].copy_to(targets[1], stream=core.PER_THREAD_DEFAULT_STREAM)
        utils.copy_batch(core.PER_THREAD_DEFAULT_STREAM, targets[:1], targets[2:])
        core.PER_THREAD_DEFAULT_STREAM.sync()
        print([seen(each, stream) for each in targets])
    """,
        order,
        ["[[1], [2], [3]]", "[[1], [1], [1]]"],
    )


@pytest.mark.slow
@ORDERS
def test_pinned_memory_comes_from_pools(order: str) -> None:
    told("""
        stand_in()
        core, utils, device, stream = core()
        for options in (None, core.PinnedMemoryResourceOptions(max_size=1 << 20)):
            pool = core.PinnedMemoryResource(options)
            buffer = pool.allocate(4096, stream=stream)
            try:
                buffer.fill(5, stream=stream)
            except core._utils.cuda_utils.CUDAError as error:
                print("CUDA_ERROR_INVALID_VALUE" in str(error))
            device_memory = filled(device.memory_resource, 5, stream)
            device_memory.copy_to(buffer, stream=stream)
            stream.sync()
            found = np.from_dlpack(buffer)
            print(sorted(set(found.tolist())), pool.attributes.used_mem_current,
                  pool.is_handle_owned)
            del found
            buffer.close(stream)
            stream.sync()
            print(pool.attributes.used_mem_current)
            pool.close()
        pool = core.PinnedMemoryResource(core.PinnedMemoryResourceOptions(ipc_enabled=True))
        buffer = pool.allocate(4096, stream=stream)
        print(pool.is_ipc_enabled, buffer.ipc_descriptor.size)
        buffer.close(stream)
        pool.close()
    """, order, [
        "True", "[5] 4096 False", "0", "True", "[5] 4096 True", "0", "True 4096",
    ])  # fmt: skip


@pytest.mark.slow
@ORDERS
def test_managed_memory_is_advised_prefetched_and_discarded(order: str) -> None:
    told("""
        stand_in(2)
        core, utils, device, stream = core()
        options = core.ManagedMemoryResourceOptions(preferred_location=1)
        for pool in (core.ManagedMemoryResource(), core.ManagedMemoryResource(options)):
            buffers = [filled(pool, value, stream) for value in (1, 2)]
            print([seen(each, stream) for each in buffers], buffers[0].is_managed)
            first = buffers[0]
            print(first.preferred_location in (None, core.Device(1)), first.read_mostly)
            first.read_mostly, first.preferred_location = True, core.Host()
            first.accessed_by.add(device)
            print(first.preferred_location == core.Host(), first.read_mostly,
                  device in first.accessed_by)
            utils.prefetch_batch(stream, buffers, [core.Host(), device])
            last = driver.CUmem_range_attribute.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
            print([ok(driver.cuMemRangeGetAttribute(4, last, int(each.handle), each.size))
                   for each in buffers])
            utils.discard_batch(stream, buffers)
            utils.discard_prefetch_batch(stream, buffers, device)
            first.prefetch(device, stream=stream)
            stream.sync()
            for each in buffers:
                each.close(stream)
    """, order, [
        "[[1], [2]] True", "True False", "True True True", "[-1, 0]",
        "[[1], [2]] True", "True False", "True True True",
        "[-1, 0]",
    ])  # fmt: skip


@pytest.mark.slow
@ORDERS
def test_graphs_are_read_and_their_nodes_updated(order: str) -> None:
    told("""
        stand_in()
        core, utils, device, stream = core()
        from cuda.core.graph import GraphCompleteOptions, GraphDefinition
        code = ".version 8.0\\n.target sm_80\\n.address_size 64\\n" + FILL_PTX
        kernel = core.ObjectCode.from_ptx(code.encode()).get_kernel("fill")
        one = core.LaunchConfig(grid=1, block=1)
        buffer = device.allocate(8, stream=stream)
        address = int(buffer.handle)
        given = buffer, np.uint32(7), np.uint8(0)
        graph, child = GraphDefinition(), GraphDefinition()
        child.memset(address, 1, 8)
        inner = graph.embed(child)
        first = inner.memset(address, 0, 8)
        add = first.launch(one, kernel, *given)
        add.callback(lambda: None)
        print(sorted(type(node).__name__ for node in graph.nodes()), len(graph.edges()))
        print([type(node).__name__ for node in inner.child_graph.nodes()])
        print([each == first for each in add.pred], len(add.succ))
        add.update(config=core.LaunchConfig(grid=1, block=2))
        first.update(value=5)
        before = graph.instantiate()
        add.update(config=one)
        for executable in (before, graph.instantiate()):
            executable.launch(stream)
            stream.sync()
            print(read(driver.CUdeviceptr(address), 2))
        recorder = device.create_graph_builder().begin_building()
        core.launch(recorder, one, kernel, *given)
        recorder.end_building()
        recorder.complete(options=GraphCompleteOptions(upload_stream=stream)).launch(stream)
        recorded = recorder.graph_definition
        print([(type(node).__name__, node.grid) for node in recorded.nodes()])
    """, order, [
        "['ChildGraphNode', 'HostCallbackNode', 'KernelNode', 'MemsetNode'] 3", "['MemsetNode']",
        "[True] 1", "[7, 7]", "[7, 84215045]", "[('KernelNode', (1, 1, 1))]",
    ])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("first", ["stand_in(2)", "from cuda.bindings import runtime"])
def test_what_cuda_core_needs_of_the_runtime_exists(first: str) -> None:
    then = "stand_in(2)" if first != "stand_in(2)" else "from cuda.bindings import runtime"
    out = run_program(
        f"{first}\n{then}\n"
        + textwrap.dedent("""
        print(runtime.cudaGetDevice(), runtime.cudaGetDeviceCount())
        print(int(ok(driver.cuCtxGetCurrent())) == int(ok(driver.cuDevicePrimaryCtxRetain(0))))
        print(runtime.cudaSetDevice(1), runtime.cudaGetDevice())
        print(runtime.cudaDeviceGetPCIBusId(13, 1), runtime.cudaSetDevice(7)[0].name)
        minor = runtime.cudaDeviceAttr.cudaDevAttrComputeCapabilityMinor
        print(runtime.cudaDeviceGetAttribute(minor, 0), runtime.cudaDeviceGetAttribute(minor, 7)[1])
        memory = ok(driver.cuMemAlloc(64))
        launch(kernel(b"misaligned"), memory)
        print(runtime.cudaDeviceSynchronize()[0].name)
    """),
        {"CUDADRV_EMULATOR_ORDER": "late"},
    )
    success = "<cudaError_t.cudaSuccess: 0>"
    assert out.splitlines() == [
        f"({success}, 0) ({success}, 2)",
        "True",
        f"({success},) ({success}, 1)",
        f"({success}, b'0000:02:00.0\\x00') cudaErrorInvalidDevice",
        f"({success}, 0) None",
        "cudaErrorMisalignedAddress",
    ]


@pytest.mark.slow
def test_the_runtimes_allocations_are_the_drivers() -> None:
    out = run_program("""
        stand_in()
        ok(driver.cuInit(0))
        from cuda.bindings import runtime
        code, memory = runtime.cudaMalloc(64)
        print(code.name, ok(driver.cuMemGetAddressRange(memory))[1])
        _, host = runtime.cudaHostAlloc(8, runtime.cudaHostAllocMapped)
        print(runtime.cudaHostGetDevicePointer(host, 0)[1] == host, runtime.cudaMalloc(1 << 60)[1])
        print(runtime.cudaFree(memory)[0].name, runtime.cudaFreeHost(host)[0].name)
        print(runtime.cudaFree(memory)[0].name)
    """)
    assert out.splitlines() == [
        "cudaSuccess 64",
        "True None",
        "cudaSuccess cudaSuccess",
        "cudaErrorInvalidValue",
    ]


@pytest.mark.slow
def test_a_device_of_cuda_core_is_waited_for_and_has_an_address() -> None:
    told(
        """
        machine = stand_in()
        core, utils, device, stream = core()
        buffer = filled(device.memory_resource, 3, stream)
        device.sync()
        print(device.pci_bus_id)
        machine.close()
        try:
            device.sync()
        except core._utils.cuda_utils.CUDAError as error:
            print("cudaErrorCudartUnloading" in str(error))
    """,
        "late",
        ["0000:01:00.0", "True"],
    )


@pytest.mark.slow
def test_a_device_of_cuda_core_is_divided_into_green_contexts() -> None:
    told(
        """
        stand_in(sm_count=40)
        core, utils, device, stream = core()
        whole = device.resources.sm
        groups, rest = whole.split(core.SMResourceOptions(count=(8, 16)))
        print([each.sm_count for each in groups], rest.sm_count)
        looked, _ = whole.split(core.SMResourceOptions(count=None), dry_run=True)
        print([each.sm_count for each in looked])
        context = device.create_context(core.ContextOptions(resources=[groups[1]]))
        print(context.is_green, context.resources.sm.sm_count)
        own = context.create_stream()
        print(seen(filled(device.memory_resource, 6, own), own))
    """,
        "late",
        ["[8, 16] 16", "[40]", "True 16", "[6]"],
    )
