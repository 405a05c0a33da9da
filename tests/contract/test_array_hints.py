"""Attributes that arrays of other libraries have: the error names what does it here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudadrv

_CALL = re.compile(r"\n  (?:copy it to the host|copy to it|copy it|fill it|view it by)(?::|) (.*)")
COMPUTING = ("sum", "astype", "mean", "dot", "argmax")


def own_way(array: Any, name: str) -> str:
    """Return the code that the error for an attribute names."""
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(array, name)
    assert (caught.value.name, caught.value.obj) == (name, array)
    found = _CALL.search(str(caught.value))
    assert found, str(caught.value)
    return found[1]


def test_the_code_that_an_error_names_does_what_the_method_does(
    context: cudadrv.Context,
) -> None:
    stream = context.new_stream()
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    host_array, value = start * 10, 7.0
    wanted: dict[str, Callable[[Any, Any], bool]] = {
        "get": lambda array, result: (result == start).all(),
        "copy_to_host": lambda array, result: (result == start).all(),
        "set": lambda array, result: (stream.to_host(array) == host_array).all(),
        "copy_to_device": lambda array, result: (stream.to_host(array) == host_array).all(),
        "fill": lambda array, result: (stream.to_host(array) == value).all(),
        "ravel": lambda array, result: (stream.to_host(result) == start.ravel()).all(),
    }
    for view in (False, True):
        for name, check in wanted.items():
            array = stream.to_device(start)
            code = own_way(array[:] if view else array, name)
            names = {"stream": stream, "array": array, "host_array": host_array, "value": value}
            assert check(array, eval(code, names)), (name, code)
    array = stream.to_device(start)
    code = own_way(array, "copy").replace("stream.empty(array.shape, array.dtype)", "other")
    other = stream.empty(array.shape, array.dtype)
    eval(code, {"stream": stream, "array": array, "other": other})
    assert (stream.to_host(other) == start).all()


def test_a_method_that_computes_names_libraries_that_share_the_memory(
    context: cudadrv.Context,
) -> None:
    array: Any = context.default_stream.zeros(3, "f4")
    for name in COMPUTING:
        assert not hasattr(array, name)
        with pytest.raises(AttributeError, match=rf"(?s)'{name}'.*cupy\.asarray\(array\)"):
            getattr(array, name)


def test_other_missing_attributes_and_closed_arrays_have_the_errors_they_had(
    context: cudadrv.Context,
) -> None:
    array: Any = context.default_stream.zeros(3, "f4")
    with pytest.raises(AttributeError, match="^'DeviceArray' object has no attribute 'nothing'$"):
        array.nothing  # noqa: B018
    assert not hasattr(array, "__array_struct__")
    array.close()
    with pytest.raises(cudadrv.errors.ClosedError):
        array.ptr  # noqa: B018
