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
from ptx.isa.module import PtxModule, parse
from ptx.isa.signature import KernelParam, KernelSignature, signatures_of
from ptx.options import DEFAULT_TARGET, NO_FMA, CompileOptions
from ptx.supported import choose_target, nearest_target, nvrtc_version, supported_targets
from ptx.target import ImageKind, Target

__all__ = [
    "DEFAULT_TARGET",
    "NO_FMA",
    "CompileError",
    "CompileOptions",
    "Diagnostic",
    "HeaderNotFoundError",
    "Image",
    "ImageFormatError",
    "ImageKind",
    "ImageOrigin",
    "KernelParam",
    "KernelSignature",
    "LinkError",
    "NvJitLinkNotFoundError",
    "NvrtcError",
    "NvrtcNotFoundError",
    "PtxError",
    "PtxModule",
    "Target",
    "UnsupportedTargetError",
    "choose_target",
    "compile",
    "nearest_target",
    "nvrtc_version",
    "parse",
    "signatures_of",
    "supported_targets",
]
