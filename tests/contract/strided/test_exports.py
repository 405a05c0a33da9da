"""Strided views given to other libraries and taken from them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv.errors import ArgumentTypeError, DTypeError, ExportError
from cudadrv.memory.array import AnyDeviceArray

from ..protocols import ByDlpack, ByInterface, pointer_of_capsule

HOST = np.arange(2 * 3 * 4, dtype="f4").reshape(2, 3, 4)
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
has_versions = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Versioned:
    """A producer of version 1, whose memory may only be read where that is said."""

    def __init__(self, array: AnyDeviceArray, *, flags: int = 0, major: int = 1) -> None:
        self._array = array
        self._flags, self._major = flags, major

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None, max_version: tuple[int, int]) -> object:
        assert max_version >= (1, 0)
        capsule = self._array.__dlpack__(stream=stream, max_version=max_version)
        address = pointer_of_capsule(capsule, b"dltensor_versioned")
        assert address is not None
        ctypes.c_uint32.from_address(address).value = self._major
        ctypes.c_uint64.from_address(address + 24).value = self._flags
        return capsule


@pytest.mark.parametrize("key", [np.s_[:, ::2], np.s_[::-1, 1], np.s_[..., 2], np.s_[1:, :, 1:3]])
def test_views_go_out_and_come_back_with_their_strides(stream: cudadrv.Stream, key: Any) -> None:
    array = stream.to_device(HOST)
    view, expected = array[key], HOST[key]
    assert view.__cuda_array_interface__["strides"] == expected.strides
    for form in (view, ByDlpack(view), ByInterface(view)):
        taken = stream.import_array(form)
        assert (taken.ptr, taken.shape, taken.strides) == (view.ptr, view.shape, view.strides)
        assert np.array_equal(stream.to_host(taken), expected)
        taken[...] = expected + 1
        assert np.array_equal(stream.to_host(view), expected + 1)
        view[...] = expected


def test_an_array_in_c_order_goes_out_without_strides(stream: cudadrv.Stream) -> None:
    array = stream.to_device(HOST)
    assert array.__cuda_array_interface__["strides"] is None
    assert array.T.T.__cuda_array_interface__["strides"] is None


def test_strides_of_no_whole_elements_go_by_the_interface_alone(stream: cudadrv.Stream) -> None:
    host = np.array([(1, 2.5), (3, 4.5)], [("n", "u1"), ("x", "<f4")])
    view = stream.to_device(host)["x"]
    assert view.__cuda_array_interface__["strides"] == (5,)
    assert stream.to_host(stream.import_array(ByInterface(view))).tolist() == [2.5, 4.5]
    with pytest.raises(ExportError, match=r"strides of \(5,\) bytes, and DLPack counts whole"):
        view.__dlpack__()


@pytest.mark.skipif(not has_versions, reason="NumPy before 2.1 makes no capsules with a version")
def test_a_consumer_of_version_1_gets_it(stream: cudadrv.Stream) -> None:
    array = stream.to_device(HOST)
    assert _name(array.__dlpack__()) == b"dltensor"
    assert _name(array.__dlpack__(max_version=(0, 8))) == b"dltensor"
    assert _name(array.__dlpack__(max_version=(1, 0))) == b"dltensor_versioned"
    assert _name(array.__dlpack__(max_version=(2, 0))) == b"dltensor_versioned"
    taken = stream.import_array(Versioned(array.T))
    assert np.array_equal(stream.to_host(taken), HOST.T)
    with pytest.raises(ArgumentTypeError, match="of DLPack 2.0, of which 1 is known"):
        stream.import_array(Versioned(array, major=2))


@pytest.mark.parametrize(
    ("name", "code", "bits"),
    [
        ("bfloat16", 4, 16),
        ("float8_e3m4", 7, 8),
        ("float8_e4m3", 8, 8),
        ("float8_e4m3b11fnuz", 9, 8),
        ("float8_e4m3fn", 10, 8),
        ("float8_e4m3fnuz", 11, 8),
        ("float8_e5m2", 12, 8),
        ("float8_e5m2fnuz", 13, 8),
        ("float8_e8m0fnu", 14, 8),
    ],
)
def test_small_floats_go_out_by_dlpack_and_come_back(
    stream: cudadrv.Stream, name: str, code: int, bits: int
) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    array = stream.to_device(np.array([1, 2, 4, 16, 8, 0.5], "f4").astype(dtype))[::2]
    capsule = array.__dlpack__()
    address = pointer_of_capsule(capsule, b"dltensor")
    assert address is not None
    assert ctypes.c_uint8.from_address(address + 20).value == code
    assert ctypes.c_uint8.from_address(address + 21).value == bits
    taken = stream.import_array(ByDlpack(array))
    assert taken.dtype == dtype
    assert stream.to_host(taken).astype("f4").tolist() == [1, 4, 8]


def test_a_dtype_that_dlpack_has_not_is_rejected(stream: cudadrv.Stream) -> None:
    with pytest.raises(DTypeError, match="DLPack has no dtype"):
        stream.zeros(3, "S3").__dlpack__(max_version=(1, 0))
