"""One compilation by NVRTC, with no cache in between."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Final

from ptx import _nvrtc
from ptx.diagnostics import CompileWarning, Diagnostic, parse_log
from ptx.errors import CompileError, HeaderNotFoundError, HeaderVersionError, UnsupportedTargetError
from ptx.headers import (
    PIP,
    HeaderFolder,
    Version,
    cuda_headers,
    found_folders,
    inspect,
    install_command,
    package_of,
    package_of_part,
)
from ptx.image import Image
from ptx.isa.errors import PtxSyntaxError
from ptx.isa.module import with_register_limit
from ptx.isa.signature import known_signatures
from ptx.kernel_types import with_types
from ptx.options import CompileRequest
from ptx.target import ImageKind, Target


def build(
    request: CompileRequest,
    folders: Sequence[str] | None = None,
    *,
    cancel: Callable[[], bool] | None = None,
    pch_folder: str | None = None,
    also: Sequence[str] = (),
    read: Callable[[_nvrtc.NvrtcProgram], None] | None = None,
) -> Image:
    """Compile with NVRTC.

    Args:
        request: the source with its options.
        folders: those of CUDA's headers, None to look for them.
        cancel: returns True to stop.
        pch_folder: for precompiled headers; None uses none.
        also: options that do not change the image.
        read: called with the compiled program.

    Raises:
        CompileCancelledError: `cancel` returned True.
        CompileError: the source or an option is rejected; HeaderNotFoundError among them.
        UnsupportedTargetError: this NVRTC does not know the architecture.
        NvrtcNotFoundError: there is no NVRTC.
    """
    started = time.perf_counter()
    if folders is None:
        folders = cuda_headers(request.options).paths if request.includes_anything() else ()
    with _nvrtc.NvrtcProgram(request.source, request.name, request.headers) as program:
        for expression in request.name_expressions:
            program.add_name_expression(expression)
        options = (*nvrtc_options(request, folders), *_pch_options(pch_folder), *also)
        compiled = program.compile(options, cancel)
        log = program.log()
        if not compiled:
            raise _error_of(request, log, folders)
        if read is not None:
            read(program)
        elif pch_folder is not None:
            _warn_of_heap(program)
        data, text = _results(program, request)
        lowered = {e: program.lowered_name(e) for e in request.name_expressions}
    signatures, remark = known_signatures(text)
    signatures = with_types(signatures, request.source, request.options.flags())
    return Image(
        target=request.target,
        data=data,
        ptx=text,
        log="\n".join(filter(None, (log, remark))),
        lowered_names=lowered,
        signatures=signatures,
        compiler=_nvrtc.version(),
        build_ms=(time.perf_counter() - started) * 1e3,
    )


def _results(program: _nvrtc.NvrtcProgram, request: CompileRequest) -> tuple[bytes, str | None]:
    """Return the bytes of the image, and its PTX; None where there is none."""
    kind = request.target.kind
    if kind is ImageKind.LTOIR:
        return program.ltoir(), None
    text = program.ptx()
    if kind is ImageKind.CUBIN:
        return program.cubin(), text
    text = _limited(text, request.options.maxrregcount)
    return text.encode(), text


def _limited(text: str, registers: int | None) -> str:
    """PTX with the limit of registers that it was compiled with."""
    if registers is None:
        return text
    try:
        return with_register_limit(text, registers)
    except PtxSyntaxError:
        return text  # `known_signatures` remarks that our reader does not understand it


def nvrtc_options(request: CompileRequest, folders: Sequence[str]) -> tuple[str, ...]:
    """Every option as NVRTC takes it; `folders` are searched after the request's own."""
    target = request.target
    options = [f"--gpu-architecture={target.arch}", *request.options.flags()]
    if target.kind is ImageKind.LTOIR:
        # Device functions of other translation units are what LTO-IR is linked for.
        options += ["-dlto", "--relocatable-device-code=true"]
    paths = (*map(str, request.options.include_paths), *folders)
    return (*options, *(f"--include-path={path}" for path in paths))


_HEAP_EXHAUSTED: Final = 14  # NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED
_NO_HEAP: Final = "639"
"""The diagnostic of that: the log of an image does not depend on precompiled headers."""


def _pch_options(folder: str | None) -> tuple[str, ...]:
    if folder is None:
        return ()
    # Without the text that a header is created or used.
    return "--pch", f"--pch-dir={folder}", "--pch-messages=false", f"--diag-suppress={_NO_HEAP}"


def _warn_of_heap(program: _nvrtc.NvrtcProgram) -> None:
    """Raise a warning if the heap is too small, once for each size."""
    status, nbytes = program.pch_status()
    if status == _HEAP_EXHAUSTED:
        text = f"precompiled headers need a larger heap: ptx.set_pch_heap_bytes({nbytes})"
        warnings.warn(CompileWarning(text), stacklevel=2)


def _error_of(request: CompileRequest, log: str, folders: Sequence[str]) -> Exception:
    options, name = request.options, request.name
    shown = name.encode("utf-8", "surrogateescape").decode(errors="replace")  # as in the log
    diagnostics = parse_log(log, name=shown, source=request.source)
    if "--gpu-architecture" in log and request.target.number not in _nvrtc.supported_archs():
        known = tuple(Target(request.target.kind, number) for number in _nvrtc.supported_archs())
        major, minor = _nvrtc.version()
        return UnsupportedTargetError(
            f"NVRTC {major}.{minor} does not compile for {request.target.arch}. It knows: "
            f"{', '.join(t.arch for t in known)}",
            request.target,
            known,
        )
    searched = (*map(str, options.include_paths), *folders)
    for diagnostic in diagnostics:
        # Of CUDA 12, Thrust includes headers of the host.
        if (header := diagnostic.missing_header) and "/thrust/" not in diagnostic.file:
            return _missing(header, request, log, diagnostics, searched)
    remarks = (_remark_on_versions(searched), _remark_on_source(request.source, diagnostics))
    remark = "\n".join(filter(None, remarks))
    return CompileError(log, options, name=name, diagnostics=diagnostics, remark=remark)


def _missing(
    header: str,
    request: CompileRequest,
    log: str,
    diagnostics: Sequence[Diagnostic],
    searched: Sequence[str],
) -> HeaderNotFoundError:
    """The error for a header that no folder has; one of another CUDA version may have it."""
    options, name, nvrtc = request.options, request.name, _nvrtc.version()
    package = package_of(header, nvrtc[0])
    other_folders = (
        () if options.cuda_headers else found_folders(nvrtc, _nvrtc.library_path("nvrtc"))
    )
    for folder in other_folders:
        if folder.misfits(nvrtc) and folder.has(header):
            return HeaderVersionError(
                header,
                package,
                searched,
                log,
                options,
                folder=folder.path,
                versions=folder.misfits(nvrtc),
                nvrtc=nvrtc,
                command=install_command(_packages(folder, package, nvrtc), nvrtc),
                name=name,
                diagnostics=diagnostics,
            )
    command = install_command([package], nvrtc) if package else None
    return HeaderNotFoundError(
        header, package, searched, log, options, command=command, name=name, diagnostics=diagnostics
    )


def _packages(folder: HeaderFolder, package: str | None, nvrtc: Version) -> list[str]:
    """Return the packages of the right headers; in pip's shared folder only some are wrong."""
    if folder.origin != PIP and package is not None:
        return [package]
    return [package_of_part(part, nvrtc[0]) for part, _ in folder.misfits(nvrtc)]


def _remark_on_source(source: str, diagnostics: Sequence[Diagnostic]) -> str:
    """Return the remedy for a name in the place of a source, and for code of the host."""
    if "\n" not in source and source.strip().endswith((".cu", ".cuh", ".cpp")):
        return f"the source is a name: give the file's text, Path({source.strip()!r}).read_text()"
    first = next((diagnostic for diagnostic in diagnostics if diagnostic.is_error), None)
    if first is None:
        return ""
    if "/thrust/" in first.file:
        if "/thrust/detail/complex/" in first.file or "<thrust/complex.h>" in source:
            return (
                "thrust/complex.h needs the host's streams: include <cuda/std/complex>, which has "
                "cuda::std::complex<float>"
            )
        return "Thrust works on the host: kernels have CUB, <cub/cub.cuh>, and <cuda/std/...>"
    if not first.is_of_host_code:
        return ""
    return 'mark it __device__, or all such code by CompileOptions(extra=("-default-device",))'


def _remark_on_versions(searched: Sequence[str]) -> str:
    """Name the user's folders with CUDA's headers of another version: a likely cause."""
    nvrtc = _nvrtc.version()
    misfits = [folder for path in searched if (folder := inspect(path, "")).misfits(nvrtc)]
    texts = [f"{folder.path} has headers of CUDA ({folder.contents()})" for folder in misfits]
    return f"{'; '.join(texts)}, and NVRTC is {nvrtc[0]}.{nvrtc[1]}" if texts else ""
