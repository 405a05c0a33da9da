"""What only an emulator can show of module caches: sessions that come and go, and what is freed."""

from __future__ import annotations

import gc
import pickle
import weakref
from contextlib import AbstractContextManager, nullcontext

import pytest

import cudadrv
from cudadrv import PtxModuleCache, emulator
from cudadrv.errors import ArgumentValueError, DriverCallFailed
from cudadrv.runtime import KeyedPtxModuleCache
from ptx import compiling

SOURCE = 'extern "C" __global__ void k() {}'


def test_a_session_gets_modules_of_its_own_and_leaves_none() -> None:
    cache, keyed = PtxModuleCache(), KeyedPtxModuleCache()
    with emulator.session():
        outer = cache.get_or_compile(cudadrv.cuda_context_for(0), "unit", SOURCE)
        with emulator.session():
            assert cache.get() is None
            inner = cache.get_or_compile(cudadrv.cuda_context_for(0), "unit", SOURCE)
            assert cache.get() is inner is not outer
            assert keyed.get(1) is None
        assert cache.get() is outer
        assert cache.get_or_compile(cudadrv.cuda_context_for(0), "unit", SOURCE) is outer
    assert cache.get() is None


@pytest.mark.parametrize("label", ["unit", "unit.cu", "scaler/kernels.cu", "lists.cuh"])
def test_messages_name_the_file_that_the_label_is(label: str) -> None:
    source = 'extern "C" __global__ void k() { return }'
    file = label if "." in label else f"{label}.cu"
    with emulator.session(), pytest.raises(DriverCallFailed, match=rf"(?m)^ *{file}\(1\): error"):
        PtxModuleCache().get_or_compile(cudadrv.cuda_context_for(0), label, source)


def test_a_cache_that_outlives_its_sessions_keeps_none_alive() -> None:
    cache = PtxModuleCache()
    seen: list[weakref.ref[cudadrv.Context]] = []
    for _ in range(3):
        with emulator.session():
            context = cudadrv.cuda_context_for(0)
            cache.get_or_compile(context, "unit", SOURCE)
            seen.append(weakref.ref(context))
            del context
    gc.collect()
    gc.collect()
    assert [ref() is None for ref in seen] == [True, True, True]


def test_one_source_is_made_once_and_compiled_for_each_architecture() -> None:
    made: list[int] = []

    def source() -> str:
        made.append(1)
        return SOURCE

    devices = [
        emulator.EmulatedDevice(compute_capability=version)
        for version in ((8, 0), (9, 0), (8, 0), (9, 0))
    ]
    with emulator.session(devices):
        cache = PtxModuleCache()
        modules = [
            cache.get_or_compile(cudadrv.cuda_context_for(ordinal), "unit", source)
            for ordinal in range(4)
        ]
        assert [module.context.ordinal for module in modules] == [0, 1, 2, 3]
        assert len(made) == 1
        images = [module.image for module in modules if module.image]
        assert [image.target.arch for image in images] == ["compute_80", "compute_90"] * 2


def test_a_pickled_cache_has_its_images_and_no_modules() -> None:
    cache, source = PtxModuleCache(name_expressions=("k",)), "__global__ void k() {}"
    keyed = KeyedPtxModuleCache()
    made: list[int] = []

    def source_of(key: int) -> str:
        made.append(key)
        return SOURCE

    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        cache.get_or_compile(context, "unit", source)
        keyed.get_or_compile(context, 7, "unit", source_of)
        one, several = pickle.loads(pickle.dumps((cache, keyed)))
        assert one.get() is None
        assert several.get(7) is None

    compiled: list[str] = []

    def note(verb: str) -> AbstractContextManager[None]:
        compiled.append(verb)
        return nullcontext()

    with emulator.session(), compiling.observe(note):
        context = cudadrv.cuda_context_for(0)
        assert one.get_or_compile(context, "unit", source).kernel("k").name
        assert several.get_or_compile(context, 7, "unit", source_of).kernel("k").name == "k"
        assert (compiled, made) == ([], [7])
        with pytest.raises(ArgumentValueError, match="'unit'"):
            one.get_or_compile(context, "other", SOURCE)
        with pytest.raises(ArgumentValueError, match=r"(?s)'unit'.*\(key=7\)"):
            several.get_or_compile(context, 7, "other", SOURCE + "// other")
