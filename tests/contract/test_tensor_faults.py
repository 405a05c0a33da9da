"""Copies by tensor maps that a device ends, each in a process of its own."""

from __future__ import annotations

import pytest

import cudadrv

from .tensor_kernels import needs_tensor_maps
from .test_faults import run

# One thread copies, or prefetches, from an innermost coordinate.
CODE = """
from tests.contract.tensor_kernels import COMMON

SOURCE = COMMON + r'''
extern "C" __global__ void k(const __grid_constant__ TensorMap map, int x) {
  __shared__ __align__(1024) unsigned char box[1024];
  __shared__ unsigned long long bar;
  init(&bar, 1);
  make_barriers_known();
  expect(&bar, 1024);
  KIND
}
'''
KINDS = {
    "load": 'load(box, &map, x, 0, &bar); wait(&bar, 0);',
    "store": 'store(&map, x, 0, box); finish_stores();',
    "reduction": 'asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group'
        ' [%0, {%1, %2}], [%3];" :: "l"(&map), "r"(x), "r"(0), "r"(at(box)) : "memory");'
        ' finish_stores();',
}
stream = cuda_context_for(0).default_stream
tensor_map = cudadrv.TensorMap(stream.zeros((16, 64), "f2"), (16, 32))
try:
    k = kernel(SOURCE.replace("KIND", KINDS[sys.argv[1]]))
    k.launch(stream, LaunchConfig(1, 1), tensor_map, int(sys.argv[2]))
    stream.synchronize()
    print("done")
except CudaError as error:
    print(type(error).__name__, error.code, error.sticky, "16 bytes" in str(error))
"""


@pytest.mark.parametrize("kind", ["load", "store", "reduction"])
def test_a_box_between_16_bytes_of_a_row_is_an_illegal_instruction(
    context: cudadrv.Context, kind: str
) -> None:
    needs_tensor_maps(context)
    assert run(CODE, kind, "4") == "IllegalInstructionError 715 True True\n"


def test_a_box_that_begins_at_16_bytes_is_copied(context: cudadrv.Context) -> None:
    needs_tensor_maps(context)
    assert run(CODE, "load", "-8") == "done\n"
