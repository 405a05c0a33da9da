"""One compilation by NVRTC, with no cache in between."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ptx import _nvrtc
from ptx.diagnostics import parse_log
from ptx.errors import CompileError, HeaderNotFoundError, UnsupportedTargetError
from ptx.headers import header_folders, package_of
from ptx.image import Image
from ptx.isa.errors import PtxSyntaxError
from ptx.isa.signature import signatures_of
from ptx.request import CompileRequest
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target


def build(request: CompileRequest, folders: Sequence[str] | None = None) -> Image:
    """Compile with NVRTC; `folders` are those of CUDA's headers, None to look for them.

    Raises:
        CompileError: the source or an option is refused; HeaderNotFoundError among them.
        UnsupportedTargetError: this NVRTC does not know the architecture.
        NvrtcNotFoundError: there is no NVRTC.
    """
    started = time.perf_counter()
    if folders is None:
        folders = header_folders().paths if request.includes_anything() else ()
    target = request.target
    with _nvrtc.NvrtcProgram(request.source, request.name, request.headers) as program:
        for expression in request.name_expressions:
            program.add_name_expression(expression)
        compiled = program.compile(nvrtc_options(request, folders))
        log = program.log()
        if not compiled:
            raise _refusal(request, log, folders)
        text = program.ptx() if target.kind is not ImageKind.LTOIR else None
        if target.kind is ImageKind.CUBIN:
            data = program.cubin()
        elif target.kind is ImageKind.LTOIR:
            data = program.ltoir()
        else:
            data = (text or "").encode()
        lowered = {e: program.lowered_name(e) for e in request.name_expressions}
    signatures, remark = _signatures(text)
    return Image(
        target=target,
        data=data,
        ptx=text,
        log="\n".join(filter(None, (log, remark))),
        lowered_names=lowered,
        signatures=signatures,
        compiler=_nvrtc.version(),
        build_ms=(time.perf_counter() - started) * 1e3,
    )


def _signatures(text: str | None) -> tuple[dict[str, KernelSignature], str]:
    """The kernels' signatures; or a remark where our reader does not understand what NVRTC wrote.

    The image is good nevertheless: a driver loads it, and can be asked for sizes and offsets.
    """
    try:
        return (signatures_of(text) if text else {}), ""
    except PtxSyntaxError as error:
        return {}, f"cudadrv: the kernels' parameter types are not known: {error}"


def nvrtc_options(request: CompileRequest, folders: Sequence[str]) -> tuple[str, ...]:
    """Every option as NVRTC takes it; `folders` are searched after the request's own."""
    target = request.target
    options = [f"--gpu-architecture={target.arch}", *request.options.flags()]
    if target.kind is ImageKind.LTOIR:
        # Device functions of other translation units are what LTO-IR is linked for.
        options += ["-dlto", "--relocatable-device-code=true"]
    paths = (*map(str, request.options.include_paths), *folders)
    return (*options, *(f"--include-path={path}" for path in paths))


def _refusal(request: CompileRequest, log: str, folders: Sequence[str]) -> Exception:
    options, name = request.options, request.name
    found = parse_log(log, name=name, source=request.source)
    if "--gpu-architecture" in log and request.target.number not in _nvrtc.supported_archs():
        known = tuple(Target(request.target.kind, number) for number in _nvrtc.supported_archs())
        major, minor = _nvrtc.version()
        return UnsupportedTargetError(
            f"NVRTC {major}.{minor} does not compile for {request.target.arch}. It knows: "
            f"{', '.join(t.arch for t in known)}",
            request.target,
            known,
        )
    for diagnostic in found:
        if header := diagnostic.missing_header:
            searched = (*map(str, options.include_paths), *folders)
            return HeaderNotFoundError(
                header, package_of(header), searched, log, options, name=name, diagnostics=found
            )
    return CompileError(log, options, name=name, diagnostics=found)
