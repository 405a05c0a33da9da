"""Old forms of functions, for callers that were compiled with an old `cuda.h`.

Forms of CUDA 3.1 and older have addresses of 32 bits. On a GPU they work only in a context of the
unsuffixed cuCtxCreate, which the emulator lacks. In any other context driver 580 sets their results
to zero and returns CUDA_ERROR_INVALID_CONTEXT (measured on an H200).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ptx.standard_streams import write_error

from ...driver._api import CUgraphNodeType, CUresult, CUstreamCaptureMode
from ...driver.functions import FunctionForm, forms
from ..emulator import Emulator
from .caller_structures import bytes_at
from .graphs import NodeKind
from .handlers import Handler, Handlers, call, put_size, put_uint
from .launching import capture_info, update_result
from .loading import link_add_data, link_add_file

OLD_FORMS: Final = Handlers()
_INVALID_CONTEXT: Final = int(CUresult.CUDA_ERROR_INVALID_CONTEXT)
_INVALID_HANDLE: Final = int(CUresult.CUDA_ERROR_INVALID_HANDLE)
_OPERATING_SYSTEM: Final = int(CUresult.CUDA_ERROR_OPERATING_SYSTEM)
_ACTIVE: Final = int(CUresult.CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE)
_UPDATE_FAILURE: Final = int(CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
_MOST_BYTES: Final = (1 << 32) - 1
_KERNEL_BYTES: Final = 56  # sizeof(CUDA_KERNEL_NODE_PARAMS_v1), which ends after `extra`
_WITH_HANDLE: Final = (
    "cuArray3DGetDescriptor", "cuArrayGetDescriptor", "cuModuleGetGlobal", "cuTexRefGetAddress",
    "cuTexRefSetAddress", "cuTexRefSetAddress2D", "cuTexRefSetAddress2D_v2",
)  # fmt: skip
"""Forms that look at a handle first, at these positions of their parameters."""
_HANDLE_AT: Final = dict(zip(_WITH_HANDLE, (1, 1, 2, 1, 1, 0, 0), strict=True))
_IN_OLD_CONTEXTS: Final = frozenset((
    "cuArray3DCreate", "cuArrayCreate", "cuMemAlloc", "cuMemAllocHost", "cuMemAllocPitch",
    "cuMemFree", "cuMemGetAddressRange", "cuMemGetInfo", "cuMemHostGetDevicePointer", "cuMemcpy2D",
    "cuMemcpy2DAsync", "cuMemcpy2DUnaligned", "cuMemcpy3D", "cuMemcpy3DAsync", "cuMemcpyAtoA",
    "cuMemcpyAtoD", "cuMemcpyAtoH", "cuMemcpyAtoHAsync", "cuMemcpyDtoA", "cuMemcpyDtoD",
    "cuMemcpyDtoDAsync", "cuMemcpyDtoH", "cuMemcpyDtoHAsync", "cuMemcpyHtoA", "cuMemcpyHtoAAsync",
    "cuMemcpyHtoD", "cuMemcpyHtoDAsync", "cuMemsetD16", "cuMemsetD2D16", "cuMemsetD2D32",
    "cuMemsetD2D8", "cuMemsetD32", "cuMemsetD8", *_WITH_HANDLE,
))  # fmt: skip
_OF_OPENGL: Final = frozenset((
    "cuGLCtxCreate", "cuGLCtxCreate_v2", "cuGLGetDevices", "cuGLInit", "cuGLMapBufferObject",
    "cuGLMapBufferObjectAsync", "cuGLMapBufferObjectAsync_v2", "cuGLMapBufferObject_v2",
    "cuGLRegisterBufferObject", "cuGLSetBufferObjectMapFlags", "cuGLUnmapBufferObject",
    "cuGLUnmapBufferObjectAsync", "cuGLUnregisterBufferObject",
))  # fmt: skip


def _reporting(symbol: str, reason: str) -> Callable[[], None]:
    """Return a function that prints why a form fails, once."""
    reports: list[str] = []

    def report() -> None:
        if not reports:
            reports.append(symbol)
            write_error(f"cudadrv: {symbol}: {reason}\n")

    return report


def _in_old_contexts(form: FunctionForm) -> Handler:
    """Return a handler that clears the results, as no context is one of CUDA 3.1."""
    results = [
        (at, put_size if word.endswith("size") else put_uint)
        for at, word in enumerate(form.parameters)
        if word.startswith(">")
    ]
    handle_at = _HANDLE_AT.get(form.symbol)
    report = _reporting(
        form.symbol,
        "a form of CUDA 3.1, with addresses of 32 bits: CUDA_ERROR_INVALID_CONTEXT, as on a GPU in "
        "any context of a later form",
    )

    def handler(api: Emulator, *arguments: int) -> int:
        if handle_at is not None and not arguments[handle_at]:
            return _INVALID_HANDLE
        for at, put in results:
            put(arguments[at], 0)
        report()
        return _INVALID_CONTEXT

    return handler


def _without_opengl(form: FunctionForm) -> Handler:
    """Return a handler that fails as on a GPU without a context of OpenGL (measured, H200)."""
    report = _reporting(form.symbol, "the emulator has no OpenGL")

    def handler(api: Emulator, *arguments: int) -> int:
        code, context = api.cuCtxGetCurrent()
        if code:
            return int(code)
        report()
        return _OPERATING_SYSTEM if int(context) else _INVALID_CONTEXT

    return handler


for _form in forms():
    if _form.symbol in _IN_OLD_CONTEXTS:
        OLD_FORMS(_form.symbol)(_in_old_contexts(_form))
    elif _form.symbol in _OF_OPENGL:
        OLD_FORMS(_form.symbol)(_without_opengl(_form))


@OLD_FORMS("cuDeviceTotalMem")
def total_memory(api: Emulator, result: int, device: int) -> int:
    """Return the bytes of a device, at most what 32 bits hold."""
    code, nbytes = call(api, "cuDeviceTotalMem", device)
    if not code:
        put_uint(result, min(nbytes, _MOST_BYTES))
    return int(code)


@OLD_FORMS("cuDevicePrimaryCtxSetFlags")
def set_primary_flags(api: Emulator, device: int, flags: int) -> int:
    """Set the flags of an inactive primary context."""
    code, _, is_active = call(api, "cuDevicePrimaryCtxGetState", device)
    if code or is_active:
        return int(code) or _ACTIVE
    return int(call(api, "cuDevicePrimaryCtxSetFlags", device, flags)[0])


@OLD_FORMS("cuStreamBeginCapture")
def begin_capture(api: Emulator, stream: int) -> int:
    """Record later work of a stream; CUDA 10.0 restricted no other call."""
    relaxed = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    return int(call(api, "cuStreamBeginCapture", stream, relaxed)[0])


@OLD_FORMS("cuStreamGetCaptureInfo")
def capture_status(api: Emulator, stream: int, status: int, identity: int) -> int:
    """Return whether a stream records, and the number of its capture."""
    return capture_info(api, stream, status, identity, 0, 0, 0)


@OLD_FORMS("cuGraphExecUpdate")
def update_executable(api: Emulator, executable: int, graph: int, node: int, result: int) -> int:
    """Update an executable from a graph; the emulator names no node that differs."""
    code = int(call(api, "cuGraphExecUpdate", executable, graph)[0])
    if code in (0, _UPDATE_FAILURE):
        put_size(node, 0)
        put_uint(result, update_result(api, executable, graph) if code else 0)
    return code


for _symbol, _function in (("cuLinkAddData", link_add_data), ("cuLinkAddFile", link_add_file)):
    OLD_FORMS(_symbol)(_function)


def _old_kernel(params: int) -> bytes:
    """Return the parameters with neither a kernel of a library nor a context."""
    return bytes_at(params, _KERNEL_BYTES)


_KERNEL: Final = NodeKind(CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL, _old_kernel)
for _symbol, _function in (
    ("cuGraphAddKernelNode", _KERNEL.add),
    ("cuGraphKernelNodeSetParams", _KERNEL.change),
    ("cuGraphExecKernelNodeSetParams", _KERNEL.change_step),
):
    OLD_FORMS(_symbol)(_function)


@OLD_FORMS("cuGraphicsResourceGetMappedPointer")
def mapped_pointer(api: Emulator, address: int, nbytes: int, resource: int) -> int:
    """Fail: no resource is registered."""
    return _INVALID_HANDLE


@OLD_FORMS("cuGraphicsResourceSetMapFlags")
@OLD_FORMS("cuGraphicsResourceSetMapFlags_v2")
def set_map_flags(api: Emulator, resource: int, flags: int) -> int:
    """Fail: no resource is registered."""
    return _INVALID_HANDLE
