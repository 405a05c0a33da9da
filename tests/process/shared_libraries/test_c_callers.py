"""Functions that callers of C reach, by ctypes as they would call them."""

from __future__ import annotations

import textwrap

import pytest

from .process import run_program

_C = """
import struct
import ctypes as c

def library():
    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
    return c.CDLL("libcuda.so.1")

def called(function, *given):
    code = function(*(c.c_size_t(each) if isinstance(each, int) else each for each in given))
    assert code == 0, (function.__name__, code)

def made(function, *given):
    result = c.c_size_t()
    called(function, c.byref(result), *given)
    return result.value

def array(*handles):
    return (c.c_size_t * max(1, len(handles)))(*handles)

def kernel_params(function, *values):
    # CUDA_KERNEL_NODE_PARAMS_v2 of one thread; what it points to is kept with it.
    kept = [c.c_uint64(value) for value in values]
    places = (c.c_void_p * len(kept))(*(c.addressof(each) for each in kept))
    memory = c.create_string_buffer(struct.pack(
        "<Q7I4xQQQQ", int(function), 1, 1, 1, 1, 1, 1, 0, c.addressof(places), 0, 0, 0))
    memory.kept = kept, places
    return memory
"""


def _told(program: str) -> list[str]:
    """What a program prints whose lines are set in as those of the tests."""
    return run_program(_C + textwrap.dedent(program)).splitlines()


@pytest.mark.slow
def test_graphs_are_built_changed_and_replayed() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            memory = int(ok(driver.cuMemAlloc(16)))
            graph = made(cuda.cuGraphCreate, c.c_uint(0))
            fill = c.create_string_buffer(struct.pack("<QQIIQQ", memory, 0, 5, 4, 4, 1))
            first = made(cuda.cuGraphAddMemsetNode, graph, array(), 0, fill, 0)
            add = kernel_params(kernel(b"increment"), memory)
            then = made(cuda.cuGraphAddKernelNode_v2, graph, array(first), 1, add)
            empty = made(cuda.cuGraphAddEmptyNode, graph, array(), 0)
            called(cuda.cuGraphAddDependencies, graph, array(then), array(empty), 1)
            room, froms, tos = c.c_size_t(9), array(*[1] * 9), array(*[1] * 9)
            called(cuda.cuGraphGetEdges, graph, froms, tos, c.byref(room))
            edges = list(zip(froms, tos))
            print(room.value, set(edges[:2]) == {(first, then), (then, empty)}, {*edges[2:]})
            called(cuda.cuGraphGetEdges, graph, 0, 0, c.byref(room))
            called(cuda.cuGraphRemoveDependencies, graph, array(then), array(empty), 1)
            print(room.value)
            executable = made(cuda.cuGraphInstantiateWithFlags, graph, 0)
            called(cuda.cuGraphLaunch, executable, 0)
            print(read(driver.CUdeviceptr(memory), 4))
            other = c.create_string_buffer(struct.pack("<QQIIQQ", memory, 0, 8, 4, 4, 1))
            called(cuda.cuGraphExecMemsetNodeSetParams, executable, first, other, 0)
            called(cuda.cuGraphLaunch, executable, 0)
            print(read(driver.CUdeviceptr(memory), 4))
            moved = kernel_params(kernel(b"increment"), memory + 4)
            called(cuda.cuGraphKernelNodeSetParams_v2, then, moved)
            second = made(cuda.cuGraphInstantiateWithFlags, graph, 0)
            called(cuda.cuGraphLaunch, second, 0)
            print(read(driver.CUdeviceptr(memory), 4))
    """) == ["2 True {(0, 0)}", "2", "[6, 5, 5, 5]", "[9, 8, 8, 8]", "[5, 6, 5, 5]"]


@pytest.mark.slow
def test_the_block_size_of_most_threads_is_found() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            function = int(kernel(b"increment"))
            def best(shared_of, shared, limit):
                grid, block = c.c_int(), c.c_int()
                called(cuda.cuOccupancyMaxPotentialBlockSize, c.byref(grid), c.byref(block),
                       function, shared_of, shared, c.c_int(limit))
                again = c.c_int(), c.c_int()
                called(cuda.cuOccupancyMaxPotentialBlockSizeWithFlags, *map(c.byref, again),
                       function, shared_of, shared, c.c_int(limit), c.c_uint(0))
                assert [each.value for each in again] == [grid.value, block.value]
                return grid.value, block.value
            count = ok(driver.cuDeviceGetAttribute(driver.CUdevice_attribute(16), 0))
            def right(found, bytes_of, limit):
                active = {size: ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    function, size, bytes_of(size))) for size in (*range(32, limit, 32), limit)}
                most = max(size * blocks for size, blocks in active.items())
                grid, size = found
                return (active[size] * size, grid) == (most, active[size] * count)
            print(right(best(0, 0, 0), lambda size: 0, 1024))
            print(right(best(0, 20000, 300), lambda size: 20000, 300))
            print(best(0, 0, 100)[1])
            by_size = c.CFUNCTYPE(c.c_size_t, c.c_int)(lambda size: size * 48)
            given = c.cast(by_size, c.c_void_p).value
            print(right(best(given, 0, 0), lambda size: size * 48, 1024))
    """) == ["True", "True", "64", "True"]


@pytest.mark.slow
def test_a_node_accepts_a_kernel_of_a_library_and_its_context() -> None:
    assert _told("""
        with stand_in(2):
            cuda = library()
            memory = int(ok(driver.cuMemAlloc(4)))
            ok(driver.cuMemsetD32(memory, 5, 1))
            kernels = ok(driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))
            kernel = int(ok(driver.cuLibraryGetKernel(kernels, b"increment")))
            own, other = ok(driver.cuCtxGetCurrent()), ok(driver.cuDevicePrimaryCtxRetain(1))
            ok(driver.cuCtxSetCurrent(other))
            value = c.c_uint64(memory)
            places = (c.c_void_p * 1)(c.addressof(value))
            node = c.create_string_buffer(struct.pack("<Q7I4xQQQQ", 0, 1, 1, 1, 1, 1, 1, 0,
                c.addressof(places), 0, kernel, int(own)))
            graph = made(cuda.cuGraphCreate, c.c_uint(0))
            made(cuda.cuGraphAddKernelNode_v2, graph, array(), 0, node)
            ok(driver.cuCtxSetCurrent(own))
            called(cuda.cuGraphLaunch, made(cuda.cuGraphInstantiateWithFlags, graph, 0), 0)
            print(read(driver.CUdeviceptr(memory), 1))
    """) == ["[6]"]


@pytest.mark.slow
def test_nodes_of_every_kind_do_what_their_parameters_specify() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            called_back = []
            function = c.CFUNCTYPE(None, c.c_void_p)(lambda given: called_back.append(given))
            graph = made(cuda.cuGraphCreate, c.c_uint(0))
            # CUDA_MEM_ALLOC_NODE_PARAMS: CUmemPoolProps, then what has access, bytes, address.
            alloc = c.create_string_buffer(
                struct.pack("<iiii", 1, 0, 1, 0).ljust(88, bytes(1))
                + struct.pack("<QQQQ", 0, 0, 16, 0))
            allocated = made(cuda.cuGraphAddMemAllocNode, graph, array(), 0, alloc)
            (memory,) = struct.unpack("<Q", alloc.raw[112:120])
            fill = c.create_string_buffer(struct.pack("<QQIIQQ", memory, 0, 7, 4, 4, 1))
            filled = made(cuda.cuGraphAddMemsetNode, graph, array(allocated), 1, fill, 0)
            host = np.zeros(4, np.uint32)
            # CUDA_MEMCPY3D: both sides, and the box.
            copy = c.create_string_buffer(struct.pack(
                "<4Qi4x6Q4Qi4x6Q3Q", 0, 0, 0, 0, 2, 0, memory, 0, 0, 0, 0,
                0, 0, 0, 0, 1, host.ctypes.data, 0, 0, 0, 0, 0, 16, 1, 1))
            copied = made(cuda.cuGraphAddMemcpyNode, graph, array(filled), 1, copy, 0)
            at = c.cast(function, c.c_void_p).value
            told = c.create_string_buffer(struct.pack("<QQ", at, 42))
            called_node = made(cuda.cuGraphAddHostNode, graph, array(copied), 1, told)
            event = made(cuda.cuEventCreate, c.c_uint(0))
            recorded = made(cuda.cuGraphAddEventRecordNode, graph, array(called_node), 1, event)
            waited = made(cuda.cuGraphAddEventWaitNode, graph, array(recorded), 1, event)
            made(cuda.cuGraphAddMemFreeNode, graph, array(waited), 1, memory)
            called(cuda.cuGraphLaunch, made(cuda.cuGraphInstantiateWithFlags, graph, 0), 0)
            called(cuda.cuEventSynchronize, event)
            print(host.tolist(), called_back)

            child, parent = (made(cuda.cuGraphCreate, c.c_uint(0)) for _ in range(2))
            word = int(ok(driver.cuMemAlloc(4)))
            params = c.create_string_buffer(256)
            struct.pack_into("<i12xQQIIQQQ", params, 0, 2, word, 0, 3, 4, 1, 1, 0)
            made(cuda.cuGraphAddNode, child, array(), 0, params)
            inner = made(cuda.cuGraphAddChildGraphNode, parent, array(), 0, child)
            struct.pack_into("<i12xQ", params, 0, 5, 0)
            made(cuda.cuGraphAddNode_v2, parent, array(inner), 0, 1, params)
            called(cuda.cuGraphLaunch, made(cuda.cuGraphInstantiateWithFlags, parent, 0), 0)
            print(read(driver.CUdeviceptr(word), 1))
    """) == ["[7, 7, 7, 7] [42]", "[3]"]


@pytest.mark.slow
def test_a_stream_is_recorded_after_nodes_of_a_graph() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            memory = ok(driver.cuMemAlloc(4))
            stream = made(cuda.cuStreamCreate, c.c_uint(1))
            graph = made(cuda.cuGraphCreate, c.c_uint(0))
            first, second = (made(cuda.cuGraphAddEmptyNode, graph, array(), 0) for _ in range(2))
            called(cuda.cuStreamBeginCaptureToGraph, stream, graph, array(first), 0, 1, c.c_int(2))
            called(cuda.cuStreamUpdateCaptureDependencies, stream, array(second), 1, c.c_uint(1))
            called(cuda.cuMemsetD32Async, int(memory), c.c_uint(4), 1, stream)
            ended = made(lambda result, stream: cuda.cuStreamEndCapture(stream, result), stream)
            room, froms, tos = c.c_size_t(9), array(*[0] * 9), array(*[0] * 9)
            called(cuda.cuGraphGetEdges, graph, froms, tos, c.byref(room))
            print(ended == graph, room.value, froms[0] == second)
    """) == ["True 1 True"]


@pytest.mark.slow
def test_rows_are_copied_and_arrays_described() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            stream = made(cuda.cuStreamCreate, c.c_uint(1))
            host = np.arange(12, dtype=np.uint32).reshape(3, 4)
            memory = int(ok(driver.cuMemAlloc(64)))
            ok(driver.cuMemsetD32(memory, 0, 16))
            # CUDA_MEMCPY2D: two words of two rows, from the second word on.
            rows = c.create_string_buffer(struct.pack(
                "<2Qi4x4Q2Qi4x4Q2Q", 4, 1, 1, host.ctypes.data, 0, 0, 16,
                8, 0, 2, 0, memory, 0, 32, 8, 2))
            for copy, given in ((cuda.cuMemcpy2D_v2, ()), (cuda.cuMemcpy2DUnaligned_v2, ()),
                                (cuda.cuMemcpy2DAsync_v2, (stream,))):
                ok(driver.cuMemsetD32(memory, 0, 16))
                called(copy, rows, *given)
                called(cuda.cuStreamSynchronize, stream)
                print(read(driver.CUdeviceptr(memory), 12))
            descriptor = c.create_string_buffer(struct.pack("<3Q3I4x", 5, 4, 3, 0x20, 2, 0))
            image = made(cuda.cuArray3DCreate_v2, descriptor)
            found = c.create_string_buffer(40)
            called(cuda.cuArray3DGetDescriptor_v2, found, image)
            print(struct.unpack("<3Q3I4x", found.raw))
            called(cuda.cuArrayGetDescriptor_v2, found, image)
            print(struct.unpack("<2Q2I", found.raw[:24]))
    """) == [*["[0, 0, 5, 6, 0, 0, 0, 0, 0, 0, 9, 10]"] * 3, "(5, 4, 3, 32, 2, 0)", "(5, 4, 32, 2)"]


@pytest.mark.slow
def test_managed_memory_is_advised_and_prefetched_in_both_forms() -> None:
    assert _told("""
        with stand_in(2):
            cuda = library()
            memory = made(cuda.cuMemAllocManaged, 4096, c.c_uint(1))
            stream = made(cuda.cuStreamCreate, c.c_uint(1))
            called(cuda.cuMemAdvise, memory, 4096, c.c_int(3), c.c_int(1))
            called(cuda.cuMemAdvise_v2, memory, 4096, c.c_int(3), 1 | 1 << 32)
            called(cuda.cuMemPrefetchAsync, memory, 4096, c.c_int(-1), stream)
            called(cuda.cuMemPrefetchAsync_v2, memory, 4096, 1 | 1 << 32, c.c_uint(0), stream)
            sizes = [c.c_size_t(each) for each in (memory, 4096, 1 | 7 << 32)]
            print(cuda.cuMemPrefetchAsync_v2(*sizes, c.c_uint(0), c.c_size_t(stream)))
    """) == ["101"]


@pytest.mark.slow
def test_clusters_are_counted() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            # CUlaunchConfig with one CUlaunchAttribute: clusters of 2 blocks.
            clusters = struct.pack("<i4xIII", 4, 2, 1, 1)
            attribute = c.create_string_buffer(clusters.ljust(72, bytes(1)))
            config = c.create_string_buffer(struct.pack(
                "<7I4xQQI4x", 8, 1, 1, 64, 1, 1, 0, 0, c.addressof(attribute), 1))
            found = c.c_int()
            function = int(kernel(b"increment"))
            called(cuda.cuOccupancyMaxActiveClusters, c.byref(found), function, config)
            clustered = found.value
            alone = struct.pack("<7I4xQQI4x", 8, 1, 1, 64, 1, 1, 0, 0, 0, 0)
            called(cuda.cuOccupancyMaxActiveClusters, c.byref(found), function, alone)
            print(clustered > 0, found.value)
            called(cuda.cuOccupancyMaxPotentialClusterSize, c.byref(found), function, config)
            print(found.value)
            nothing = struct.pack("<7I4xQQI4x", 8, 1, 1, 0, 1, 1, 0, 0, 0, 0)
            print(cuda.cuOccupancyMaxActiveClusters(c.byref(found), c.c_size_t(function), nothing))
    """) == ["True 0", "8", "1"]


@pytest.mark.slow
def test_memory_and_events_of_another_process_are_opened() -> None:
    assert _told("""
        import multiprocessing
        import os

        class Handle(c.Structure):
            _fields_ = [("bytes", c.c_char * 64)]

        def opened(given, event):
            with stand_in():
                cuda = library()
                named = Handle.from_buffer_copy(given)
                address = made(cuda.cuIpcOpenMemHandle_v2, named, c.c_uint(1))
                print(read(driver.CUdeviceptr(address), 4), flush=True)
                ok(driver.cuMemsetD32(driver.CUdeviceptr(address), 9, 1))
                ok(driver.cuStreamSynchronize(0))
                called(cuda.cuIpcCloseMemHandle, address)
                theirs = made(cuda.cuIpcOpenEventHandle, Handle.from_buffer_copy(event))
                called(cuda.cuEventSynchronize, theirs)

        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:  # before either has an emulator
            os.close(write_end)
            with open(read_end, "rb") as pipe:
                given = pipe.read()
            opened(given[:64], given[64:])
            os._exit(0)
        with stand_in():
            cuda = library()
            memory = int(ok(driver.cuMemAlloc(16)))
            ok(driver.cuMemsetD32(memory, 6, 4))
            handle, event_handle = Handle(), Handle()
            called(cuda.cuIpcGetMemHandle, c.byref(handle), memory)
            event = made(cuda.cuEventCreate, c.c_uint(6))
            called(cuda.cuEventRecord, event, 0)
            called(cuda.cuIpcGetEventHandle, c.byref(event_handle), event)
            with open(write_end, "wb") as pipe:
                pipe.write(bytes(handle) + bytes(event_handle))
            print(os.waitpid(child, 0)[1], read(driver.CUdeviceptr(memory), 4))
    """) == ["[6, 6, 6, 6]", "0 [9, 6, 6, 6]"]


@pytest.mark.slow
def test_a_pool_goes_to_another_process_by_a_descriptor() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            # CUmemPoolProps: pinned, POSIX file descriptors, device 0.
            props = c.create_string_buffer(struct.pack("<iiii", 1, 1, 1, 0), 88)
            pool = made(cuda.cuMemPoolCreate, props)
            descriptor = c.c_int()
            called(cuda.cuMemPoolExportToShareableHandle, c.byref(descriptor), pool, c.c_int(1), 0)
            stream = made(cuda.cuStreamCreate, c.c_uint(1))
            memory = made(cuda.cuMemAllocFromPoolAsync, 16, pool, stream)
            ok(driver.cuMemsetD32(driver.CUdeviceptr(memory), 3, 4))
            data = c.create_string_buffer(64)
            called(cuda.cuMemPoolExportPointer, data, memory)
            imported = made(
                cuda.cuMemPoolImportFromShareableHandle, descriptor.value, c.c_int(1), 0)
            there = made(cuda.cuMemPoolImportPointer, imported, data)
            print(there != memory, read(driver.CUdeviceptr(there), 4))
    """) == ["True [3, 3, 3, 3]"]


@pytest.mark.slow
def test_forms_of_older_versions_are_found_where_they_take_the_same() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            def found(name, version):
                place, status = c.c_void_p(), c.c_int()
                code = cuda.cuGetProcAddress_v2(
                    name, c.byref(place), c.c_int(version), c.c_uint64(0), c.byref(status))
                return code, status.value, place.value
            names = [(b"cuCtxCreate", 2000), (b"cuCtxDestroy", 2000), (b"cuStreamDestroy", 2000),
                     (b"cuEventDestroy", 2000), (b"cuEventElapsedTime", 2000),
                     (b"cuCtxPushCurrent", 2000), (b"cuCtxPopCurrent", 2000),
                     (b"cuDevicePrimaryCtxRelease", 7000), (b"cuDevicePrimaryCtxReset", 7000),
                     (b"cuIpcOpenMemHandle", 4010), (b"cuMemHostRegister", 4000)]
            for name, version in names:
                old = found(name, version)
                assert old[:2] == (0, 0), name
                assert old[2] == c.cast(getattr(cuda, name.decode()), c.c_void_p).value
                assert found(name, 13000)[2] != old[2]
            context = made(cuda.cuCtxCreate, c.c_uint(0), c.c_int(0))
            stream = made(cuda.cuStreamCreate, c.c_uint(0))
            called(cuda.cuStreamDestroy, stream)
            print(made(cuda.cuCtxPopCurrent) == context)
            called(cuda.cuCtxDestroy, context)
            called(cuda.cuDevicePrimaryCtxRelease, c.c_int(0))
            for name in (b"cuFuncGetAttribute", b"cuFuncSetAttribute"):
                assert found(name, 2000) == (0, 2, None)  # as driver 580
                assert found(name, 13000)[:2] == (0, 0)
            print(found(b"cuNothing", 13000))
    """) == ["True", "(500, 1, None)"]


def test_null_where_an_address_belongs_is_an_invalid_value_in_every_function() -> None:
    assert _told("""
        from cudadrv.driver.functions import forms
        from cudadrv.emulator.shared_libraries.signature import signature
        with stand_in():
            for number in (0, 1):
                accepted = []
                for form in map(signature, forms()):
                    if form.is_absent:
                        continue
                    cuda = library()
                    function = getattr(cuda, form.symbol)
                    function.argtypes = [each.c_type for each in form.parameters]
                    given = [
                        each.c_type() if each.word.startswith("@") and not each.mark
                        else 0 if each.word == "text" and not each.mark
                        else 0 if each.mark or "*" in each.word
                        else 0 if each.word in ("size", "bytes", "stream")
                        else number
                        for each in form.parameters
                    ]
                    code = function(*given)  # a crash would end the process
                    if any(each.is_needed for each in form.parameters) and code != 1:
                        accepted.append((form.symbol, code))
                print(accepted)
    """) == ["[]", "[]"]


@pytest.mark.slow
def test_no_null_ends_the_process_whatever_else_is_given() -> None:
    assert _told("""
        import random
        from cudadrv.driver.functions import forms
        from cudadrv.emulator.shared_libraries.signature import signature
        chosen, memory = random.Random(34), c.create_string_buffer(1 << 16)
        def argument(parameter):
            if parameter.mark or parameter.word.startswith("*"):
                c.memset(memory, 0, len(memory))
                return chosen.choice([0, c.addressof(memory)])
            if parameter.word == "text":
                return chosen.choice([None, b"", b"x"])
            if parameter.word.startswith("@"):
                return parameter.c_type()
            is_wide = parameter.word in ("size", "bytes", "stream")
            return 0 if is_wide else parameter.c_type(chosen.randrange(4))
        with stand_in(2):
            for form in map(signature, forms()):
                cuda = library()
                types = [c.c_char_p if p.word == "text" else p.c_type for p in form.parameters]
                function = c.CFUNCTYPE(c.c_int, *types)((form.symbol, cuda))
                print(form.symbol, file=sys.stderr, flush=True)  # shown if the process ends
                for _ in range(2):
                    assert function(*map(argument, form.parameters)) != 999
            print("all")
    """) == ["all"]


@pytest.mark.slow
def test_an_allocation_without_a_place_for_its_address_allocates_nothing() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            before = ok(driver.cuMemGetInfo())
            print(cuda.cuMemAlloc_v2(None, c.c_size_t(64)))
            print(cuda.cuMemAllocAsync(None, c.c_size_t(64), None))
            print(cuda.cuMemHostAlloc(None, c.c_size_t(64), 0))
            print(ok(driver.cuMemGetInfo()) == before)
    """) == ["1", "1", "1", "True"]


@pytest.mark.slow
def test_results_that_the_manual_calls_optional_may_be_null() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            memory, size = int(ok(driver.cuMemAlloc(64))), c.c_size_t()
            called(cuda.cuMemGetAddressRange_v2, 0, c.byref(size), memory + 8)
            print(size.value)
            called(cuda.cuMemGetAddressRange_v2, c.byref(size), 0, memory + 8)
            print(size.value == memory)
            least = c.c_int(7)
            called(cuda.cuCtxGetStreamPriorityRange, c.byref(least), 0)
            print(least.value)
            context = ok(driver.cuCtxGetCurrent())
            called(cuda.cuCtxPushCurrent_v2, int(context))
            called(cuda.cuCtxPopCurrent_v2, 0)
    """) == ["64", "True", "0"]


@pytest.mark.slow
def test_callers_of_c_make_flat_arrays_batches_of_operations_and_old_graphs() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            array = made(cuda.cuArrayCreate_v2, struct.pack("<QQII", 4, 0, 3, 1))
            data = (c.c_uint32 * 4)(5, 6, 7, 8)
            called(cuda.cuMemcpyHtoA_v2, array, 0, data, 16)
            memory, pitch = c.c_size_t(), c.c_size_t()
            called(cuda.cuMemAllocPitch_v2, c.byref(memory), c.byref(pitch), 16, 2, c.c_uint(4))
            called(cuda.cuMemcpyAtoD_v2, memory.value, array, 4, 12)
            # CU_STREAM_MEM_OP_WRITE_VALUE_32, then CU_STREAM_MEM_OP_WAIT_VALUE_32 for equality.
            batch = struct.pack("<i4xQQI20x", 2, memory.value + 12, 9, 0)
            batch += struct.pack("<i4xQQI20x", 1, memory.value + 12, 9, 1)
            called(cuda.cuStreamBatchMemOp_v2, 0, c.c_uint(2), batch, c.c_uint(0))
            print(read(driver.CUdeviceptr(memory.value), 4), pitch.value)
            graph = made(cuda.cuGraphCreate, c.c_uint(0))
            log = c.create_string_buffer(b"?", 8)
            print(bool(made(cuda.cuGraphInstantiate_v2, graph, 0, log, 8)), log.value)
            waits = cuda.cuStreamWaitValue32_v2(0, memory, 1, 1)
            print(waits, ok(driver.cuGetErrorString(driver.CUresult(waits))).decode())
    """) == ["[6, 7, 8, 9] 512", "True b''", "801 operation not supported"]
