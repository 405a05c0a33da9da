"""The driver's names and texts of results, by number; it imports no bindings."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ..errors import CudaError, results

RESULT_TEXTS: Final = MappingProxyType(
    {
        0: "no error",
        1: "invalid argument",
        2: "out of memory",
        3: "initialization error",
        4: "driver shutting down",
        46: "CUDA-capable device(s) is/are busy or unavailable",
        100: "no CUDA-capable device is detected",
        101: "invalid device ordinal",
        200: "device kernel image is invalid",
        201: "invalid device context",
        208: "resource already mapped",
        209: "no kernel image is available for execution on the device",
        214: "uncorrectable ECC error encountered",
        215: "limit is not supported on this architecture",
        216: "exclusive-thread device already in use by a different thread",
        217: "peer access is not supported between these two devices",
        218: "a PTX JIT compilation failed",
        220: "uncorrectable NVLink error detected during the execution",
        221: "PTX JIT compiler library not found",
        222: "the provided PTX was compiled with an unsupported toolchain.",
        223: "PTX JIT compilation was disabled",
        300: "device kernel image is invalid",
        301: "file not found",
        302: "shared object symbol not found",
        303: "shared object initialization failed",
        304: "OS call failed or operation not supported on this OS",
        400: "invalid resource handle",
        401: "the operation cannot be performed in the present state",
        500: "named symbol not found",
        600: "device not ready",
        700: "an illegal memory access was encountered",
        701: "too many resources requested for launch",
        702: "the launch timed out and was terminated",
        703: "launch uses incompatible texturing mode",
        704: "peer access is already enabled",
        705: "peer access has not been enabled",
        708: "cannot set while device is active in this process",
        709: "context is destroyed",
        710: "device-side assert triggered",
        711: "peer mapping resources exhausted",
        712: "part or all of the requested memory range is already mapped",
        713: "pointer does not correspond to a registered memory region",
        714: "hardware stack error",
        715: "an illegal instruction was encountered",
        716: "misaligned address",
        717: "operation not supported on global/shared address space",
        718: "invalid program counter",
        719: "unspecified launch failure",
        720: "too many blocks in cooperative launch",
        800: "operation not permitted",
        801: "operation not supported",
        802: "system not yet initialized",
        803: "system has unsupported display driver / cuda driver combination",
        900: "operation not permitted when stream is capturing",
        901: "operation failed due to a previous error during capture",
        902: "operation would result in a merge of separate capture sequences",
        903: "capture was not ended in the same stream as it began",
        904: "capturing stream has unjoined work",
        905: "dependency created on uncaptured work in another stream",
        906: "operation would make the legacy stream depend on a capturing blocking stream",
        907: "operation not permitted on an event last recorded in a capturing stream",
        908: "attempt to terminate a thread-local capture sequence from another thread",
        909: "wait operation timed out",
        912: "a kernel launch error has occurred due to cluster misconfiguration",
        999: "unknown error",
    }
)


def result_names() -> dict[int, str]:
    """Return the name of each result."""
    classes = [each for each in vars(results).values() if isinstance(each, type)]
    names = {
        each.result: (each.__doc__ or "").rstrip(".")
        for each in classes
        if issubclass(each, CudaError) and each is not CudaError
    }
    return {0: "CUDA_SUCCESS", **{code: name for code, name in names.items() if name}}
