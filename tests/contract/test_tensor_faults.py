"""Copies by tensor maps that a device ends, each in a process of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import cudadrv

from .tensor_kernels import needs_tensor_maps
from .test_faults import run

# One thread copies, or prefetches. `x` is the innermost coordinate, or a filter's position.
CODE = """
from contextlib import nullcontext

import cudadrv.emulator
from tests.contract.tensor_kernels import COMMON

SOURCE = COMMON + r'''
extern "C" __global__ void k(const __grid_constant__ TensorMap map, int x) {
  __shared__ __align__(1024) unsigned char box[1024];
  __shared__ unsigned long long bar;
  unsigned short zero = 0;
  init(&bar, 1);
  make_barriers_known();
  expect(&bar, NBYTES);
  KIND
  // What nobody waits for may fault after the kernel's end, where a device tells nobody.
  for (int i = 0; i < 200; ++i) __nanosleep(1000);
}
'''
SUM = ('asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group'
       ' [%0, {%1, %2}], [%3];" :: "l"(&map), "r"(x), "r"(0), "r"(at(box)) : "memory");'
       ' finish_stores();')
KINDS = {
    "load": 'load(box, &map, x, 0, &bar); wait(&bar, 0);',
    "store": 'store(&map, x, 0, box); finish_stores();',
    "store above": 'store(&map, x, -1, box); finish_stores();',
    "load slices": 'asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile'
        '.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %3}], [%4];"'
        ' :: "r"(at(box)), "l"(&map), "r"(x), "r"(0), "r"(at(&bar)) : "memory"); wait(&bar, 0);',
    "store slices": 'asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group'
        ' [%0, {%1, %2, %2}], [%3];"'
        ' :: "l"(&map), "r"(x), "r"(0), "r"(at(box)) : "memory"); finish_stores();',
    "store other slices": 'asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group'
        ' [%0, {%2, %1, %2}], [%3];"'
        ' :: "l"(&map), "r"(x), "r"(0), "r"(at(box)) : "memory"); finish_stores();',
    "sum slices": 'asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile'
        '.bulk_group [%0, {%1, %2, %2}], [%3];"'
        ' :: "l"(&map), "r"(x), "r"(2), "r"(at(box)) : "memory"); finish_stores();',
    "store images": 'asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs'
        '.bulk_group [%0, {%1, %1, %2, %1}], [%3];"'
        ' :: "l"(&map), "r"(x), "r"(1), "r"(at(box)) : "memory"); finish_stores();',
    "sum": SUM,
    "inc": SUM.replace(".add", ".inc"),
    "and": SUM.replace(".add", ".and"),
    "prefetch": 'asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];"'
        ' :: "l"(&map), "r"(x), "r"(0));',
    "three coordinates": 'asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile'
        '.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2, %2}], [%3];"'
        ' :: "r"(at(box)), "l"(&map), "r"(x), "r"(at(&bar)) : "memory");',
    "im2col": 'asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col'
        '.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %2, %2}], [%4], {%5, %5};"'
        ' :: "r"(at(box)), "l"(&map), "r"(0), "r"(x), "r"(at(&bar)), "h"(zero) : "memory");'
        ' wait(&bar, 0);',
}

def copied(kind, map_of, x):
    stream = cuda_context_for(0).default_stream
    if map_of == "tiles":
        tensor_map = cudadrv.tensor_map.TensorMap(stream.zeros((16, 64), "f2"), (16, 32))
    elif map_of in ("slices", "halves"):
        slices = stream.zeros((5, 40, 8, 8), "u2" if map_of == "slices" else "f2")
        tensor_map = cudadrv.tensor_map.TensorMap(slices, (2, 1, 8, 8),
                                       interleave=cudadrv.tensor_map.TensorInterleave.BYTES_16)
    elif map_of in ("sliced images", "sliced border"):
        corners = [(0, 0) if map_of == "sliced images" else (-1, -1)] * 2
        images = stream.zeros((3, 20, 6, 8, 8), "u2")
        by_16 = cudadrv.tensor_map.TensorInterleave.BYTES_16
        tensor_map = cudadrv.tensor_map.TensorMap.im2col(images, *corners, 8, 20, interleave=by_16)
    elif map_of == "images":
        images = stream.zeros((1, 6, 6, 16), "f2")
        tensor_map = cudadrv.tensor_map.TensorMap.im2col(images, (0, 0), (0, 0), 8, 4)
    else:
        tensor_map = bytes(128)
    nbytes = getattr(tensor_map, "box_nbytes", 1024)
    try:
        k = kernel(SOURCE.replace("KIND", KINDS[kind]).replace("NBYTES", str(nbytes)))
        k.launch(stream, LaunchConfig(1, 1), tensor_map, x)
        stream.synchronize()
        print("copied")
    except CudaError as error:
        print(type(error).__name__, error.code, error.sticky)

for case in eval(sys.argv[1]):
    # An emulated device goes with its session, a GPU's context with the process.
    with cudadrv.emulator.session() if cuda_context_for(0).device.is_emulated else nullcontext():
        copied(*case)
"""
# What copies, by a map of what, and the coordinate.
BETWEEN_16_BYTES = [(kind, "tiles", 4) for kind in ("load", "store", "sum", "prefetch")]
NOT_FITTING = [
    ("load", "nothing", 0), ("three coordinates", "tiles", 0), ("im2col", "tiles", 0),
    ("load", "images", 0), ("inc", "tiles", 0), ("and", "tiles", 0),
    ("im2col", "images", -1), ("im2col", "images", 6),  # of 6 positions
]  # fmt: skip
COPIED = [
    ("load", "tiles", -8), ("load", "tiles", 64), ("store", "tiles", 8), ("store", "tiles", 64),
    ("sum", "tiles", 8), ("sum", "tiles", 64), ("im2col", "images", 5),
    ("load slices", "slices", 3), ("load slices", "slices", -1), ("store slices", "slices", 1),
    ("sum slices", "halves", 1), ("store images", "sliced images", 0),
]  # fmt: skip
# CUDA Programming Guide, "Tensor Memory Access": where boxes are written, "the top left corner
# cannot have any negative indices".
BEFORE_THE_TENSOR = [
    ("store", "tiles", -8), ("sum", "tiles", -8), ("store above", "tiles", 0),
    ("store slices", "slices", -1), ("store other slices", "slices", -1),
    ("sum slices", "halves", -1), ("store images", "sliced border", 0),
]  # fmt: skip


def told(context: cudadrv.Context, cases: list[tuple[str, str, int]]) -> set[str]:
    """What becomes of copies, each on a device that no other has spoiled."""
    needs_tensor_maps(context)
    groups = [cases] if context.device.is_emulated else [[case] for case in cases]
    with ThreadPoolExecutor(4) as pool:
        lines = "".join(pool.map(lambda group: run(CODE, repr(group)), groups)).splitlines()
    assert len(lines) == len(cases)
    return set(lines)


@pytest.mark.slow
def test_a_box_between_16_bytes_of_a_row_is_an_illegal_instruction(
    context: cudadrv.Context,
) -> None:
    assert told(context, BETWEEN_16_BYTES) == {"IllegalInstructionError 715 True"}


@pytest.mark.slow
def test_a_copy_by_a_map_that_does_not_fit_it_is_an_illegal_instruction(
    context: cudadrv.Context,
) -> None:
    assert told(context, NOT_FITTING) == {"IllegalInstructionError 715 True"}


@pytest.mark.slow
def test_a_box_that_is_written_before_the_tensor_is_an_illegal_instruction(
    context: cudadrv.Context,
) -> None:
    assert told(context, BEFORE_THE_TENSOR) == {"IllegalInstructionError 715 True"}


@pytest.mark.slow
def test_boxes_that_begin_at_16_bytes_are_copied(context: cudadrv.Context) -> None:
    assert told(context, COPIED) == {"copied"}
