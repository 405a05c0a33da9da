"""What the tests of the plugin share: small tests of a user's, and pytest run on them."""

from __future__ import annotations

import importlib
import os
import pkgutil

import pytest

import cudadrv
import cudadrv.emulator
import ptx.emulate
from benchmarks.driver import NoCompilerError, build_null_driver
from cudadrv.testing.choices import VARIABLES
from tests.documents.reference import named, names_of_cudadrv

from .runs import KERNELS, Runs

# A run in this process forgets the modules that it imported: what is loaded once a process, such as
# NumPy, and what has classes, is there before it.
for _name in names_of_cudadrv():
    named(_name)
for _name in ("plan", "cuda_test"):
    importlib.import_module(f"cudadrv.testing.{_name}")
for _package in (cudadrv.emulator, ptx.emulate):
    for _module in pkgutil.walk_packages(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_module.name)


@pytest.fixture
def runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """A folder with the user's tests, and nothing chosen by the environment."""
    cudadrv.list_devices()  # while it says which driver this process has
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(kernels=KERNELS)
    return Runs(pytester)


@pytest.fixture
def with_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that shows no GPU to new processes."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def with_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with eight devices, for new processes: a driver that answers and does nothing."""
    try:
        folder = str(build_null_driver())
    except NoCompilerError:
        pytest.skip("needs a C compiler")
    former = os.environ.get("LD_LIBRARY_PATH")
    path = f"{folder}{os.pathsep}{former}" if former else folder
    monkeypatch.setenv("LD_LIBRARY_PATH", path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
