from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest

import cudadrv
import ptx
from cudadrv.cli import selftest as of_selftest
from cudadrv.driver._api import CUcontext, driver
from cudadrv.driver.driver_selection import current
from cudadrv.emulator.modules import newest_ptx

from .peer import Peer


def newest_of_both() -> tuple[int, int]:
    """Return the version of CUDA that the driver and cuda-bindings both have."""
    bindings = driver.CUDA_VERSION
    return min(cudadrv.driver_version(), (bindings // 1000, bindings % 1000 // 10))


def ptx_for_driver(context: cudadrv.Context, source: str, suffix: str = "") -> str:
    """Compile to PTX of a version that the driver takes: NVRTC may be newer than the driver.

    Args:
        suffix: of the target's name, such as "a" for features of one architecture.
    """
    target = ptx.Target.parse(f"compute_{context.target.number}{suffix}")
    text = ptx.compile(source, ptx.CompileOptions(target=target)).ptx
    assert text is not None
    version = re.search(r"(?m)^\.version (\d+)\.(\d+)$", text)
    assert version is not None
    newest = min((int(version[1]), int(version[2])), newest_ptx(cudadrv.driver_version()))
    return text.replace(version[0], f".version {newest[0]}.{newest[1]}")


def all_functions() -> Any:
    """Every function of the driver, or of the emulator: the library's own table has those it uses.

    Types are those of whoever answers.
    """
    api = current().api
    return api if current().is_emulated else driver


@pytest.fixture(autouse=True)
def current_context(request: pytest.FixtureRequest) -> None:
    """Let a test begin with any context current: its own, none, or the second device's.

    No answer may hang on what other code has left current. Which it is a test's name says, or
    CUDADRV_TEST_CURRENT.
    """
    ordinals = {"own": 0, "none": None, "second": min(1, len(cudadrv.list_devices()) - 1)}
    by_name = list(ordinals)[crc32(request.node.nodeid.encode()) % 3]
    ordinal = ordinals[os.environ.get("CUDADRV_TEST_CURRENT", by_name)]
    handle = CUcontext(0) if ordinal is None else cudadrv.cuda_context_for(ordinal).handle
    assert current().api.cuCtxSetCurrent(handle) == (0,)


@pytest.fixture(scope="session")
def context() -> cudadrv.Context:
    return cudadrv.cuda_context_for(0)


@pytest.fixture
def stream(context: cudadrv.Context) -> Iterator[cudadrv.Stream]:
    with context.new_stream() as stream:
        yield stream
        stream.synchronize()


@pytest.fixture(scope="session")
def image(context: cudadrv.Context) -> ptx.Image:
    """The self-test's kernels, compiled for the device."""
    options = ptx.CompileOptions(target=context.target)
    return ptx.compile(of_selftest.source(), options, name_expressions=of_selftest.NAME_EXPRESSIONS)


@pytest.fixture(scope="session")
def module(context: cudadrv.Context, image: ptx.Image) -> cudadrv.Module:
    return context.load_module(image)


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest, context: cudadrv.Context) -> cudadrv.Module:
    """The kernels of the test file's `SOURCE`."""
    return compile_module(context, request.module.SOURCE)


@pytest.fixture
def second_context() -> cudadrv.Context:
    """The second device's context."""
    if len(cudadrv.list_devices()) < 2:
        pytest.skip("needs a second device")
    return cudadrv.cuda_context_for(1)


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    """Another process of the host."""
    peer = Peer()
    yield peer
    peer.end()


def compile_module(context: cudadrv.Context, source: str, *name_expressions: str) -> cudadrv.Module:
    """A source compiled for a context's device and loaded there."""
    options = ptx.CompileOptions(target=context.target)
    return context.load_module(ptx.compile(source, options, name_expressions=name_expressions))
