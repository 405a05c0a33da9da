"""Linking at run time, behind the image cache or without."""

from __future__ import annotations

from collections.abc import Sequence

from ptx import border
from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache
from ptx.link_options import LinkOptions
from ptx.linker import link_images
from ptx.observers import observed
from ptx.target import Target

__all__ = ["LinkOptions", "link"]

_DEFAULT = LinkOptions()


@observed("link")
def link(
    images: Sequence[Image],
    target: Target,
    options: LinkOptions = _DEFAULT,
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
    images = border.several("link: images", images, Image)
    border.instance("link: target", target, Target)
    border.instance("link: options", options, LinkOptions)
    if cache is False:
        return link_images(images, target, options)
    used = default_cache() if cache is True else border.instance("cache", cache, ImageCache)
    return used.get_or_link(images, target, options)
