"""That `import ptx` gives the package that belongs to cudadrv: others have that name, too."""

from __future__ import annotations


def refuse_other_ptx() -> None:
    """Check the package that `import ptx` gives.

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
