"""Compiling at run time: `compile`, the targets that NVRTC offers, and observers of each call.

An observer is called with the verb's name and gives a context manager that stands around the call:

    @contextmanager
    def timed(verb: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            print(verb, time.perf_counter() - started)

    with ptx.observe(timed):
        ptx.compile(source)
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, ParamSpec, TypeAlias, TypeVar

from ptx.argument_checks import checks
from ptx.errors import UnsupportedTargetError
from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache, warned_of
from ptx.options import Cancel, CompileOptions, CompileRequest, cancel_function
from ptx.target import ImageKind, Target

__all__ = [
    "Observer",
    "choose_target",
    "compile",
    "nearest_target",
    "nvrtc_version",
    "observe",
    "supported_targets",
]

Observer: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Called with "compile" or "link" in the thread that calls the verb, before it does anything."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_observers: Final[dict[object, Observer]] = {}
"""Those that observe now, in the order in which they came, each by a key of its block; changed and
read in atomic steps, as a finalizer may come between any two."""


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Have an observer around each `ptx.compile` and `ptx.link` of every thread in this block.

    The observer that came last is innermost. A call that is under way when the block begins is not
    observed; one that is under way when it ends is observed to its end. The verb's error passes
    through the observer's context manager, which cannot swallow it; an error of the observer's own
    reaches the verb's caller.
    """
    key = object()
    try:
        _observers[key] = observer
        yield
    finally:
        _observers.pop(key, None)


def observed(verb: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a function one that observers see by this name; unobserved, that costs one test."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if not _observers:
                return function(*args, **kwargs)
            observers = list(_observers.values())
            return _call_observed(observers, verb, lambda: function(*args, **kwargs))

        return call

    return decorate


def _call_observed(observers: list[Observer], verb: str, function: Callable[[], _R]) -> _R:
    failed: list[BaseException] = []
    try:
        with ExitStack() as observations:
            for observer in observers:
                observations.enter_context(observer(verb))
            try:
                return function()
            except BaseException as error:
                failed.append(error)
                raise
        raise failed[0]  # an observer would have swallowed it
    finally:
        failed.clear()  # the error's traceback holds this frame


def nvrtc_version() -> tuple[int, int]:
    """Version of the installed NVRTC, such as (13, 4). It loads the library.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
    """
    from ptx import _nvrtc  # which a start with cached images does not need

    return _nvrtc.version()


def supported_targets(kind: ImageKind = ImageKind.CUBIN) -> tuple[Target, ...]:
    """The portable architectures that the installed NVRTC compiles for, ascending, as one kind.

    The default image cache stores them, so that a process whose images are cached loads no NVRTC to
    choose its target.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
    """
    checks.instance_of("supported_targets: kind", kind, ImageKind)
    return tuple(Target(kind, number) for number in default_cache().nvrtc().archs)


def nearest_target(compute_capability: tuple[int, int], kind: ImageKind = ImageKind.PTX) -> Target:
    """The newest target of a kind that the installed NVRTC supports and a device can run.

    A capability that this NVRTC does not support rounds down, never up (gam's `nvrtc_arch`). For a
    cubin it stays within its own major, because code of another major does not run.

    Raises:
        UnsupportedTargetError: every target is too new for the device.
    """
    major, minor = checks.int_pair("nearest_target: compute_capability", compute_capability)
    checks.instance_of("nearest_target: kind", kind, ImageKind)
    nvrtc = default_cache().nvrtc()
    # As in `Target.runs_on`: PTX runs on later capabilities, other code on those of its major.
    least = 0 if kind is ImageKind.PTX else major * 10
    fitting = bisect_right(nvrtc.archs, major * 10 + minor)  # so many are old enough
    if fitting and nvrtc.archs[fitting - 1] >= least:
        return Target(kind, nvrtc.archs[fitting - 1])
    supported = supported_targets(kind)
    raise UnsupportedTargetError(
        f"NVRTC {_dotted(nvrtc.version)} makes no {kind.value} for a device of compute "
        f"capability {major}.{minor}: it knows {_listed(supported)}\n"
        "  install an NVRTC that knows it",
        None,
        supported,
    )


def choose_target(compute_capability: tuple[int, int], driver_version: tuple[int, int]) -> Target:
    """The target for a device: a cubin of its own architecture, else PTX that its driver accepts.

    A driver accepts PTX of NVRTC versions up to its own CUDA version. A cubin of the device's own
    architecture loads with any minor version, and needs no JIT. Source: CUDA Compatibility, "Minor
    Version Compatibility".

    Raises:
        UnsupportedTargetError: neither is possible; the text has both versions and the remedy.
    """
    driver_version = checks.int_pair("choose_target: driver_version", driver_version)
    cubin = Target.of_capability(ImageKind.CUBIN, compute_capability)
    nvrtc = default_cache().nvrtc()
    if cubin.number in nvrtc.archs:
        return cubin
    version = nvrtc.version
    if version > driver_version:
        raise UnsupportedTargetError(
            f"NVRTC {_dotted(version)} does not know {cubin.arch}, and the driver, of CUDA "
            f"{_dotted(driver_version)}, rejects its PTX\n"
            f"  install an NVRTC that knows {cubin.arch}, or update the driver to CUDA "
            f"{_dotted(version)} or newer",
            cubin,
            supported_targets(),
        )
    return nearest_target(compute_capability, ImageKind.PTX)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _listed(targets: tuple[Target, ...]) -> str:
    return ", ".join(target.arch for target in targets)


_DEFAULT = CompileOptions()


@observed("compile")
def compile(
    source: str,
    options: CompileOptions = _DEFAULT,
    *,
    name: str = "kernel.cu",
    name_expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    cache: ImageCache | bool = True,
    cancel: Cancel | None = None,
) -> Image:
    """Compile CUDA C++ to an image.

    NVRTC's warnings become a `CompileWarning`, once for each source and process. `Image.origin` is
    where the image came from: a cache, or the compiler.

    A cancelled call raises at once, as it does for Ctrl-C in the main thread. NVRTC goes on to its
    end in a thread of its own, and the result is dropped. An ending process waits for that thread.
    A call that waits for another thread's compilation of the same source is not stopped.

    Args:
        source: CUDA C++.
        options: the target and the flags.
        name: the file name in messages and debug information.
        name_expressions: template instances such as "scale<float>". `Image.lowered_names` has their
            names in the image.
        headers: texts by include name, used in place of files.
        cache: a cache; True is the default one of the process, False compiles anew.
        cancel: ends the call: a `threading.Event` that is set, or a function that returns
            True.

    Raises:
        CompileCancelledError: `cancel` stopped it.
        CompileError: with the log, pointing at the first error's line.
        UnsupportedTargetError: the installed NVRTC does not know the architecture.
        NvrtcNotFoundError: NVRTC is not installed; the text has the command that brings it.
    """
    if cache is False:
        request = CompileRequest.of(source, options, name, name_expressions, headers)
        if not options.pch:
            from ptx.nvrtc_build import build  # saves a hit 12 ms, as in the cache

            image = build(request, cancel=cancel_function(cancel))
            return warned_of(image, request.name, request.source)
        cache = ImageCache(max_bytes=0, memory_bytes=0)  # which knows the content of headers
    image_cache = (
        default_cache() if cache is True else checks.instance_of("cache", cache, ImageCache)
    )
    return image_cache.get_or_compile(
        source,
        options,
        name=name,
        name_expressions=name_expressions,
        headers=headers,
        cancel=cancel,
    )
