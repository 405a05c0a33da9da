"""PTX: compiled by NVRTC, kept on disk, linked, read and executed; no driver is needed.

Importing this package loads no library, touches no disk and is quick: each module is imported when
one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptx.cache.cache_report import CacheWarning, Explanation, Verification
    from ptx.compiling import compile, link
    from ptx.diagnostics import Diagnostic
    from ptx.errors import (
        CompileError,
        HeaderNotFoundError,
        ImageFormatError,
        LinkError,
        NvJitLinkNotFoundError,
        NvrtcError,
        NvrtcNotFoundError,
        PtxError,
        UnsupportedTargetError,
    )
    from ptx.image import Image, ImageOrigin
    from ptx.image_cache import ImageCache, default_cache
    from ptx.isa.module import PtxModule, parse
    from ptx.isa.signature import signatures_of
    from ptx.observers import Observer, observe
    from ptx.options import DEFAULT_TARGET, NO_FMA, CompileOptions, LinkOptions
    from ptx.prewarming import Prewarmed, prewarm
    from ptx.request import CompileRequest
    from ptx.signature import KernelParam, KernelSignature
    from ptx.supported import choose_target, nearest_target, nvrtc_version, supported_targets
    from ptx.target import ImageKind, Target

_LATER = {
    "CacheWarning": "ptx.cache.cache_report",
    "CompileError": "ptx.errors",
    "CompileOptions": "ptx.options",
    "CompileRequest": "ptx.request",
    "DEFAULT_TARGET": "ptx.options",
    "Diagnostic": "ptx.diagnostics",
    "Explanation": "ptx.cache.cache_report",
    "HeaderNotFoundError": "ptx.errors",
    "Image": "ptx.image",
    "ImageCache": "ptx.image_cache",
    "ImageFormatError": "ptx.errors",
    "ImageKind": "ptx.target",
    "ImageOrigin": "ptx.image",
    "KernelParam": "ptx.signature",
    "KernelSignature": "ptx.signature",
    "LinkError": "ptx.errors",
    "LinkOptions": "ptx.options",
    "NO_FMA": "ptx.options",
    "NvJitLinkNotFoundError": "ptx.errors",
    "NvrtcError": "ptx.errors",
    "NvrtcNotFoundError": "ptx.errors",
    "Prewarmed": "ptx.prewarming",
    "PtxError": "ptx.errors",
    "PtxModule": "ptx.isa.module",
    "Target": "ptx.target",
    "UnsupportedTargetError": "ptx.errors",
    "Verification": "ptx.cache.cache_report",
    "choose_target": "ptx.supported",
    "compile": "ptx.compiling",
    "default_cache": "ptx.image_cache",
    "link": "ptx.compiling",
    "nearest_target": "ptx.supported",
    "nvrtc_version": "ptx.supported",
    "Observer": "ptx.observers",
    "observe": "ptx.observers",
    "parse": "ptx.isa.module",
    "prewarm": "ptx.prewarming",
    "signatures_of": "ptx.isa.signature",
    "supported_targets": "ptx.supported",
}
"""Public names by the module that is imported at their first use."""

__all__ = [
    "DEFAULT_TARGET",
    "NO_FMA",
    "CacheWarning",
    "CompileError",
    "CompileOptions",
    "CompileRequest",
    "Diagnostic",
    "Explanation",
    "HeaderNotFoundError",
    "Image",
    "ImageCache",
    "ImageFormatError",
    "ImageKind",
    "ImageOrigin",
    "KernelParam",
    "KernelSignature",
    "LinkError",
    "LinkOptions",
    "NvJitLinkNotFoundError",
    "NvrtcError",
    "NvrtcNotFoundError",
    "Observer",
    "Prewarmed",
    "PtxError",
    "PtxModule",
    "Target",
    "UnsupportedTargetError",
    "Verification",
    "choose_target",
    "compile",
    "default_cache",
    "link",
    "nearest_target",
    "nvrtc_version",
    "observe",
    "parse",
    "prewarm",
    "signatures_of",
    "supported_targets",
]


if not TYPE_CHECKING:  # a type checker sees each name above, and that there are no others

    def __getattr__(name: str) -> object:
        module = _LATER.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(module), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
