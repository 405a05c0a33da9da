"""Compiling at run time: the targets that NVRTC offers, and `compile`, behind the cache or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptx import _nvrtc, border
from ptx.cache.toolchain import Build
from ptx.errors import UnsupportedTargetError
from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache, warned_of
from ptx.observers import observed
from ptx.options import CompileOptions
from ptx.request import CompileRequest
from ptx.target import ImageKind, Target


def nvrtc_version() -> tuple[int, int]:
    """Version of the installed NVRTC, such as (13, 4). It loads the library.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
    """
    return _nvrtc.version()


def supported_targets(kind: ImageKind = ImageKind.CUBIN) -> tuple[Target, ...]:
    """The portable architectures that the installed NVRTC compiles for, ascending, as one kind.

    The default image cache remembers them, so that a process whose images are cached loads no
    NVRTC to choose its target.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
    """
    border.instance("supported_targets: kind", kind, ImageKind)
    return tuple(Target(kind, number) for number in _nvrtc_of_cache().archs)


def nearest_target(compute_capability: tuple[int, int], kind: ImageKind = ImageKind.PTX) -> Target:
    """The newest target of a kind that the installed NVRTC knows and a device can run.

    A capability that this NVRTC does not know rounds down, never up (gam's `nvrtc_arch`); for a
    cubin no further down than its own major, since code of another major does not run.

    Raises:
        UnsupportedTargetError: every target is too new for the device.
    """
    compute_capability = border.pair("nearest_target: compute_capability", compute_capability)
    known = supported_targets(kind)
    fitting = [target for target in known if target.runs_on(compute_capability)]
    if fitting:
        return fitting[-1]
    raise UnsupportedTargetError(
        f"NVRTC {_dotted(_nvrtc_of_cache().version)} makes no {kind.value} for a device of compute "
        f"capability {_dotted(compute_capability)}: it knows {_listed(known)}. Install an NVRTC "
        "that knows it",
        None,
        known,
    )


def choose_target(compute_capability: tuple[int, int], driver_version: tuple[int, int]) -> Target:
    """The target for a device: a cubin of its own architecture, else PTX that its driver takes.

    A driver takes PTX of NVRTC versions up to its own CUDA version; a cubin of the device's own
    architecture loads whatever the minor version (CUDA Compatibility, "Minor Version
    Compatibility"), and needs no JIT.

    Raises:
        UnsupportedTargetError: neither is possible; the text has both versions and the remedy.
    """
    driver_version = border.pair("choose_target: driver_version", driver_version)
    cubin = Target.of_capability(ImageKind.CUBIN, compute_capability)
    known = supported_targets()
    if cubin in known:
        return cubin
    version = _nvrtc_of_cache().version
    if version > driver_version:
        raise UnsupportedTargetError(
            f"NVRTC {_dotted(version)} does not know {cubin.arch}, and the driver, of CUDA "
            f"{_dotted(driver_version)}, refuses PTX from a newer NVRTC than itself. Either "
            f"install an NVRTC that knows {cubin.arch}, or update the driver to CUDA "
            f"{_dotted(version)} or newer",
            cubin,
            known,
        )
    return nearest_target(compute_capability, ImageKind.PTX)


def _nvrtc_of_cache() -> Build:
    return default_cache().nvrtc()


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
) -> Image:
    """Compile CUDA C++ to an image.

    `name_expressions` are template instances such as "scale<float>", whose names in the image
    are in `lowered_names`. `headers` are texts by include name, used in place of files. `cache`
    True is the process's default cache, False compiles anew; `Image.origin` says what became of it.
    NVRTC's warnings become a `CompileWarning`, once for each source and process.

    Raises:
        CompileError: with the log, pointing at the first error's line.
        UnsupportedTargetError: the installed NVRTC does not know the architecture.
        NvrtcNotFoundError: NVRTC is not installed; the text has the command that brings it.
    """
    request = CompileRequest.of(source, options, name, name_expressions, headers)
    if cache is False:
        from ptx.nvrtc_build import build  # saves a hit 12 ms, as in the cache

        return warned_of(build(request), request)
    used = default_cache() if cache is True else border.instance("cache", cache, ImageCache)
    return warned_of(used.get_or_build(request), request)
