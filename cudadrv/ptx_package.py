"""That `import ptx` gives the package that belongs to cudadrv: others have that name, too."""

from __future__ import annotations

import os
import sys

_BESIDE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "ptx", "__init__.py")


def refuse_other_ptx() -> None:
    """Look where Python would import `ptx` from, without importing it where that is beside us.

    The look costs 0.05 ms, the import 10 ms. Once `ptx` is imported, it is asked itself: files of
    two packages may lie in one folder.

    Raises:
        ImportError: it is another package; the text says which, and what to do.
    """
    if "ptx" not in sys.modules:
        found = (finder.find_spec("ptx", None) for finder in sys.meta_path)
        spec = next(filter(None, found), None)
        if spec is not None and spec.origin == _BESIDE:
            return
    try:
        import ptx
    except ImportError as error:
        raise ImportError(_text("it cannot be imported"), name="ptx") from error
    if vars(ptx).get("_DISTRIBUTION") != "cudadrv":
        place = getattr(ptx, "__file__", None) or ", ".join(ptx.__path__)
        raise ImportError(_text(f"Python finds another one of that name, {place}"), name="ptx")


def _text(reason: str) -> str:
    # Takes long, and is needed for the error alone.
    from importlib.metadata import packages_distributions

    names = sorted(set(packages_distributions().get("ptx", ())) - {"cudadrv"})
    anew = "pip install --force-reinstall --no-deps cudadrv"
    remedy = (
        f"Uninstall what brings it, then install cudadrv anew, as both have files of one name: "
        f"pip uninstall {' '.join(names)} && {anew}"
        if names
        else f"Rename or move a file or folder of yours of that name, or install anew: {anew}"
    )
    return f"cudadrv needs its own package ptx, but {reason}. {remedy}"
