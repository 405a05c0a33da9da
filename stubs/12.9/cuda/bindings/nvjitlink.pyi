# cuda.bindings.nvjitlink of cuda-bindings 12.9.10, made by tools/generate_stubs.

from collections.abc import Sequence
from enum import IntEnum

from typing_extensions import Buffer

class Result(IntEnum):
    SUCCESS = 0
    ERROR_UNRECOGNIZED_OPTION = 1
    ERROR_MISSING_ARCH = 2
    ERROR_INVALID_INPUT = 3
    ERROR_PTX_COMPILE = 4
    ERROR_NVVM_COMPILE = 5
    ERROR_INTERNAL = 6
    ERROR_THREADPOOL = 7
    ERROR_UNRECOGNIZED_INPUT = 8
    ERROR_FINALIZE = 9
    ERROR_NULL_INPUT = 10
    ERROR_INCOMPATIBLE_OPTIONS = 11
    ERROR_INCORRECT_INPUT_TYPE = 12
    ERROR_ARCH_MISMATCH = 13
    ERROR_OUTDATED_LIBRARY = 14
    ERROR_MISSING_FATBIN = 15
    ERROR_UNRECOGNIZED_ARCH = 16
    ERROR_UNSUPPORTED_ARCH = 17
    ERROR_LTO_NOT_ENABLED = 18

class InputType(IntEnum):
    NONE = 0
    CUBIN = 1
    PTX = 2
    LTOIR = 3
    FATBIN = 4
    OBJECT = 5
    LIBRARY = 6
    INDEX = 7
    ANY = 10

class nvJitLinkError(Exception):
    status: int
    def __init__(self, status: int) -> None: ...

def destroy(handle: int) -> None: ...
def create(num_options: int, options: int | Sequence[int] | Sequence[str]) -> int: ...
def add_data(handle: int, input_type: int, data: Buffer | int, size: int, name: str) -> None: ...
def add_file(handle: int, input_type: int, file_name: str) -> None: ...
def complete(handle: int) -> None: ...
def get_linked_cubin_size(handle: int) -> int: ...
def get_linked_cubin(handle: int, cubin: Buffer | int) -> None: ...
def get_linked_ptx_size(handle: int) -> int: ...
def get_linked_ptx(handle: int, ptx: Buffer | int) -> None: ...
def get_error_log_size(handle: int) -> int: ...
def get_error_log(handle: int, log: Buffer | int) -> None: ...
def get_info_log_size(handle: int) -> int: ...
def get_info_log(handle: int, log: Buffer | int) -> None: ...
def version() -> tuple[int, int]: ...
def get_linked_ltoir_size(handle: int) -> int: ...
def get_linked_ltoir(handle: int, ltoir: Buffer | int) -> None: ...
