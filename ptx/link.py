"""Linking images across translation units, behind the image cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptx.image import Image
from ptx.options import LinkOptions
from ptx.target import Target

if TYPE_CHECKING:
    from ptx.image_cache import ImageCache

_DEFAULT = LinkOptions()


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
    # Here, so that importing this package stays quick.
    from ptx.image_cache import default_cache
    from ptx.linker import link_images

    if cache is False:
        return link_images(images, target, options)
    used = default_cache() if cache is True else cache
    return used.get_or_link(images, target, options)
