"""Parts and shapes of device arrays, against NumPy's of the same data."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError

from .conftest import compile_module

DATA = np.arange(2 * 3 * 4 * 5, dtype="i4").reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1],
        np.s_[-1, 2],
        np.s_[1, 2, 3, 4],
        np.s_[0, 1:3],
        np.s_[1, -2:, :, :],
        np.s_[:, :],
        np.s_[0:1, 2],
        np.s_[1:2, 0:1, 1:3],
        np.s_[1:1, 0],
        np.s_[:, 1:1],
        np.s_[np.int64(1), 0:2],
        np.s_[5:9],
    ],
)
def test_parts_that_lie_together_are_views(
    stream: cudadrv.Stream, key: int | slice | tuple[int | slice, ...]
) -> None:
    array = stream.to_device(DATA)
    assert np.array_equal(stream.to_host(array[key]), np.asarray(DATA[key]))


def test_indices_beyond_the_array_are_rejected(stream: cudadrv.Stream) -> None:
    array = stream.to_device(DATA)
    with pytest.raises(IndexError, match="index 2 is out of range for an axis of 2"):
        array[2]
    with pytest.raises(IndexError, match="index -4 is out of range for an axis of 3"):
        array[0, -4]
    with pytest.raises(IndexError, match="5 indices for an array of 4 dimensions"):
        array[0, 0, 0, 0, 0]
    with pytest.raises(TypeError, match=r"integers, slices, \.\.\. and None, not list"):
        array[[0, 1]]  # type: ignore[call-overload]  # what is tested
    assert [stream.to_host(row).tolist() for row in array] == DATA.tolist()


def test_shapes_are_whole_numbers_of_any_kind(stream: cudadrv.Stream) -> None:
    array = stream.to_device(DATA)
    assert array.reshape((6, 20)).shape == array.reshape(6, -1).shape == (6, 20)
    assert array.reshape([np.int64(6), 20]).shape == (6, 20)
    assert array.reshape(120).shape == array.reshape(-1).shape == array.reshape((-1,)).shape
    assert array[0, 0, 0, 0].reshape(()).shape == ()
    assert stream.empty(np.int64(3), "f4").shape == (3,)
    assert stream.empty(tuple(np.array([2, 3])), "f4").shape == (2, 3)
    for shape in (2.5, "3", None, (2, 2.5)):
        with pytest.raises(TypeError, match="a shape is an integer or several"):
            stream.empty(shape, "f4")  # type: ignore[arg-type]  # what is tested
    buffer = stream.alloc(np.int64(8))  # type: ignore[arg-type]  # what arithmetic with NumPy gives
    assert type(buffer.nbytes) is int
    with pytest.raises(TypeError):
        stream.alloc(8.0)  # type: ignore[arg-type]  # what is tested


def test_an_array_is_no_number_and_no_host_array(stream: cudadrv.Stream) -> None:
    array, buffer = stream.to_device([1.0]), stream.alloc(8)
    assert operator.index(array) == array.ptr
    given: tuple[Any, ...] = (array, buffer)  # a type checker refuses them as well
    for memory in given:
        with pytest.raises(TypeError, match=r"is not a number: read it with Stream\.to_host"):
            float(memory)
        with pytest.raises(TypeError, match=r"copy it with Stream\.to_host"):
            np.asarray(memory)
        with pytest.raises(TypeError, match=r"copy it with Stream\.to_host"):
            stream.to_device(memory)
    with pytest.raises(TypeError, match="is true only its elements say"):
        bool(array)


def test_the_address_of_memory_is_not_packed_where_a_float_belongs(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = 'extern "C" __global__ void put(float* o, float f, double d) { *o = f + d; }'
    launcher = compile_module(context, source).kernel("put").bind(stream, LaunchConfig(1, 1))
    out = stream.zeros(1, "f4")
    for _ in range(3):
        launcher(out, 1.0, 2.0)
        for wrong in (out, stream.alloc(4)):
            with pytest.raises(ArgumentError, match="argument 1 .* but the parameter is float32"):
                launcher(out, wrong, 2.0)
            with pytest.raises(ArgumentError, match="argument 2 .* but the parameter is float64"):
                launcher(out, 1.0, wrong)
    assert stream.to_host(out).tolist() == [3.0]


def test_memory_is_neither_copied_as_an_object_nor_pickled(stream: cudadrv.Stream) -> None:
    for memory in (stream.zeros(3, "f4"), stream.alloc(3)):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"a Device\w+ cannot be copied or pickled"):
                make(memory)


def test_attributes_of_an_array_cannot_be_set(stream: cudadrv.Stream) -> None:
    array = stream.to_device(np.arange(12, dtype=np.int32).reshape(3, 4))
    source = 'extern "C" __global__ void k(int* x) {}'
    kernel = compile_module(stream.context, source).kernel("k")
    objects: tuple[Any, ...] = (
        array, array[1:], array.T, array.buffer, stream, stream.context, stream.record(), kernel,
    )  # fmt: skip
    names = (
        "shape", "dtype", "strides", "nbytes", "stream", "context", "ptr", "device", "handle",
        "launch", "name", "module", "closed", "shpae",
    )  # fmt: skip
    for each in objects:
        before = {name: getattr(each, name, None) for name in names}
        for name in names:
            with pytest.raises(AttributeError):
                setattr(each, name, (1024,))
            with pytest.raises(AttributeError):
                delattr(each, name)
        after = {name: getattr(each, name, None) for name in names}
        assert repr(after) == repr(before)
    assert stream.to_host(array).tolist() == np.arange(12).reshape(3, 4).tolist()
