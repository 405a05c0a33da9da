"""Parameters of classes and unions, plain and `__grid_constant__ const`, on each path.

The oracle is `ctypes`: its structures have the layout of the platform's compiler, which is CUDA's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import CudadrvError

from ..conftest import compile_module

ONE: Final = LaunchConfig(1, 1)


def _of(*kinds: Any, base: Any = ctypes.Structure) -> Any:
    """Return the class of `ctypes` with fields of these types."""
    fields = [(f"field_{number}", kind) for number, kind in enumerate(kinds)]
    return type("Made", (base,), {"_fields_": fields})


def _used(kind: Any) -> list[bool]:
    """Return which bytes of a type are no padding, which a compiler need not copy."""
    used = [not hasattr(kind, "_fields_")] * ctypes.sizeof(kind)
    if issubclass(kind, ctypes.Array):
        elements: list[bool] = _used(kind._type_) * kind._length_
        return elements
    for name, field in getattr(kind, "_fields_", ()):
        start = getattr(kind, name).offset
        for number, is_used in enumerate(_used(field), start):
            used[number] |= is_used
    return used


_CHAR, _INT, _SHORT, _DOUBLE = ctypes.c_char, ctypes.c_int, ctypes.c_short, ctypes.c_double
# The declaration of a type, and its bytes that are no padding.
TYPES: Final[dict[str, tuple[str, list[bool]]]] = {
    "Padded": (
        "struct Padded { char a; double b; short c; };",
        _used(_of(_CHAR, _DOUBLE, _SHORT)),
    ),
    "Nested": (
        "struct Inner { char a; int b; }; struct Nested { Inner in[2]; long long c; };",
        _used(_of(_of(_CHAR, _INT) * 2, ctypes.c_longlong)),
    ),
    "Arrays": (
        "struct Arrays { short a[3]; char b[5]; float c[2]; };",
        _used(_of(_SHORT * 3, _CHAR * 5, ctypes.c_float * 2)),
    ),
    "Either": (
        "union Either { int a; double b; char c[12]; };",
        _used(_of(_INT, _DOUBLE, _CHAR * 12, base=ctypes.Union)),
    ),
    "Aligned": ("struct alignas(16) Aligned { int a; };", [True] * 4 + [False] * 12),
    "Large": ("struct Large { int a[1000]; };", _used(_of(_INT * 1000))),
    "int3": ("", _used(_INT * 3)),
    "short3": ("", _used(_SHORT * 3)),
    "double3": ("", _used(_DOUBLE * 3)),
    "uchar4": ("", _used(_CHAR * 4)),
}
_KERNEL: Final = """extern "C" __global__ void {name}(char first, {type} value, char* out) {{
    memcpy(out, &value, sizeof(value));
    out[sizeof(value)] = first;
}}
"""
_MOST: Final = 4096


class Lab:
    """The kernels, and a stream."""

    def __init__(self, context: cudadrv.Context, stream: cudadrv.Stream) -> None:
        self.stream = stream
        source = "".join(text for text, _ in TYPES.values())
        for name in TYPES:
            source += _KERNEL.format(name=f"plain_{name}", type=name)
            constant = f"const __grid_constant__ {name}"
            source += _KERNEL.format(name=f"constant_{name}", type=constant)
        self.module = compile_module(context, source)
        self.out = stream.zeros(_MOST, np.uint8)

    def found(self, nbytes: int) -> tuple[bytes, int]:
        """Return the bytes that the kernel found, and its first argument."""
        data = self.stream.to_host(self.out)
        self.stream.fill(self.out, 0)
        return data[:nbytes].tobytes(), int(data[nbytes])


Way = Callable[[Lab, cudadrv.Kernel, tuple[Any, ...], tuple[Any, ...]], Iterator[None]]


def launches(lab: Lab, kernel: cudadrv.Kernel, args: Any, _: Any) -> Iterator[None]:
    for _time in range(3):
        kernel.launch(lab.stream, ONE, *args)
        yield


def bound(lab: Lab, kernel: cudadrv.Kernel, args: Any, other: Any) -> Iterator[None]:
    launcher = kernel.bind(lab.stream, ONE)
    for _time in range(3):
        launcher(*other)
        launcher(*args)
        yield


def prepared(lab: Lab, kernel: cudadrv.Kernel, args: Any, other: Any) -> Iterator[None]:
    launcher = kernel.bind(lab.stream, ONE)
    first, second = launcher.prepare(*args), launcher.prepare(*other)
    second()
    first()
    yield


def captured(lab: Lab, kernel: cudadrv.Kernel, args: Any, other: Any) -> Iterator[None]:
    with lab.stream.capture() as graph:
        kernel.launch(lab.stream, ONE, *other)
        kernel.launch(lab.stream, ONE, *args)
    graph.instantiate().launch(lab.stream)
    yield


def nodes(lab: Lab, kernel: cudadrv.Kernel, args: Any, other: Any) -> Iterator[None]:
    graph = lab.stream.context.new_graph()
    node = graph.add_kernel(kernel, ONE, *args)
    executable = graph.instantiate()
    executable.launch(lab.stream)
    yield
    node.update_in(executable, kernel, ONE, *other)
    node.update_in(executable, kernel, ONE, *args)
    executable.launch(lab.stream)
    yield
    node.update(kernel, ONE, *other)
    node.update(kernel, ONE, *args)
    graph.instantiate().launch(lab.stream)
    yield


WAYS: Final[tuple[Way, ...]] = (launches, bound, prepared, captured, nodes)


@pytest.fixture
def lab(context: cudadrv.Context, stream: cudadrv.Stream) -> Lab:
    return Lab(context, stream)


@pytest.mark.slow
def test_the_bytes_of_each_class_arrive_on_each_path(lab: Lab) -> None:
    random, cells = np.random.default_rng(7), 0
    for name, (_, used) in TYPES.items():
        nbytes = len(used)
        for form in ("plain", "constant"):
            kernel = lab.module.kernel(f"{form}_{name}")
            data, others = (random.integers(1, 255, nbytes, np.uint8).tobytes() for _ in range(2))
            structured = np.frombuffer(data, [("bytes", np.uint8, (nbytes,))])[0]
            for value in (data, structured, structured.reshape(())[()]):
                for way in WAYS:
                    args, other = (9, value, lab.out), (5, others, lab.out)
                    for _time in way(lab, kernel, args, other):
                        found, first = lab.found(nbytes)
                        where = (name, form, way.__name__)
                        assert first == 9, where
                        assert [*compress(found, used)] == [*compress(data, used)], where
                        cells += 1
            for wrong in (data[:-1], data + b"x", 1, 1.5, None, "x" * nbytes):
                with pytest.raises(CudadrvError, match="argument "):
                    kernel.launch(lab.stream, ONE, 9, wrong, lab.out)
    assert cells == len(TYPES) * 2 * 3 * 11


def test_an_empty_class_takes_one_byte(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    source = "struct Empty {}; " + _KERNEL.format(name="k", type="Empty")
    kernel = compile_module(context, source).kernel("k")
    out = stream.zeros(4, np.uint8)
    kernel.launch(stream, ONE, 9, b"\0", out)
    assert stream.to_host(out)[1] == 9
    with pytest.raises(CudadrvError, match="argument "):
        kernel.launch(stream, ONE, 9, b"", out)
