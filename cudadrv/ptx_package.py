"""The check that `import ptx` gives cudadrv's own package: other distributions have that name, too.

Two such distributions in one environment write into one folder, or one hides the other.
"""

from __future__ import annotations

import os
import warnings

OWN_FILES = frozenset((
    "__init__.py", "_nvrtc.py", "argument_checks.py", "assembler.py", "base_errors.py", "cache",
    "compile_report.py", "compiling.py", "cubin_mark.py", "diagnostics.py", "disassembler.py",
    "emulate", "errors.py", "fatbin.py", "headers.py", "image.py", "image_cache.py", "isa",
    "kernel_types.py", "latch.py", "linker.py", "linking.py", "nvrtc_build.py", "nvvm.py",
    "options.py", "ordinary_files.py", "precompiled_headers.py", "prewarming.py", "py.typed",
    "read_only.py", "shown_path.py", "signature.py", "source_text.py", "standard_streams.py",
    "target.py", "visible_text.py",
))  # fmt: skip
_MODULES = (".py", ".so", ".pyd")


def reject_other_ptx() -> None:
    """Check the package that `import ptx` gives, and warn of others' modules in its folder.

    Raises:
        ImportError: it is another package; the text says which, and what to do.
    """
    try:
        import ptx
    except ImportError as error:
        raise ImportError(_text("it cannot be imported"), name="ptx") from error
    if vars(ptx).get("_DISTRIBUTION") != "cudadrv":
        place = getattr(ptx, "__file__", None) or ", ".join(ptx.__path__)
        raise ImportError(_text(f"Python finds another one of that name, {place}"), name="ptx")
    try:
        there = os.listdir(ptx.__path__[0])
    except OSError:
        return  # in an archive, which no other distribution changes
    other_modules = sorted(name for name in {*there} - OWN_FILES if name.endswith(_MODULES))
    if other_modules:
        warnings.warn(
            f"another distribution has installed {', '.join(other_modules)} into "
            f"{ptx.__path__[0]}, cudadrv's own package ptx\n"
            "  each hides names of the other: install them in separate environments",
            RuntimeWarning,
            stacklevel=2,
        )


def other_distributions() -> list[str]:
    """Return the installed distributions that have a package ptx, without cudadrv's."""
    from importlib.metadata import packages_distributions  # which few starts need

    return sorted(set(packages_distributions().get("ptx", ())) - {"cudadrv"})


def _text(reason: str) -> str:
    names = other_distributions()
    anew = "pip install --force-reinstall --no-deps cudadrv"
    remedy = (
        f"uninstall the other distribution, then install cudadrv again: "
        f"pip uninstall {' '.join(names)} && {anew}"
        if names
        else f"rename your file or folder of that name, or install cudadrv again: {anew}"
    )
    return f"cudadrv needs its own package ptx, but {reason}\n  {remedy}"
