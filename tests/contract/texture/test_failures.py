"""What becomes of arrays, textures and surfaces when the driver fails."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
from cudadrv import CudaError, emulator
from cudadrv.errors import InvalidValueError, OutOfMemoryError, UnknownError
from cudadrv.texture import CudaArray, MipmappedArray, Surface, Texture


def test_a_failed_call_reports_what_was_being_done() -> None:
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        array = CudaArray(context, (4, 8), np.float32, surface=True)
        cases: list[tuple[str, Callable[[], object], str]] = [
            ("cuArray3DCreate", lambda: CudaArray(context, 9, "u1"), r"shape \(9,\) of uint8"),
            ("cuMipmappedArrayCreate", lambda: MipmappedArray(context, 9, "u1"), r"shape \(9,\)"),
            ("cuMipmappedArrayGetLevel", lambda: MipmappedArray(context, 9, "u1"), "level 0 of <M"),
            ("cuTexObjectCreate", lambda: Texture(array), r"creating a texture over <CudaArray \("),
            ("cuSurfObjectCreate", lambda: Surface(array), "creating a surface over <CudaArray"),
            ("cuMemcpy3DAsync", lambda: array.copy_to(stream), "copying <CudaArray .* to a host"),
        ]
        for function, call, doing in cases:
            with machine.fail(function), pytest.raises(UnknownError, match=doing) as caught:
                call()
            assert caught.value.call == function
        with machine.fail("cuArray3DCreate", with_=1), pytest.raises(InvalidValueError):
            CudaArray(context, 9, "u1")


def test_a_full_device_reports_what_is_free() -> None:
    with emulator.session() as machine, machine.limit_memory(1 << 20):
        context = cudadrv.cuda_context_for(0)
        for make in (CudaArray, MipmappedArray):
            with pytest.raises(OutOfMemoryError, match="device 0, which has .* bytes free of"):
                make(context, (1024, 1024), np.float32)


@pytest.mark.parametrize(
    ("function", "failing"),
    [
        ("cuArrayDestroy", "array"),
        ("cuMipmappedArrayDestroy", "mipmapped"),
        ("cuTexObjectDestroy", "texture"),
        ("cuSurfObjectDestroy", "surface"),
        ("cuCtxPushCurrent", "array"),
    ],
)
def test_an_error_of_releasing_is_raised_by_close(function: str, failing: str) -> None:
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        array = CudaArray(context, 9, np.float32, surface=True)
        made = {"array": array, "mipmapped": MipmappedArray(context, 9, np.float32)}
        views = {"texture": Texture(array), "surface": Surface(array)}
        for view in views.values():
            if views.get(failing) is not view:
                view.close()
        closing = {**made, **views}[failing]
        with machine.fail(function), pytest.raises(UnknownError, match="destroying|binding"):
            closing.close()
        assert closing.closed
        closing.close()


@pytest.mark.parametrize("function", ["cuArrayDestroy", "cuTexObjectDestroy", "cuMemFreeAsync"])
def test_an_error_of_a_release_reaches_the_hook_where_nothing_closes(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(str(args.exc_value)))
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        array = CudaArray(context, 9, np.float32)
        texture, memory = Texture(array), context.default_stream.alloc(100)
        with machine.fail(function):
            del texture, array, memory
            gc.collect()
    (text,) = told
    assert function in text
    assert "device 0" in text


def test_objects_close_after_the_end_of_their_session() -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        array = CudaArray(context, 9, np.float32, surface=True)
        texture, surface = Texture(array), Surface(array)
    texture.close()
    surface.close()
    array.close()


def test_a_rejected_texture_leaves_nothing() -> None:
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        array = CudaArray(context, 9, np.float32)
        with machine.fail("cuTexObjectCreate"), pytest.raises(CudaError):
            Texture(array)
        assert machine.live_objects()["texture or surface"] == 0
        Texture(array)
        assert machine.live_objects()["texture or surface"] == 0
        kept = Texture(array)
        assert machine.live_objects()["texture or surface"] == 1
        array.close()
        assert kept.closed
        assert machine.live_objects()["texture or surface"] == 0


def test_a_mipmapped_array_closes_whatever_a_texture_of_a_level_raises() -> None:
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        mipmapped = MipmappedArray(context, 9, np.float32)
        level = mipmapped.level(1)
        texture = Texture(level)
        with machine.fail("cuTexObjectDestroy"), pytest.raises(UnknownError, match="destroying"):
            mipmapped.close()
        assert mipmapped.closed
        assert level.closed
        assert texture.closed
