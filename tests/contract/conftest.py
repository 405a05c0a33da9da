from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import cudadrv
import ptx
from cudadrv.cli import kernels
from cudadrv.driver._api import CUcontext
from cudadrv.driver.in_use import current


@pytest.fixture(autouse=True)
def current_context() -> None:
    """Let each test begin with the context current that CUDADRV_TEST_CURRENT names, if it does.

    It is `none` or `second`: no answer may hang on what other code has left current.
    """
    asked = os.environ.get("CUDADRV_TEST_CURRENT")
    if asked:
        handle = {"none": CUcontext(0), "second": cudadrv.cuda_context_for(1).handle}[asked]
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
    return ptx.compile(kernels.source(), options, name_expressions=kernels.NAME_EXPRESSIONS)


@pytest.fixture(scope="session")
def module(context: cudadrv.Context, image: ptx.Image) -> cudadrv.Module:
    return context.load_module(image)


@pytest.fixture
def second_context() -> cudadrv.Context:
    """The second device's context."""
    if len(cudadrv.list_devices()) < 2:
        pytest.skip("needs a second device")
    return cudadrv.cuda_context_for(1)


def compile_module(context: cudadrv.Context, source: str, *name_expressions: str) -> cudadrv.Module:
    """A source compiled for a context's device and loaded there."""
    options = ptx.CompileOptions(target=context.target)
    return context.load_module(ptx.compile(source, options, name_expressions=name_expressions))
