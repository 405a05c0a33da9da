"""PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudadrv

from ..setting import Setting
from ..timing import Case

NAME = "PyTorch"


# The library need not be installed where types are checked.
def _torch() -> Any:
    return importlib.import_module("torch")


def launch(setting: Setting) -> list[Case]:
    """Its smallest operations: in place, on one element."""
    x = _torch().zeros(1, device="cuda")
    return [
        Case(f"{NAME} add_", "x.add_(1.0)", {"x": x}),
        Case(f"{NAME} zero_", "x.zero_()", {"x": x}),
    ]


def given_to_cudadrv(setting: Setting, stream: cudadrv.Stream) -> list[Case]:
    """Its tensors, given to a launcher of cudadrv."""
    a, b, c = (_torch().zeros(256, device="cuda") for _ in "abc")
    return [setting.given(stream, f"{NAME} tensors", (a, b, c))]


def allocation(setting: Setting) -> list[Case]:
    """A hit of the caching allocator, bare and as a tensor."""
    torch = _torch()
    cuda = torch.cuda
    names = {"allocate": cuda.caching_allocator_alloc, "delete": cuda.caching_allocator_delete}
    tensor = {"empty": torch.empty, "device": torch.device("cuda", 0)}
    return [
        Case(f"{NAME} caching allocator", "delete(allocate(1024))", names),
        Case(f"{NAME} empty", "empty(256, device=device)", tensor),
    ]


def _tensors(host: NDArray[np.uint8]) -> tuple[Any, Any]:
    tensor = _torch().from_numpy(host)
    return tensor.cuda(), tensor


def upload(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``Tensor.copy_`` to the device."""
    device, tensor = _tensors(host)
    names = {"d": device, "t": tensor, "sync": setting.settle}
    return [Case(f"{NAME} copy_", "d.copy_(t); sync()", names)]


def download(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``Tensor.copy_`` from the device."""
    device, tensor = _tensors(host)
    return [Case(f"{NAME} copy_", "t.copy_(d)", {"d": device, "t": tensor})]


def download_new(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``Tensor.cpu``."""
    return [Case(f"{NAME} cpu", "d.cpu()", {"d": _tensors(host)[0]})]


def copies(
    setting: Setting,
    pairs: Sequence[tuple[cudadrv.DeviceArray[Any], cudadrv.DeviceArray[Any]]],
) -> list[Case]:
    """Tensors on the same memory, copied one by one and in one call."""
    torch = _torch()
    targets, sources = (
        [torch.from_dlpack(array) for array in side] for side in zip(*pairs, strict=True)
    )
    names = {
        "pairs": list(zip(targets, sources, strict=True)),
        "copy_all": torch._foreach_copy_,
        "targets": targets,
        "sources": sources,
    }
    return [
        Case(f"{NAME} copy_", "for to, of in pairs: to.copy_(of)", names),
        Case(f"{NAME} _foreach_copy_", "copy_all(targets, sources)", names),
    ]


def exported(setting: Setting) -> Any:
    """A tensor of 1 KiB."""
    return _torch().zeros(256, device="cuda")


def viewed(setting: Setting, what: object) -> list[Case]:
    """A tensor of an array of another library, by DLPack."""
    return [Case(f"{NAME} from_dlpack", "f(x)", {"f": _torch().from_dlpack, "x": what})]
