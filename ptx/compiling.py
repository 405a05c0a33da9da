"""Compiling at run time, behind the image cache or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptx import border
from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache, warned_of
from ptx.observers import observed
from ptx.options import CompileOptions
from ptx.request import CompileRequest

_DEFAULT = CompileOptions()


@observed("compile")
def compile(
    source: str,
    options: CompileOptions = _DEFAULT,
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
    NVRTC's warnings become a `CompileWarning`, once for each source and process.

    Raises:
        CompileError: with the log, pointing at the first error's line.
        UnsupportedTargetError: the installed NVRTC does not know the architecture.
        NvrtcNotFoundError: NVRTC is not installed; the text has the command that brings it.
    """
    request = CompileRequest.of(source, options, name, name_expressions, headers)
    if cache is False:
        from ptx.nvrtc_build import build  # saves a hit 12 ms, as in the cache

        return warned_of(build(request), request)
    used = default_cache() if cache is True else border.instance("cache", cache, ImageCache)
    return warned_of(used.get_or_build(request), request)
