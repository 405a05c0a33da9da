"""Other builds of a source: what its macros decide must not change results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import ptx

from .example_run import CompiledCase
from .kernel_case import KernelCase
from .verdict import CannotVerifyError

_OTHER: Final = "BUILT_BY_ANOTHER_COMPILER"  # a macro that no compiler has
_TEXTS: Final = {
    r"\b__CUDACC_RTC\w*__\b": (_OTHER,),
    r"\b__DATE__\b": ('"Jan  2 2037"',),
    r"\b__TIME(?:STAMP)?__\b": ('"03:04:05"',),
    r"\b__FILE__\b": ('"another.cu"',),
    r"\b__(?:BASE_FILE|FILE_NAME)__\b": ('"another.cu"',),
    # Of the host, which NVRTC does not have, or has in its own way.
    r"\b__(?:NVCC|GNUC|clang|linux|unix|x86_64|CUDA|CUDACC_RDC|STDC_HOSTED)__\b"
    r"|\b(?:_MSC_VER|_WIN32|_WIN64|_LP64|CUDART_VERSION|NDEBUG)\b": (_OTHER, "__CUDACC__"),
    r"\b__has_include(?:_next)?\s*\([^()\n]*\)": ("0", "1"),
}
"""What a source may name, and in which builds it is another text."""
_TARGET_MACRO: Final = re.compile(r"\b__CUDA_ARCH(?:_\w+)?__\b")
_OLDER_TARGETS: Final = ("compute_75", "compute_80")
_NEWER_TARGETS: Final = ("compute_100", "compute_120")
"""They run the PTX of older targets, so that a source must mean the same for them."""


@dataclass(frozen=True, slots=True)
class Build:
    """Another build of a case.

    Attributes:
        macro: what it changes.
        compiled: the build.
        is_older: whether it is for an older target: code may be meant for newer ones alone.
    """

    macro: str
    compiled: CompiledCase
    is_older: bool


def other_builds(compiled: CompiledCase) -> Iterator[Build]:
    """Yield the builds of a source without the macros that it names; not those that fail."""
    case = compiled.case
    source = case.read_source()
    for pattern, texts in _TEXTS.items():
        named = re.search(pattern, source)
        for text in texts if named is not None else ():
            changed = re.sub(pattern, lambda _, text=text: text, source)  # type: ignore[misc]  # mypy sees no default
            build = _built(compiled, case.of_text(changed, case.source_file))
            if named is not None and build is not None:
                yield Build(named[0], build, is_older=False)
    if not _TARGET_MACRO.search(source):
        return
    targets = [(each, True) for each in _OLDER_TARGETS]
    chosen = case.options.target
    # Features of one architecture, as of compute_90a, do not run on a newer one.
    if chosen is None or not chosen.suffix:
        targets += [(each, False) for each in _NEWER_TARGETS]
    for target, is_older in targets:
        options = replace(case.options, target=ptx.Target.parse(target))
        build = _built(compiled, case.with_options(options))
        if build is not None:
            yield Build(f"the target {target}", build, is_older=is_older)


def _built(compiled: CompiledCase, case: KernelCase) -> CompiledCase | None:
    try:
        image, kernel = case.compile()
    except CannotVerifyError:  # such as code for one compiler alone
        return None
    return replace(compiled, case=case, image=image, kernel=kernel, checks=())
