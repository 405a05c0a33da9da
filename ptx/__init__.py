"""PTX: compiled by NVRTC, kept on disk, linked, read and executed; no driver is needed.

Importing this package loads no library and touches no disk. Each public name stands here once, or
in the `__all__` of one of the modules that are imported at the first use of their names.
"""

import importlib
import sys
import types
import typing

if sys.version_info < (3, 11):  # noqa: UP036  # of a source tree, which no installer has checked
    raise ImportError(
        "ptx needs Python 3.11 or newer, and this is "
        f"{sys.version.split()[0]} ({sys.executable}): make the environment with a newer one"
    )

from ptx.compiling import (
    choose_target as choose_target,
    compile as compile,
    nearest_target as nearest_target,
    nvrtc_version as nvrtc_version,
    supported_targets as supported_targets,
)
from ptx.errors import (
    CompileError as CompileError,
    FunctionNotFoundError as FunctionNotFoundError,
    HeaderNotFoundError as HeaderNotFoundError,
    HeaderVersionError as HeaderVersionError,
    ImageFormatError as ImageFormatError,
    LinkError as LinkError,
    NvJitLinkNotFoundError as NvJitLinkNotFoundError,
    NvrtcError as NvrtcError,
    NvrtcNotFoundError as NvrtcNotFoundError,
    NvvmError as NvvmError,
    NvvmNotFoundError as NvvmNotFoundError,
    PtxArgumentError as PtxArgumentError,
    PtxArgumentTypeError as PtxArgumentTypeError,
    PtxArgumentValueError as PtxArgumentValueError,
    PtxError as PtxError,
    UnsupportedTargetError as UnsupportedTargetError,
)
from ptx.image import Image as Image, ImageOrigin as ImageOrigin
from ptx.image_cache import ImageCache as ImageCache, default_cache as default_cache
from ptx.observers import Observer as Observer, observe as observe
from ptx.options import (
    DEFAULT_TARGET as DEFAULT_TARGET,
    NO_FMA as NO_FMA,
    CompileOptions as CompileOptions,
)
from ptx.request import CompileRequest as CompileRequest
from ptx.signature import KernelParam as KernelParam, KernelSignature as KernelSignature
from ptx.target import ImageKind as ImageKind, Target as Target

_DISTRIBUTION = "cudadrv"
"""What this package is of, for `cudadrv` to tell it from another one of its name."""

if typing.TYPE_CHECKING:
    from ptx.cache.cache_report import *  # noqa: F403
    from ptx.diagnostics import *  # noqa: F403
    from ptx.headers import *  # noqa: F403
    from ptx.isa import *  # noqa: F403
    from ptx.linking import *  # noqa: F403
    from ptx.nvvm import *  # noqa: F403
    from ptx.prewarming import *  # noqa: F403
else:
    _AT_FIRST_USE = (
        "ptx.cache.cache_report",
        "ptx.diagnostics",
        "ptx.headers",
        "ptx.prewarming",
        "ptx.linking",
        "ptx.nvvm",
        "ptx.isa",
    )
    """Asked for by few starts: saves 15 ms, most of them the PTX parser's."""

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if not name.startswith("_"):
            for module in map(importlib.import_module, _AT_FIRST_USE):
                if name in module.__all__:
                    value = globals()[name] = getattr(module, name)
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        here = {
            name
            for name, value in globals().items()
            if not name.startswith("_") and not isinstance(value, types.ModuleType)
        }
        later = (importlib.import_module(module).__all__ for module in _AT_FIRST_USE)
        return sorted(here.union(*later))
