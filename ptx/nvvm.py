"""Compiling NVVM IR at run time, behind the image cache or without."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from ptx import border
from ptx.base_errors import PtxArgumentValueError
from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache
from ptx.nvvm_build import NvvmModule, build_nvvm, libdevice_for
from ptx.nvvm_options import NvvmOptions
from ptx.observers import observed
from ptx.options import DEFAULT_TARGET

__all__ = ["NvvmIr", "NvvmOptions", "compile_nvvm"]

NvvmIr: TypeAlias = str | bytes | Path
"""NVVM IR: text, bitcode, or a file of either."""

_DEFAULT = NvvmOptions()


@observed("compile")
def compile_nvvm(
    ir: NvvmIr | Sequence[NvvmIr],
    options: NvvmOptions = _DEFAULT,
    *,
    name: str = "kernel.ll",
    cache: ImageCache | bool = True,
) -> Image:
    """Compile NVVM IR to PTX by libNVVM; several modules become one.

    The IR's own functions of mathematics (``@__nv_sinf``) come from CUDA's libdevice. A target left
    open is `DEFAULT_TARGET`. At some wrong IR libNVVM ends the process; of text, a data layout or
    an annotation that is none is told before.

    Args:
        ir: text as str, bitcode as bytes, files as `Path`, one or several.
        options: of the compilation.
        name: what messages call IR that is no file.
        cache: True is the default cache, False none.

    Raises:
        NvvmError: libNVVM refuses the IR or an option; it carries the log.
        NvvmNotFoundError: libNVVM is not installed; the text has the remedy.
        OSError: a file cannot be read.
    """
    several = [ir] if isinstance(ir, (str, bytes, Path)) else border.several("ir", ir, object)
    border.text("compile_nvvm: name", name)
    modules = [_module(each, name) for each in several]
    if not modules:
        raise PtxArgumentValueError("nothing to compile: give at least one module of NVVM IR")
    border.instance("compile_nvvm: options", options, NvvmOptions)
    options = options.for_target(DEFAULT_TARGET)
    libdevice = libdevice_for(modules)
    if cache is False:
        return build_nvvm(modules, libdevice, options)
    used = default_cache() if cache is True else border.instance("cache", cache, ImageCache)
    return used.get_or_make(
        {
            "NVVM IR": repr([(each, sha256(data).hexdigest()) for each, data in modules]),
            "libdevice": sha256(libdevice).hexdigest(),
            "target": str(options.target),
            "options": repr(options.flags()),
            "libNVVM": str(used.build_of("nvvm")),
        },
        lambda: build_nvvm(modules, libdevice, options),
    )


def _module(ir: object, name: str) -> NvvmModule:
    if isinstance(ir, Path):
        border.path_text("compile_nvvm: a file", ir)
        return ir.name, ir.read_bytes()
    if isinstance(ir, str):
        return name, border.text("compile_nvvm: ir", ir).encode()
    return name, border.instance("compile_nvvm: ir", ir, bytes)
