"""CUDA sources of this folder, compiled as users may compile them."""

from __future__ import annotations

import functools
import pathlib

import ptx
from ptx.emulate.requirements.check import unmet_requirements
from tests.emulator.engine.kernel_runner import KernelRunner

TARGETS = ("compute_75", "compute_90", "compute_100", "compute_120")


def compiled(
    source: str,
    target: str,
    name: str = "kernel.cu",
    *,
    debug: bool = False,
    lineinfo: bool = False,
    fast: bool = False,
) -> str:
    """The PTX of CUDA C++ for a target, of which nothing may be refused as what the target lacks.

    That is looked at here, as it is true of whatever the compiler makes.
    """
    options = ptx.CompileOptions(
        target=ptx.Target.ptx(target),
        debug=debug,
        lineinfo=lineinfo,
        use_fast_math=fast,
        extra=("-w",),  # sources are made of the same parts, of which some use a variable less
    )
    text = ptx.compile(source, options, name=name, cache=False).ptx
    assert text is not None
    # Of what is written as assembly in a source, compute_75 lacks one instruction.
    lacking = {"atom.cas.acquire.gpu.b128"} if target == "compute_75" else set()
    assert unmet_requirements(ptx.parse(text)).keys() <= lacking
    return text


@functools.lru_cache(maxsize=32)
def text_of(
    name: str, target: str, *, debug: bool = False, lineinfo: bool = False, fast: bool = False
) -> str:
    """The PTX of a source of this folder for a target."""
    source = pathlib.Path(__file__).with_name(name).read_text()
    return compiled(source, target, name, debug=debug, lineinfo=lineinfo, fast=fast)


def runner_of(
    name: str, target: str, *, debug: bool = False, lineinfo: bool = False
) -> KernelRunner:
    """A fresh device with a source's kernels."""
    return KernelRunner(text_of(name, target, debug=debug, lineinfo=lineinfo), 1 << 26)
