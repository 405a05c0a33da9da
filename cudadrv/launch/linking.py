"""Linking for a context: by nvJitLink, or if that is not installed by the driver's linker."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias, cast

import ptx

from .. import border, errors
from ..driver._api import CUjit_option, CUjitInputType, CUlinkState, CUresult
from ..driver.context_handle import ContextHandle
from ..driver.driver_selection import failure
from .images import executable, in_place_of_cubin
from .jit_options import JitLog

LinkerName: TypeAlias = Literal["nvJitLink", "driver"]
"""The linker; None as an argument is nvJitLink if it is installed, else the driver."""

_MOST_NAMED: Final = 8  # inputs in the text of an error
_INPUTS: Final = {
    ptx.LinkKind.CUBIN: CUjitInputType.CU_JIT_INPUT_CUBIN,
    ptx.LinkKind.PTX: CUjitInputType.CU_JIT_INPUT_PTX,
    ptx.LinkKind.FATBIN: CUjitInputType.CU_JIT_INPUT_FATBINARY,
    ptx.LinkKind.OBJECT: CUjitInputType.CU_JIT_INPUT_OBJECT,
    ptx.LinkKind.ARCHIVE: CUjitInputType.CU_JIT_INPUT_LIBRARY,
}


def linked(
    context: ContextHandle,
    images: Sequence[ptx.Linkable],
    target: ptx.Target,
    options: ptx.LinkOptions,
    cache: ptx.ImageCache | bool,
    linker: LinkerName | None,
) -> ptx.Image:
    """Return the image that the inputs give when linked.

    Raises:
        LinkError: they do not link; it carries the linker's log.
        NvJitLinkNotFoundError: nvJitLink was requested, and is not installed.
    """
    if linker is not None and border.text("link: linker", linker) not in ("nvJitLink", "driver"):
        words = f"link: linker is {linker!r}: give 'nvJitLink', 'driver' or None"
        raise errors.ArgumentValueError(words)
    is_emulated = context.driver.is_emulated
    if is_emulated:
        capability = target.compute_capability
        given = cast("tuple[ptx.Linkable, ...]", border.elements("link: images", images))
        images = [executable(image, capability) for image in given]
        target = target.as_kind(ptx.ImageKind.PTX)
    if linker != "driver":
        try:
            image = ptx.link(images, target, options, cache=cache)
            return in_place_of_cubin(image, image.data.decode()) if is_emulated else image
        except ptx.NvJitLinkNotFoundError:
            if linker == "nvJitLink":
                raise
    return ptx.link(images, target, options, cache=cache, linker=_drivers_linker(context))


def _drivers_linker(context: ContextHandle) -> ptx.OtherLinker:
    code, version = context.api.cuDriverGetVersion()
    if code:
        raise failure(context.api, code, "cuDriverGetVersion", "choosing a linker")
    identity = f"the driver's linker, of CUDA {version // 1000}.{version % 1000 // 10}"

    def link(
        inputs: Sequence[ptx.LinkInput], target: ptx.Target, options: ptx.LinkOptions
    ) -> ptx.Image:
        linked = context.call(_link, context, inputs, options)
        text = linked.rstrip(b"\0").decode() if target.kind is ptx.ImageKind.PTX else None
        return ptx.Image(
            target,
            linked if text is None else text.encode(),
            ptx=text,
            log=f"linked by {identity}",  # so that the linker can be looked up
            lowered_names={k: v for part in inputs for k, v in part.lowered_names.items()},
            signatures={k: v for part in inputs for k, v in part.signatures.items()},
        )

    return ptx.OtherLinker(identity, link)


def _link(
    context: ContextHandle, inputs: Sequence[ptx.LinkInput], options: ptx.LinkOptions
) -> bytes:
    """Link by cuLinkCreate, cuLinkAddData and cuLinkComplete; the context is current."""
    if not inputs:
        raise errors.ArgumentValueError("nothing to link: give at least one image")
    api, log = context.api, JitLog()
    with _link_state(context, log.options | _native_options(options)) as state:
        for part in inputs:
            kind = _INPUTS.get(part.kind)
            if kind is None:
                raise ptx.LinkError(
                    f"the driver's linker does not accept {part.kind.value} ({part.name}): install "
                    "nvJitLink (nvidia-nvjitlink)",
                    "",
                    options.flags(),
                )
            data = part.data + b"\0" if part.kind is ptx.LinkKind.PTX else part.data
            name = part.name.encode()
            (code,) = api.cuLinkAddData(state, kind, data, len(data), name, 0, (), ())
            _check(context, code, "cuLinkAddData", [part], log, options)
        code, address, nbytes = api.cuLinkComplete(state)
        _check(context, code, "cuLinkComplete", inputs, log, options)
        return ctypes.string_at(address, nbytes)


def _native_options(options: ptx.LinkOptions) -> dict[CUjit_option, object]:
    """Return the options of the driver's linker; those of floating point are for LTO-IR alone."""
    if options.extra:
        raise errors.ArgumentValueError(
            f"LinkOptions.extra is {options.extra}: it is for nvJitLink, not the driver's linker"
        )
    native_options: dict[CUjit_option, object] = {}
    if options.maxrregcount is not None:
        native_options[CUjit_option.CU_JIT_MAX_REGISTERS] = options.maxrregcount
    if options.lineinfo:
        native_options[CUjit_option.CU_JIT_GENERATE_LINE_INFO] = 1
    if options.debug:
        native_options[CUjit_option.CU_JIT_GENERATE_DEBUG_INFO] = 1
    return native_options


@contextmanager
def _link_state(
    context: ContextHandle, options: dict[CUjit_option, object]
) -> Iterator[CUlinkState]:
    """Begin a link, which is destroyed at the end of the block.

    Raises:
        CudaError: it could not begin; or not be destroyed, and nothing else was raised.
    """
    api = context.api
    code, state = api.cuLinkCreate(len(options), tuple(options), tuple(options.values()))
    if code:
        doing = f"starting a link on device {context.ordinal}"
        raise failure(api, code, "cuLinkCreate", doing)
    try:
        yield state
    finally:
        (code,) = api.cuLinkDestroy(state)
    if code:
        raise failure(api, code, "cuLinkDestroy", f"ending a link on device {context.ordinal}")


def _check(
    context: ContextHandle,
    code: CUresult,
    call: str,
    inputs: Sequence[ptx.LinkInput],
    log: JitLog,
    options: ptx.LinkOptions,
) -> None:
    """Raise the error for a failed call of the linker."""
    if not code:
        return
    driver = context.driver
    had_failed = driver.has_failed
    doing = f"linking {_named(inputs)} on device {context.ordinal}"
    error = failure(context.api, code, call, doing)
    if (
        not isinstance(error, errors.CudaError)
        or (error.sticky and _is_broken(context))
        or (isinstance(error, errors.OutOfMemoryError) and not log.text)
    ):
        raise error
    driver.has_failed = had_failed
    words = f"the inputs do not link: {doing}: {call} returned {error.name} ({error.code})"
    if not log.text:
        words += (
            f"\n  {error.text}\n  the linker's log is empty: look for functions and variables that "
            "one input uses and none defines; nvJitLink (nvidia-nvjitlink) may say more"
        )
    raise ptx.LinkError(words, log.text, options.flags()) from error


def _named(inputs: Sequence[ptx.LinkInput]) -> str:
    named = ", ".join(f"{part.name} as {part.kind.value}" for part in inputs[:_MOST_NAMED])
    more = len(inputs) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _is_broken(context: ContextHandle) -> bool:
    """Return whether a context fails every call, as after a kernel that failed.

    Otherwise only the linker failed: for missing symbols driver 580 sometimes returns
    CUDA_ERROR_UNKNOWN, which from other functions would mean a broken context.
    """
    code, _, _ = context.call(context.api.cuMemGetInfo)
    return bool(code)
