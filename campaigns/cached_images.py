"""Images that are known by their number, which a cache keeps without compiling anything."""

from __future__ import annotations

import random

from ptx import Image, ImageCache, Target
from ptx.cache.key import Key, sealed_key
from ptx.image_cache import Made

_TARGET = Target.parse("sm_80")


def key_of(number: int) -> Key:
    """The key of an image."""
    return sealed_key({"number": str(number)})


def image_of(number: int) -> Image:
    """The image of a number: 1 to 60 KB that no other number has."""
    return Image(_TARGET, random.Random(number).randbytes(1000 + number * 7919 % 60_000))


def get(cache: ImageCache, number: int) -> bool:
    """Ask for an image, which is made where the cache has none; whether it is the right one."""
    right = image_of(number)
    made = Made(right, lasting=True)
    return cache._get(key_of(number), f"image {number}", lambda: made).data == right.data
