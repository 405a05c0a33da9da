"""PTX: compiled by NVRTC, cached on disk, linked, read and executed; no driver is needed.

Importing this package loads no library and touches no disk. The public names are those in the
`__all__` of the modules below, which are imported at the first use of a name.

`python -m cudadrv emulate` imports the package before pytest starts. The next word keeps pytest
from warning that it can no longer rewrite its assertions.

PYTEST_DONT_REWRITE
"""

import importlib
import sys
import types

if sys.version_info < (3, 11):  # noqa: UP036  # of a source tree, which no installer has checked
    raise ImportError(
        "ptx needs Python 3.11 or newer, and this is "
        f"{sys.version.split()[0]} ({sys.executable}): make the environment with a newer one"
    )

_DISTRIBUTION = "cudadrv"
"""The distribution of this package; `cudadrv` uses it to detect another package named ptx."""

# For type checkers it is true. `typing` itself would take most of the time of this import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptx.cache.cache_report import *  # noqa: F403
    from ptx.compile_report import *  # noqa: F403
    from ptx.compiling import *  # noqa: F403
    from ptx.diagnostics import *  # noqa: F403
    from ptx.disassembler import *  # noqa: F403
    from ptx.errors import *  # noqa: F403
    from ptx.fatbin import *  # noqa: F403
    from ptx.headers import *  # noqa: F403
    from ptx.image import *  # noqa: F403
    from ptx.image_cache import *  # noqa: F403
    from ptx.isa import *  # noqa: F403
    from ptx.linking import *  # noqa: F403
    from ptx.nvvm import *  # noqa: F403
    from ptx.options import *  # noqa: F403
    from ptx.precompiled_headers import *  # noqa: F403
    from ptx.prewarming import *  # noqa: F403
    from ptx.signature import *  # noqa: F403
    from ptx.target import *  # noqa: F403
else:
    _AT_FIRST_USE = (
        # All that a compilation needs comes at once.
        "compiling errors image image_cache options signature target",
        # Few starts use the rest: saves 15 ms, most of them the PTX parser's.
        "cache.cache_report", "diagnostics", "headers", "prewarming", "linking", "nvvm", "isa",
        "disassembler", "compile_report", "precompiled_headers", "fatbin",
    )  # fmt: skip

    _hidden: list[str] | None = None  # the other distributions, found at the first missing name

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if name == "errors":  # which tracebacks name
            return importlib.import_module("ptx.errors")
        if not name.startswith("_"):
            for group in _AT_FIRST_USE:
                for submodule in group.split():
                    module = importlib.import_module(f"ptx.{submodule}")
                    for public_name in module.__all__:
                        globals()[public_name] = getattr(module, public_name)
                if name in globals():
                    return globals()[name]
            _warn_of_hidden(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def _warn_of_hidden(name: str) -> None:
        """Warn if another distribution has a package ptx, which a missing name may belong to."""
        global _hidden
        if _hidden is None:
            from importlib.metadata import packages_distributions

            _hidden = sorted({*packages_distributions().get("ptx", ())} - {_DISTRIBUTION})
        if _hidden:
            import warnings

            warnings.warn(
                f"ptx is cudadrv's package here, and has no {name}\n"
                f"  {', '.join(_hidden)} has a package ptx, too: install them in separate "
                "environments",
                RuntimeWarning,
                stacklevel=3,
            )

    def __dir__() -> list[str]:
        loaded = {
            name
            for name, value in globals().items()
            if not (name.startswith("_") or name == "TYPE_CHECKING")
            and not isinstance(value, types.ModuleType)
        }
        modules = " ".join(_AT_FIRST_USE).split()
        later = (importlib.import_module(f"ptx.{module}").__all__ for module in modules)
        return sorted(loaded.union(*later))
