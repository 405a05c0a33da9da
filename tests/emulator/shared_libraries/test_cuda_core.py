"""Memory as cuda.core has it, through the functions of C."""

from __future__ import annotations

import textwrap

import pytest

from .process import run_program
from .test_other_libraries import has

pytestmark = pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")

_CORE = """
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
ORDERS = pytest.mark.parametrize("order", ["immediate", "late"])


def told(program: str, order: str, expected: list[str]) -> None:
    """A program prints this, if there are the functions that it needs."""
    names = {"CUDADRV_EMULATOR_ORDER": order}
    out = run_program(_CORE + textwrap.dedent(program), names).splitlines()
    assert out in (expected, ["none"])


@ORDERS
def test_buffers_are_copied_in_a_batch(order: str) -> None:
    told("""
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
    """, order, ["[[1], [2], [3]]", "[[1], [1], [1]]"])  # fmt: skip


@ORDERS
def test_pinned_memory_comes_from_pools(order: str) -> None:
    told("""
        stand_in()
        core, utils, device, stream = core()
        for options in (None, core.PinnedMemoryResourceOptions(max_size=1 << 20)):
            pool = core.PinnedMemoryResource(options)
            buffer = filled(pool, 5, stream)
            print(seen(buffer, stream), pool.attributes.used_mem_current, pool.is_handle_owned)
            buffer.close(stream)
            stream.sync()
            print(pool.attributes.used_mem_current)
            pool.close()
        try:
            core.PinnedMemoryResource(core.PinnedMemoryResourceOptions(ipc_enabled=True))
        except core._utils.cuda_utils.CUDAError as error:
            print("CUDA_ERROR_NOT_SUPPORTED" in str(error))
            print(b"without handle types" in driver.cuGetErrorString(driver.CUresult(801))[1])
    """, order, ["[5] 4096 False", "0", "[5] 4096 True", "0", "True", "True"])  # fmt: skip


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
