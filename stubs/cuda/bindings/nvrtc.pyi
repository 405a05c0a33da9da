# The part of cuda.bindings.nvrtc (12.9 to 13.x) that package `ptx` calls.

from enum import IntEnum

from typing_extensions import disjoint_base

class nvrtcResult(IntEnum):
    NVRTC_SUCCESS = 0
    NVRTC_ERROR_OUT_OF_MEMORY = 1
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2
    NVRTC_ERROR_INVALID_INPUT = 3
    NVRTC_ERROR_INVALID_PROGRAM = 4
    NVRTC_ERROR_INVALID_OPTION = 5
    NVRTC_ERROR_COMPILATION = 6
    NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7
    NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8
    NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9
    NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10
    NVRTC_ERROR_INTERNAL_ERROR = 11
    NVRTC_ERROR_TIME_FILE_WRITE_FAILED = 12
    NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED = 13
    NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED = 14
    NVRTC_ERROR_PCH_CREATE = 15
    NVRTC_ERROR_CANCELLED = 16
    NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED = 17
    NVRTC_ERROR_BUSY = 18

@disjoint_base
class nvrtcProgram:
    def __init__(self, *args: object, **kwargs: object) -> None: ...

NVRTC_INSTALL_HEADERS_SKIP_IF_EXISTS: int

def nvrtcGetErrorString(result: nvrtcResult) -> tuple[nvrtcResult, bytes]: ...
def nvrtcVersion() -> tuple[nvrtcResult, int, int]: ...
def nvrtcGetSupportedArchs() -> tuple[nvrtcResult, list[int]]: ...
def nvrtcCreateProgram(
    src: bytes,
    name: bytes,
    numHeaders: int,
    headers: tuple[bytes, ...] | list[bytes] | None,
    includeNames: tuple[bytes, ...] | list[bytes] | None,
) -> tuple[nvrtcResult, nvrtcProgram]: ...
def nvrtcDestroyProgram(prog: nvrtcProgram) -> tuple[nvrtcResult]: ...
def nvrtcCompileProgram(
    prog: nvrtcProgram, numOptions: int, options: tuple[bytes, ...] | list[bytes] | None
) -> tuple[nvrtcResult]: ...
def nvrtcAddNameExpression(prog: nvrtcProgram, name_expression: bytes) -> tuple[nvrtcResult]: ...
def nvrtcGetLoweredName(
    prog: nvrtcProgram, name_expression: bytes
) -> tuple[nvrtcResult, bytes | None]: ...
def nvrtcGetProgramLogSize(prog: nvrtcProgram) -> tuple[nvrtcResult, int]: ...
def nvrtcGetProgramLog(prog: nvrtcProgram, log: bytes | bytearray) -> tuple[nvrtcResult]: ...
def nvrtcGetPTXSize(prog: nvrtcProgram) -> tuple[nvrtcResult, int]: ...
def nvrtcGetPTX(prog: nvrtcProgram, ptx: bytes | bytearray) -> tuple[nvrtcResult]: ...
def nvrtcGetCUBINSize(prog: nvrtcProgram) -> tuple[nvrtcResult, int]: ...
def nvrtcGetCUBIN(prog: nvrtcProgram, cubin: bytes | bytearray) -> tuple[nvrtcResult]: ...
def nvrtcGetLTOIRSize(prog: nvrtcProgram) -> tuple[nvrtcResult, int]: ...
def nvrtcGetLTOIR(prog: nvrtcProgram, LTOIR: bytes | bytearray) -> tuple[nvrtcResult]: ...
