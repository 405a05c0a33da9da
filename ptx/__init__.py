"""PTX: compiled by NVRTC, kept on disk, linked, read and executed; no driver is needed.

Importing this package loads no library and touches no disk.
"""

from ptx.compile import compile
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
from ptx.image_cache import (
    CacheWarning,
    Explanation,
    ImageCache,
    Verification,
    default_cache,
)
from ptx.isa.module import PtxModule, parse
from ptx.isa.signature import KernelParam, KernelSignature, signatures_of
from ptx.link import link
from ptx.options import DEFAULT_TARGET, NO_FMA, CompileOptions, LinkOptions
from ptx.prewarm import Prewarmed, prewarm
from ptx.request import CompileRequest
from ptx.supported import choose_target, nearest_target, nvrtc_version, supported_targets
from ptx.target import ImageKind, Target

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
    "parse",
    "prewarm",
    "signatures_of",
    "supported_targets",
]
