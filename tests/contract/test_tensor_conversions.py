"""What copies by tensor maps make of float32, bit for bit, as an H200 does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.tensor_map import TensorElement, TensorFill, TensorMap

from .conftest import compile_module
from .tensor_kernels import BOXES, dumped, needs_tensor_maps

Words = NDArray[np.uint32]
# float32, and what loads by a map of tf32 make of it: the nearest of 10 bits, of two the even one;
# infinity beyond the largest; subnormals by the same rule, with _FTZ too; of every NaN the same.
TF32 = {
    0x3F800000: 0x3F800000, 0x3F800FFF: 0x3F800000, 0x3F801000: 0x3F800000,
    0x3F801001: 0x3F802000, 0x3F801FFF: 0x3F802000, 0x3F802000: 0x3F802000,
    0x3F802FFF: 0x3F802000, 0x3F803000: 0x3F804000, 0x3F803001: 0x3F804000,
    0x7F7FFFFF: 0x7F800000, 0x7F7FEFFF: 0x7F7FE000, 0x7F7FF000: 0x7F800000,
    0xFF7FFFFF: 0xFF800000, 0x007FFFFF: 0x00800000, 0x00000001: 0, 0x00000FFF: 0, 0x00001000: 0,
    0x00001001: 0x00002000, 0x00003000: 0x00004000, 0x807FFFFF: 0x80800000,
    0x80000001: 0x80000000, 0x007FF000: 0x00800000, 0x007FEFFF: 0x007FE000,
    0x00800000: 0x00800000, 0x00800FFF: 0x00800000, 0x7F800000: 0x7F800000,
    0xFF800000: 0xFF800000, 0x7F800001: 0x7FFFE000, 0x7FC00000: 0x7FFFE000,
    0x7FFFFFFF: 0x7FFFE000, 0xFFC12345: 0x7FFFE000, 0x80000000: 0x80000000,
}  # fmt: skip
GIVEN = np.array([list(TF32)], np.uint32)
FLOAT32 = ["FLOAT32", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ"]
NAN, FILLING = 0x7FFFFFFF, 0x7FF77FF7


@pytest.fixture(scope="module")
def kernels(context: cudadrv.Context) -> cudadrv.Module:
    needs_tensor_maps(context)
    return compile_module(context, BOXES)


def given_to_zeros(stream: cudadrv.Stream, kernels: cudadrv.Module, name: str, sums: bool) -> Words:
    """What stands in an array of zeros behind a store, or a sum, of all words."""
    array = stream.zeros(GIVEN.shape, np.float32)
    tensor_map = TensorMap(array, GIVEN.shape, element=TensorElement[name])
    config = LaunchConfig(1, 32, shared_bytes=GIVEN.nbytes)
    words = stream.to_device(GIVEN)
    kernels.kernel("give").launch(stream, config, tensor_map, words, 0, 0, GIVEN.nbytes, sums)
    return stream.to_host(array).view(np.uint32)


@pytest.mark.parametrize("name", FLOAT32)
def test_loads_round_to_tf32_and_flush_nothing(
    stream: cudadrv.Stream, kernels: cudadrv.Module, name: str
) -> None:
    array = stream.to_device(GIVEN.view(np.float32))
    tensor_map = TensorMap(array, GIVEN.shape, element=TensorElement[name])
    found = dumped(stream, kernels, tensor_map, 0, 0, GIVEN.nbytes).view(np.uint32)
    expected = list(TF32.values() if name.startswith("TF") else TF32)
    assert found.tolist() == expected


@pytest.mark.parametrize("name", FLOAT32)
def test_the_nan_that_fills_is_not_rounded(
    stream: cudadrv.Stream, kernels: cudadrv.Module, name: str
) -> None:
    array = stream.to_device(GIVEN.view(np.float32))
    tensor_map = TensorMap(array, (1, 32), element=TensorElement[name], fill=TensorFill.NAN)
    found = dumped(stream, kernels, tensor_map, 32, 0, 128).view(np.uint32)
    assert found.tolist() == [FILLING] * 32


@pytest.mark.parametrize("name", FLOAT32)
def test_stores_convert_nothing(stream: cudadrv.Stream, kernels: cudadrv.Module, name: str) -> None:
    assert np.array_equal(given_to_zeros(stream, kernels, name, False), GIVEN)


@pytest.mark.parametrize("name", FLOAT32)
def test_sums_are_those_of_float32_and_flush_where_the_element_requires_it(
    stream: cudadrv.Stream, kernels: cudadrv.Module, name: str
) -> None:
    expected = GIVEN.copy()
    expected[np.isnan(GIVEN.view(np.float32))] = NAN
    size = GIVEN & 0x7FFFFFFF
    expected[size < (0x00800000 if name.endswith("FTZ") else 1)] = 0  # 0 and -0 are 0
    assert np.array_equal(given_to_zeros(stream, kernels, name, True), expected)
