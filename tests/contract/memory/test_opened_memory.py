"""Memory of another process, as far as its box goes."""

from __future__ import annotations

import sys

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver._api import CUdeviceptr
from cudadrv.errors import CudaError
from cudadrv.ipc import OpenedMemory


def test_a_rejection_to_close_it_reaches_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: told.append(event.exc_value))
    with emulator.session():
        box = OpenedMemory(cudadrv.cuda_context_for(0).default_stream._handle, b"")
        box.destroyer.raw = CUdeviceptr(4096)
        del box
    (error,) = told
    assert isinstance(error, CudaError)
    assert error.call == "cuIpcCloseMemHandle"
