"""CUDA sources of this folder, compiled as users may compile them."""

from __future__ import annotations

import functools
import pathlib

import ptx
from tests.ptx.emulate.kernel_runner import KernelRunner

TARGETS = ("compute_75", "compute_90", "compute_100", "compute_120")


@functools.lru_cache(maxsize=32)
def text_of(name: str, target: str, *, debug: bool = False, lineinfo: bool = False) -> str:
    """The PTX of a source for a target."""
    source = pathlib.Path(__file__).with_name(name).read_text()
    options = ptx.CompileOptions(target=ptx.Target.ptx(target), debug=debug, lineinfo=lineinfo)
    text = ptx.compile(source, options, name=name, cache=False).ptx
    assert text is not None
    return text


def runner_of(
    name: str, target: str, *, debug: bool = False, lineinfo: bool = False
) -> KernelRunner:
    """A fresh device with a source's kernels."""
    return KernelRunner(text_of(name, target, debug=debug, lineinfo=lineinfo), 1 << 26)
