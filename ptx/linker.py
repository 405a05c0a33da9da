"""Linking images across translation units with nvJitLink, with no cache in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from ptx import _nvrtc
from ptx.errors import LinkError, PtxArgumentValueError
from ptx.image import Image
from ptx.isa.register_limit import with_register_limit
from ptx.isa.signature import signatures_of
from ptx.link_options import LinkOptions
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

# nvJitLinkInputType
_INPUT = {ImageKind.CUBIN: 1, ImageKind.PTX: 2, ImageKind.LTOIR: 3, ImageKind.FATBIN: 4}


class Linker:
    """One nvJitLinkHandle: inputs added, completed, read, destroyed at the end of its `with`.

    Raises:
        NvJitLinkNotFoundError: nvJitLink is not installed.
        LinkError: an option or an input is refused, or a symbol is missing.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self._api = _nvrtc.linker_api()
        self._options = tuple(options)
        try:
            # nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *, uint32_t, const char **options)
            self._handle = self._api.create(len(self._options), self._options)
        except self._api.nvJitLinkError as error:
            message = f"nvJitLink refuses its options {' '.join(options)}: {error}"
            raise LinkError(message, "", options) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *)
        self._api.destroy(self._handle)

    def add(self, kind: ImageKind, data: bytes, name: str) -> None:
        """Add one input; `name` is what messages call it."""
        try:
            # nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle, nvJitLinkInputType,
            #                                  const void *data, size_t size, const char *name)
            self._api.add_data(self._handle, _INPUT[kind], data, len(data), name)
        except self._api.nvJitLinkError as error:
            message = f"nvJitLink does not take {name!r} as {kind.value}: {error}"
            raise LinkError(message, self._error_log(), self._options) from error

    def complete(self) -> None:
        """Link what was added."""
        try:
            # nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle)
            self._api.complete(self._handle)
        except self._api.nvJitLinkError as error:
            message = f"the inputs do not link: {error}"
            raise LinkError(message, self._error_log(), self._options) from error

    def cubin(self) -> bytes:
        """The linked machine code."""
        # nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle, void *cubin), and …Size
        return self._read(self._api.get_linked_cubin_size, self._api.get_linked_cubin)

    def ptx(self) -> str:
        """The linked PTX, after -lto -ptx."""
        # nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle, char *ptx), and …Size
        return _text(self._read(self._api.get_linked_ptx_size, self._api.get_linked_ptx))

    def log(self) -> str:
        """What nvJitLink says of a link that went well."""
        # nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle, char *log), and …Size
        return _text(self._read(self._api.get_info_log_size, self._api.get_info_log))

    def _error_log(self) -> str:
        # nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle, char *log), and …Size
        return _text(self._read(self._api.get_error_log_size, self._api.get_error_log))

    def _read(self, size_of: Callable[[int], int], read: Callable[[int, bytearray], None]) -> bytes:
        try:
            data = bytearray(size_of(self._handle))
            if data:
                read(self._handle, data)
        except self._api.nvJitLinkError as error:
            message = f"nvJitLink has no result of the link: {error}"
            raise LinkError(message, "", self._options) from error
        return bytes(data)


def link_images(images: Sequence[Image], target: Target, options: LinkOptions) -> Image:
    """Link with nvJitLink, with no cache in between.

    Raises:
        LinkError: an input is refused or a symbol is missing; it carries the log.
        NvJitLinkNotFoundError: nvJitLink is not installed.
    """
    started = time.perf_counter()
    _check(images, target)
    lto = [image for image in images if image.kind is ImageKind.LTOIR]
    arch = f"-arch={target.arch}"
    text = None
    if lto:
        # LTO-IR has no PTX of its own, so its kernels' parameters show only here.
        with Linker((arch, "-lto", "-ptx", *options.flags())) as linker:
            _add(linker, lto)
            text, log = linker.ptx(), linker.log()
        if target.kind is ImageKind.PTX and options.maxrregcount is not None:
            text = with_register_limit(text, options.maxrregcount)
    if target.kind is ImageKind.PTX:
        data = (text or "").encode()
    else:
        with Linker((arch, *(("-lto",) if lto else ()), *options.flags())) as linker:
            _add(linker, images)
            data, log = linker.cubin(), linker.log()
    return Image(
        target=target,
        data=data,
        ptx=text if len(lto) == len(images) else None,
        log=log,
        lowered_names={k: v for image in images for k, v in image.lowered_names.items()},
        signatures=_signatures(images, text),
        compiler=_nvrtc.linker_version(),
        build_ms=(time.perf_counter() - started) * 1e3,
    )


def _check(images: Sequence[Image], target: Target) -> None:
    if not images:
        raise PtxArgumentValueError("nothing to link: give at least one image")
    if target.kind not in (ImageKind.PTX, ImageKind.CUBIN):
        raise PtxArgumentValueError(f"linking gives a cubin or PTX, not {target.kind.value}")
    others = sorted({i.kind.value for i in images} - {ImageKind.LTOIR.value})
    if target.kind is ImageKind.PTX and others:
        raise LinkError(
            f"linking to PTX takes LTO-IR only, not {', '.join(others)}: compile each source for "
            f"Target.ltoir({target.real!r})",
            "",
            (),
        )


def _add(linker: Linker, images: Sequence[Image]) -> None:
    for number, image in enumerate(images, 1):
        kernels = ", ".join(list(image.signatures)[:3])
        name = f"input {number} ({image.target}{': ' + kernels if kernels else ''})"
        linker.add(image.kind, image.data, name)
    linker.complete()


def _signatures(images: Sequence[Image], text: str | None) -> Mapping[str, KernelSignature]:
    found = {name: kernel for image in images for name, kernel in image.signatures.items()}
    return {**found, **(signatures_of(text) if text else {})}


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode(errors="replace").strip("\n")
