"""Objects whose array interface, DLPack methods or numbers are wrong, or raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, ArgumentTypeError, CudadrvError

from .interop.tensors import DLTensor, tensor_in

SOURCE = 'extern "C" __global__ void add(int* x, int n) { if (threadIdx.x < n) ++x[threadIdx.x]; }'
CONFIG = LaunchConfig(1, 4)
HUGE = 10**5000  # Python does not write so many digits


class ByInterface:
    """What has the array interface that a function returns, anew at each read."""

    def __init__(self, read: Callable[[], object]) -> None:
        self.read = read

    @property
    def __cuda_array_interface__(self) -> object:
        return self.read()


class ByDlpack:
    """What exports an array by DLPack, changed by a function, or something else."""

    def __init__(
        self,
        array: Any,
        *,
        change: Callable[[DLTensor], object] = lambda tensor: None,
        export: Callable[[], object] | None = None,
        where: Callable[[], object] | None = None,
    ) -> None:
        self.array, self.change, self.export, self.where = array, change, export, where

    def __dlpack_device__(self) -> object:
        return self.array.__dlpack_device__() if self.where is None else self.where()

    def __dlpack__(self, **asked: Any) -> object:
        if self.export is not None:
            return self.export()
        capsule = self.array.__dlpack__(**asked)
        self.change(tensor_in(capsule))
        return capsule


class Wrong:
    """What raises wherever it is read."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __index__(self) -> int:
        raise RuntimeError("no number")

    __int__ = __float__ = __iter__ = __bool__ = __hash__ = __index__


def fail() -> object:
    raise RuntimeError("no memory")


ENTRIES: dict[str, dict[str, object]] = {
    "address past 64 bits": {"data": (1 << 64, False)},
    "negative address": {"data": (-1, False)},
    "address of 5,000 digits": {"data": (HUGE, False)},
    "address of text": {"data": ("x", False)},
    "infinite address": {"data": (float("inf"), False)},
    "address that raises": {"data": (Wrong(), False)},
    "data that is none": {"data": None},
    "other elements": {"typestr": "<f8"},
    "elements that raise": {"typestr": Wrong()},
    "stream that raises": {"stream": Wrong()},
    "stream past 64 bits": {"stream": HUGE},
}
NOT_IMPORTED: dict[str, dict[str, object]] = {
    **{name: entry for name, entry in ENTRIES.items() if name != "other elements"},
    "shape that raises": {"shape": Wrong()},
    "shape of 5,000 digits": {"shape": (HUGE,)},
    "negative shape": {"shape": (-1,)},
    "memory that ends past 64 bits": {"data": ((1 << 64) - 4, False), "shape": (2,)},
    "strides past 64 bits": {"strides": (1 << 70,)},
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_wrong_array_interface_is_an_argument_error_at_every_launch(
    kernels: cudadrv.Module, stream: cudadrv.Stream, entry: dict[str, object]
) -> None:
    launch = kernels.kernel("add").bind(stream, CONFIG)
    array = stream.zeros(4, "i4")
    right = array.__cuda_array_interface__
    wrong: dict[str, object] = {**right, **entry}
    turns: list[object] = []

    def in_turns() -> object:
        turns.append(wrong if len(turns) % 2 else right)
        return turns[-1]

    for _ in range(2):
        for _ in range(2):
            with pytest.raises(ArgumentError, match="^argument 0 of kernel 'add' is of type ByInt"):
                launch(ByInterface(lambda: wrong), 1)
        for _ in range(3):  # the launcher's code is made for such objects now
            launch(ByInterface(lambda: right), 1)
    done = 6
    for _ in range(6):
        try:
            launch(ByInterface(in_turns), 1)
            done += 1
        except ArgumentError:
            pass
    assert stream.to_host(array).tolist() == [done, 0, 0, 0]


@pytest.mark.parametrize("entry", NOT_IMPORTED.values(), ids=NOT_IMPORTED)
def test_a_wrong_array_interface_is_not_imported(
    stream: cudadrv.Stream, entry: dict[str, object]
) -> None:
    array = stream.zeros(4, "i4")
    right = array.__cuda_array_interface__
    with pytest.raises(CudadrvError):
        stream.import_array(ByInterface(lambda: {**right, **entry}))


def test_an_interface_that_raises_is_an_argument_error(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    text = r"has memory that cannot be read\n  RuntimeError\('no memory'\)\n  give an object whose"
    with pytest.raises(ArgumentError, match=text):
        kernels.kernel("add").launch(stream, CONFIG, ByInterface(fail), 1)
    with pytest.raises(ArgumentTypeError, match=f"^a ByInterface {text}"):
        stream.import_array(ByInterface(fail))
    for launch_or_import in (
        lambda: kernels.kernel("add").launch(stream, CONFIG, Wrong(), 1),
        lambda: stream.import_array(Wrong()),
    ):
        with pytest.raises(ArgumentError):
            launch_or_import()


@pytest.mark.parametrize(
    "given",
    [
        {"export": fail},
        {"export": lambda: None},
        {"export": object},
        {"where": fail},
        {"where": lambda: None},
        {"where": lambda: ("x", 0)},
        {"change": lambda tensor: setattr(tensor, "byte_offset", 2**64 - 1)},
    ],
    ids=[
        "export raises",
        "export of None",
        "export of an object",
        "device raises",
        "device of None",
        "device of another type",
        "offset past 64 bits",
    ],
)
def test_wrong_dlpack_methods_are_an_argument_error(
    kernels: cudadrv.Module, stream: cudadrv.Stream, given: Any
) -> None:
    wrong = ByDlpack(stream.zeros(4, "i4"), **given)
    for _ in range(3):
        with pytest.raises(ArgumentError, match="of type ByDlpack and has memory that cannot be"):
            kernels.kernel("add").launch(stream, CONFIG, wrong, 1)
    with pytest.raises(ArgumentTypeError, match="^a ByDlpack has memory that cannot be read"):
        stream.import_array(wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: setattr(tensor, "ndim", -1),
        lambda tensor: setattr(tensor, "ndim", 2**31 - 1),
        lambda tensor: setattr(tensor, "shape", None),
        lambda tensor: setattr(tensor, "bits", 7),
        lambda tensor: tensor.shape.__setitem__(0, -1),
        lambda tensor: tensor.shape.__setitem__(0, 2**62),
    ],
    ids=["negative axes", "all axes", "no shape", "bits", "negative shape", "large shape"],
)
def test_a_wrong_tensor_of_dlpack_is_not_imported(
    stream: cudadrv.Stream, change: Callable[[DLTensor], object]
) -> None:
    with pytest.raises(CudadrvError):
        stream.import_array(ByDlpack(stream.zeros(4, "i4"), change=change))


def test_a_number_that_raises_or_has_5_000_digits_is_an_argument_error(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    kernel, array = kernels.kernel("add"), stream.zeros(4, "i4")
    for number in (Wrong(), HUGE, -HUGE):
        with pytest.raises(ArgumentError, match="^argument 1 of kernel 'add' is "):
            kernel.launch(stream, CONFIG, array, number)
    with pytest.raises(ArgumentError, match="^argument 0 of kernel 'add' is "):
        kernel.launch(stream, CONFIG, HUGE, 1)
    with pytest.raises(ArgumentError, match="pointer is .*int.* digits"):
        cudadrv.DeviceBuffer.borrowed(stream, HUGE, 4, None)


def test_a_stream_protocol_that_raises_is_an_argument_error(context: cudadrv.Context) -> None:
    class Method:
        def __cuda_stream__(self) -> object:
            raise RuntimeError("no stream")

    for wrong in (Wrong(), Method()):
        with pytest.raises(ArgumentTypeError, match="the __cuda_stream__ of a .* cannot be read"):
            context.external_stream(wrong)  # type: ignore[arg-type]  # wrong indeed
