"""Programs compiled by an NVRTC of a newer minor version than the emulated driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import Context, LaunchConfig, Module, emulator
from cudadrv.driver.driver_selection import current
from cudadrv.runtime import KernelLibrary, PtxModuleCache
from ptx.cubin_mark import CUBIN_MARK
from tests.emulator.fatbins import fatbin

NVRTC = ptx.nvrtc_version()
OLDER, OTHER_MAJOR = (NVRTC[0], 0), (NVRTC[0] - 1, 9)
SOURCE = 'extern "C" __global__ void k(int* x) { *x += 3; }'
CALLER = 'extern "C" __device__ int f(int); extern "C" __global__ void k(int* x) { *x = f(*x); }'
CALLED = 'extern "C" __device__ int f(int x) { return x + 3; }'

pytestmark = pytest.mark.skipif(OLDER == NVRTC, reason="needs an NVRTC with a minor version")


@pytest.fixture
def context() -> Iterator[Context]:
    with emulator.session(driver_version=OLDER, compute_capability=(9, 0)):
        yield cudadrv.cuda_context_for(0)


def compiled(source: str, target: ptx.Target, *extra: str) -> ptx.Image:
    return ptx.compile(source, ptx.CompileOptions(target=target, extra=extra))


def parts(context: Context) -> list[ptx.Image]:
    return [compiled(each, context.target, "-rdc=true") for each in (CALLER, CALLED)]


def of_lto(context: Context) -> Module:
    target = context.target.as_kind(ptx.ImageKind.LTOIR)
    return context.link([compiled(each, target) for each in (CALLER, CALLED)])


def of_fatbin(context: Context) -> Module:
    text = compiled(SOURCE, ptx.Target.ptx("compute_80")).data
    return context.load_module(fatbin((1, 80, text), (2, 90, b"\x7fELF")))


def of_nvrtc_text(context: Context) -> Module:
    return context.link([compiled(SOURCE, ptx.Target.ptx("compute_80"))])


WAYS: dict[str, Callable[[Context], Module]] = {
    "compile": lambda context: context.compile(SOURCE),
    "compile_kernel": lambda context: context.compile_kernel(SOURCE).module,
    "load_module": lambda context: context.load_module(compiled(SOURCE, context.target)),
    "module cache": lambda context: PtxModuleCache().get_or_compile(context, "k", SOURCE),
    "library": lambda context: KernelLibrary({"k.cu": SOURCE}).kernel(context, "k").module,
    "link": lambda context: context.link(parts(context)),
    "link of PTX": of_nvrtc_text,
    "link of LTO-IR": of_lto,
    "fatbin": of_fatbin,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_a_module_works_with_an_older_driver(context: Context, way: str) -> None:
    module = WAYS[way](context)
    array = context.default_stream.to_device(np.array([4], np.int32))
    module.kernel("k")(context.default_stream, LaunchConfig(1, 1), array)
    assert context.default_stream.to_host(array).tolist() == [7]


def test_a_context_of_an_older_driver_has_the_target_that_a_gpu_has(context: Context) -> None:
    assert context.target == ptx.choose_target((9, 0), OLDER) == ptx.Target.cubin("sm_90")


@pytest.mark.parametrize("version", [OTHER_MAJOR, NVRTC, (NVRTC[0], 99), (99, 0)])
def test_a_context_of_other_drivers_compiles_to_ptx(version: tuple[int, int]) -> None:
    with emulator.session(driver_version=version, compute_capability=(9, 0)):
        assert cudadrv.cuda_context_for(0).target == ptx.Target.ptx("compute_90")


def test_the_default_driver_compiles_to_ptx_with_a_newer_nvrtc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with emulator.session(compute_capability=(9, 0)):
        context = cudadrv.cuda_context_for(0)
        monkeypatch.setattr("cudadrv.stream.context_modules.driver_version", lambda: (NVRTC[0], 0))
        assert context.target == ptx.Target.ptx("compute_90")


NEWER = ".version {}.9\n.target sm_80\n.address_size 64\n.visible .entry k() {{ ret; }}\n"


def test_ptx_that_is_newer_than_the_driver_is_rejected_with_the_remedy(context: Context) -> None:
    text = NEWER.format(NVRTC[0] - 4)
    data = text.encode()
    given: list[str | bytes | ptx.Image] = [text, data, ptx.Image.from_ptx(text)]
    other_machine = fatbin((1, 80, data), (2, 100, b"\x7fELF"))
    for image in (*given, fatbin((1, 80, data)), other_machine):
        with pytest.raises(cudadrv.errors.UnsupportedPTXVersionError) as caught:
            context.load_module(image)
        assert "compile to a cubin for the device (context.target)" in str(caught.value)
    for image in given:  # as driver 580
        with pytest.raises(ptx.LinkError, match=r"cuLinkAddData .*UNSUPPORTED_PTX_VERSION"):
            context.link([image], linker="driver")


def test_the_linker_of_an_older_driver_rejects_a_newer_cubin(context: Context) -> None:
    cubin = compiled(SOURCE, context.target)
    newer = fatbin((1, 80, NEWER.format(NVRTC[0] - 4).encode()), (2, 90, b"\x7fELF"))
    for image in (cubin, newer):  # as driver 580
        with pytest.raises(ptx.LinkError, match=r"cuLinkAddData .*NO_BINARY_FOR_GPU"):
            context.link([image], linker="driver")


def test_a_driver_of_another_major_version_rejects_both() -> None:
    with emulator.session(driver_version=OTHER_MAJOR, compute_capability=(9, 0)):
        context = cudadrv.cuda_context_for(0)
        cubin = compiled(SOURCE, ptx.Target.cubin("sm_90"))
        loads: list[Callable[[], Module]] = [
            lambda: context.compile(SOURCE),
            lambda: context.load_module(cubin),
            lambda: context.link([cubin]),
        ]
        for load in loads:
            with pytest.raises(cudadrv.errors.UnsupportedPTXVersionError, match="update the"):
                load()


def test_a_cubin_of_another_architecture_is_rejected(context: Context) -> None:
    image = compiled(SOURCE, ptx.Target.cubin("sm_80"))
    with pytest.raises(cudadrv.errors.NoBinaryForGPUError):
        context.load_module(image)
    with pytest.raises(ptx.LinkError, match="is a cubin"):
        context.link([image])


def test_the_cache_has_machine_code_without_the_mark(context: Context, tmp_path: Path) -> None:
    options = ptx.CompileOptions(target=context.target)
    cached = [
        ptx.ImageCache(tmp_path).get_or_compile(SOURCE, options).from_origin(origin)
        for origin in (ptx.ImageOrigin.COMPILED, ptx.ImageOrigin.DISK)
    ]
    assert cached[0] == cached[1]
    assert cached[1].data.startswith(b"\x7fELF")
    assert all(CUBIN_MARK.encode() not in each.read_bytes() for each in tmp_path.rglob("*.*"))
    assert context.load_module(cached[1]).kernel_names == ("k",)


def test_a_driver_that_is_not_emulated_receives_the_cubin(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current(), "is_emulated", False)
    received: list[bytes] = []
    load = current().api.cuModuleLoadData

    def noted(image: bytes) -> object:
        received.append(image)
        return load(image)

    monkeypatch.setattr(current().api, "cuModuleLoadData", noted)
    image = compiled(SOURCE, context.target)
    acts: list[Callable[[], Module]] = [
        lambda: context.load_module(image),
        lambda: context.link([image]),
        lambda: context.link([compiled(SOURCE, ptx.Target.ptx("compute_80"))]),
    ]
    for act in acts:
        with pytest.raises(cudadrv.errors.NoBinaryForGPUError):
            act()
    assert received[0] == image.data
    assert all(each.startswith(b"\x7fELF") and CUBIN_MARK.encode() not in each for each in received)
    assert len(received) == 3
