"""Linking at run time, with or without the image cache."""

from __future__ import annotations

from collections.abc import Sequence

from ptx.argument_checks import checks
from ptx.compiling import observed
from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache
from ptx.linker import Linkable, LinkInput, LinkKind, LinkOptions, LinkRequest, OtherLinker
from ptx.target import Target

__all__ = ["LinkInput", "LinkKind", "LinkOptions", "Linkable", "OtherLinker", "link"]

_DEFAULT = LinkOptions()


@observed("link")
def link(
    images: Sequence[Linkable],
    target: Target,
    options: LinkOptions = _DEFAULT,
    *,
    cache: ImageCache | bool = True,
    linker: OtherLinker | None = None,
) -> Image:
    """Link to a cubin, or PTX and LTO-IR to PTX.

    LTO-IR is optimised across the inputs. Machine code cannot become PTX. PTX becomes PTX without
    nvJitLink. The result has the kernels' signatures of PTX and LTO-IR inputs, but not those of
    machine code from elsewhere.

    Args:
        images: images, PTX text, bytes and files (`Path`), in any mixture: PTX, LTO-IR, cubins,
            fatbins, object files and archives.
        target: the architecture and the kind of the result.
        options: the flags.
        cache: a cache; True is the default one of the process, False is none.
        linker: replaces nvJitLink.

    Raises:
        LinkError: an input is rejected or a symbol is missing; it carries nvJitLink's log.
        NvJitLinkNotFoundError: nvJitLink is not installed; the text has the remedy.
        ImageFormatError: an input is nothing that is linked.
        OSError: a file cannot be read.
    """
    if cache is False:
        return LinkRequest.of(images, target, options, linker).link()
    used = default_cache() if cache is True else checks.instance_of("cache", cache, ImageCache)
    return used.get_or_link(images, target, options, linker=linker)
