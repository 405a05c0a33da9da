"""The register limit of a compilation, written into its PTX.

NVRTC's `--maxrregcount` is for machine code; the PTX that it gives says nothing of it.
"""

from __future__ import annotations

from ptx.isa.module import parse

# CUDA C++ Programming Guide, "Launch Bounds": of a kernel with one of these the option is ignored.
_OWN = {"maxnreg", "maxntid", "reqntid", "minnctapersm"}


def with_register_limit(text: str, registers: int) -> str:
    """PTX whose kernels may use so many registers a thread; lines keep their numbers.

    Raises:
        PtxSyntaxError: the text is wrong at module level.
    """
    places = [
        entry.span[0]
        for entry in parse(text).entries
        if entry.span is not None and not _OWN & entry.directives.keys()
    ]
    parts: list[str] = []
    start = 0
    for place in sorted(places):
        parts += [text[start:place], f".maxnreg {registers} "]
        start = place
    return "".join([*parts, text[start:]])
