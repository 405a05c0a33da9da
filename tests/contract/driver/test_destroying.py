"""Each function that destroys or frees fails once: `close` raises it, or the hook is told."""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv import Stream, emulator
from cudadrv.driver.driver_api import FUNCTIONS
from cudadrv.driver.functions import flagged
from cudadrv.errors import CudaError
from cudadrv.texture import CudaArray, MipmappedArray, Surface, Texture
from tests.bump_kernel import PTX
from tests.rows import all_rows


def a_graph(stream: Stream) -> cudadrv.Graph:
    with stream.capture() as graph:
        pass
    return graph


def an_array(stream: Stream) -> CudaArray[Any]:
    return CudaArray(stream.context, 9, np.float32, surface=True)


MADE: Final[dict[str, Callable[[Stream], object]]] = {
    "cuStreamDestroy": lambda stream: stream.context.new_stream(),
    "cuEventDestroy": lambda stream: stream.record(),
    "cuMemFreeAsync": lambda stream: stream.alloc(64),
    "cuMemFree": lambda stream: cudadrv.managed_empty(64, "u1"),
    "cuMemFreeHost": lambda stream: cudadrv.pinned_empty(64, "u1"),
    "cuModuleUnload": lambda stream: stream.context.load_module(PTX),
    "cuGraphDestroy": a_graph,
    "cuGraphExecDestroy": lambda stream: a_graph(stream).instantiate(),
    "cuArrayDestroy": an_array,
    "cuMipmappedArrayDestroy": lambda stream: MipmappedArray(stream.context, 9, np.float32),
    "cuTexObjectDestroy": lambda stream: Texture(an_array(stream)),
    "cuSurfObjectDestroy": lambda stream: Surface(an_array(stream)),
    "cuCtxDestroy": lambda stream: cudadrv.Context.create(0),
    "cuGreenCtxDestroy": lambda stream: cudadrv.Context.create_green(
        stream.context.sm_resource.split(8)[0][0]
    ),
    "cuMemAddressFree": lambda stream: cudadrv.memory.GrowingBuffer(stream, 2 << 20),
}
# Of these the last array gives the memory back, and no `close`.
WITHOUT_CLOSE: Final = ("cuMemFree", "cuMemFreeHost")
# One gives up a reference where retaining the objects that a graph uses has failed, and that is
# raised; another memory that is mapped, right after that; the third a link (`test_failing_links`).
GIVE_UP_A_REFERENCE: Final = ("cuUserObjectRelease", "cuMemRelease", "cuLinkDestroy")
# Another process has to have made what it closes: tests/contract/memory/test_opened_memory.py.
OF_OTHER_PROCESSES: Final = ("cuIpcCloseMemHandle", "cuMemPoolDestroy")
# Invalid value, out of memory, illegal address, not supported, unknown.
CODES: Final = (1, 2, 700, 801, 999)


def test_every_function_that_destroys_is_among_them() -> None:
    ends = ("CloseMemHandle", "Destroy", "Free", "FreeAsync", "FreeHost", "Unload", "Release")
    found = {name for name in FUNCTIONS if name.endswith(ends)}
    assert found == {*MADE, *GIVE_UP_A_REFERENCE, *OF_OTHER_PROCESSES}


def test_what_handles_call_to_destroy_may_come_in_the_middle_of_another_call() -> None:
    called = {
        node.attr
        for path in Path(cudadrv.__file__).parent.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and function.name == "_destroy"
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and re.match("cu[A-Z]", node.attr)
    }
    assert len(called) > 15
    assert called - {"cuStreamSynchronize"} <= set(flagged("frees"))


@all_rows
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("function", [name for name in MADE if name not in WITHOUT_CLOSE])
def test_close_raises_what_the_driver_reported(function: str, code: int) -> None:
    with emulator.session() as machine:
        made: Any = MADE[function](cudadrv.cuda_context_for(0).new_stream())
        gc.collect()
        with machine.fail(function, with_=code), pytest.raises(CudaError) as caught:
            made.close()
        assert (caught.value.call, caught.value.code) == (function, code)
        assert "device 0" in str(caught.value)
        made.close()


@all_rows
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("function", MADE)
def test_a_finalizer_reports_the_error_of_the_driver_to_the_hook(
    function: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))
    with emulator.session() as machine:
        made = [MADE[function](cudadrv.cuda_context_for(0).new_stream())]
        gc.collect()
        with machine.fail(function, with_=code):
            made.clear()
    (error,) = told
    assert isinstance(error, CudaError)
    assert (error.call, error.code) == (function, code)
