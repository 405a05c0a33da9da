"""Compiling and linking at run time, behind the image cache or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache
from ptx.observers import observed
from ptx.options import CompileOptions, LinkOptions
from ptx.request import CompileRequest
from ptx.target import Target

_COMPILE_DEFAULT = CompileOptions()
_LINK_DEFAULT = LinkOptions()


@observed("compile")
def compile(
    source: str,
    options: CompileOptions = _COMPILE_DEFAULT,
    *,
    name: str = "kernel.cu",
    name_expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    cache: ImageCache | bool = True,
) -> Image:
    """Compile CUDA C++ to an image.

    `name_expressions` are template instances such as "scale<float>", whose names in the image
    are in `lowered_names`. `headers` are texts by include name, used in place of files. `cache`
    True is the process's default cache, False compiles anew; `Image.origin` says what became of it.

    Raises:
        CompileError: with the log, pointing at the first error's line.
        UnsupportedTargetError: the installed NVRTC does not know the architecture.
        NvrtcNotFoundError: NVRTC is not installed; the text has the command that brings it.
    """
    request = CompileRequest.of(source, options, name, name_expressions, headers)
    if cache is False:
        from ptx.nvrtc_build import build  # as in the cache: a hit needs no compiler

        return build(request)
    used = default_cache() if cache is True else cache
    return used.get_or_build(request)


@observed("link")
def link(
    images: Sequence[Image],
    target: Target,
    options: LinkOptions = _LINK_DEFAULT,
    *,
    cache: ImageCache | bool = True,
) -> Image:
    """Link images to a cubin, or LTO-IR images to PTX.

    Inputs may be LTO-IR, PTX, cubins and fatbins in any mixture; LTO-IR is optimised across them.
    The result has the kernels' signatures as far as PTX tells them: for LTO-IR always, for a cubin
    or fatbin from elsewhere never. `cache` True is the default cache, False none.

    Raises:
        LinkError: an input is refused or a symbol is missing; it carries nvJitLink's log.
        NvJitLinkNotFoundError: nvJitLink is not installed; the text has the remedy.
    """
    if cache is False:
        from ptx.linker import link_images  # likewise

        return link_images(images, target, options)
    used = default_cache() if cache is True else cache
    return used.get_or_link(images, target, options)
