"""The errors of CUresults, and the errors that cudadrv raises by itself."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from ptx.base_errors import CudadrvError as CudadrvError, shown

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Found

_LINE = 100  # a longer first line is two
_BROKEN = "every later call of this process fails too: restart the process"
_BROKEN_EMULATED = (
    "every later call on the device fails too, until the process or its emulator.session() ends"
)


class CudaError(CudadrvError):
    """A CUDA driver call returned something other than success.

    There is one subclass a CUresult. An unknown result raises a plain `CudaError`.

    Attributes:
        result: the class's CUresult (0 on `CudaError` itself).
        code: the CUresult that the driver returned.
        call: the driver function, such as "cuMemAllocAsync"; "" where cudadrv found the fault.
        doing: the operation: label, kernel, argument, bytes.
        text: the driver's description of the result.
        reason: what the driver's log says about this call; "" before CUDA 12.9, on the emulator,
            and where the driver logged nothing.
        explained: True if the text contains the remedy, as the emulator's texts do; then the
            general remedy of the CUresult is left out.
        fault: on the emulator the typed error below it, such as a kernel's
            `ptx.emulate.EmulationFault`; None otherwise, and after pickling. It is not the error's
            cause, as a traceback would print its text twice.
    """

    result: ClassVar[int] = 0
    remedy: ClassVar[str] = ""
    sticky: ClassVar[bool] = False
    _classes: ClassVar[dict[int, type[CudaError]]] = {}

    def __init__(
        self,
        doing: str,
        *,
        call: str = "",
        code: int | None = None,
        text: str = "",
        explained: bool = False,
        reason: str = "",
    ) -> None:
        super().__init__(doing)
        self.code: int = self.result if code is None else code
        self.call = call
        self.doing = doing
        self.text = text
        self.reason = reason
        self.explained = explained
        self.fault: Exception | None = None

    def _state(self) -> dict[str, object]:
        return {**self.__dict__, "fault": None}

    def __init_subclass__(
        cls, *, result: int | None = None, remedy: str = "", sticky: bool = False
    ) -> None:
        super().__init_subclass__()
        if result is None:
            return  # a user's class, which is no result's own
        if cls._classes.setdefault(result, cls) is not cls:
            raise TypeError(f"two classes for CUresult {result}")
        cls.result, cls.remedy, cls.sticky = result, remedy, sticky

    @classmethod
    def for_code(cls, code: int) -> type[CudaError]:
        """Return the subclass of a CUresult; `CudaError` for an unknown one."""
        import_module(f"{__package__}.results")
        return cls._classes.get(code, CudaError)

    @property
    def name(self) -> str:
        """The CUresult's name in the CUDA manual, such as "CUDA_ERROR_OUT_OF_MEMORY"."""
        doc = type(self).__doc__
        return doc.rstrip(".") if self.result and doc else "CUresult"

    @property
    def _advice(self) -> str:
        """The remedy of this error."""
        return self.remedy

    def __str__(self) -> str:
        result = f"{self.name} ({self.code})"
        if self.call:
            result = f"{self.call} returned {result}"
        head = f"{self.doing}: {result}"
        parts = [head] if len(head) <= _LINE else [f"{self.doing}:", result]
        if self.text:
            parts.append(self.text)
        if self.reason:
            parts.append(f"driver: {self.reason}")
        if self._advice and not self.explained:
            parts.append(self._advice)
        if self.sticky:
            parts.append(_BROKEN_EMULATED if self.explained else _BROKEN)
        return shown("\n  ".join(parts))


class DriverNotFoundError(CudadrvError):
    """No CUDA driver library could be loaded."""


class DriverLoadError(CudadrvError):
    """The CUDA driver library was found, but the system cannot load it.

    Attributes:
        reason: the message of the system's loader, which begins with the file.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class DriverAnswerError(CudadrvError):
    """The CUDA driver library returned a value that no working driver returns."""


class DriverSymbolMissingError(CudadrvError):
    """The installed driver lacks a function that the call needs."""


class UnsupportedError(DriverSymbolMissingError):
    """The installed driver or cuda-bindings is older than an operation; the message names both."""


class NvmlNotFoundError(CudadrvError):
    """The NVIDIA Management Library (NVML), or its package nvidia-ml-py, is not installed.

    Attributes:
        command: the command that installs the package; "" where the driver is missing.
    """

    def __init__(self, message: str, *, command: str) -> None:
        super().__init__(message)
        self.command = command


class NvmlError(CudadrvError):
    """A call of NVML failed.

    Attributes:
        call: its function.
        code: its nvmlReturn_t.
    """

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call} failed: {text} ({code})")
        self.call = call
        self.code = code


class DriverSelectionError(CudadrvError):
    """The driver was chosen with a bad value, or after it was already in use."""


class ForkedProcessError(CudadrvError):
    """CUDA was initialised before a fork, so the child cannot use it."""


class ClosedError(CudadrvError):
    """A closed object was used."""


class ResetRejectedError(CudadrvError):
    """A context was not reset, as an object of it that cannot be closed is in use."""


class CheckpointRejectedError(CudadrvError):
    """A process was not locked for a checkpoint, which would lose objects that are in use."""


class WrongDeviceError(CudadrvError):
    """An object of one device or context was used where another's belongs."""


class ExecutorClosedError(ClosedError, RuntimeError):
    """A `GpuExecutor` got a call after its end; a `RuntimeError`, as in `concurrent.futures`."""


class WorkerLostError(CudadrvError):
    """A worker died, hung or lost its context, and so did the workers of each retry.

    If the context was lost, the error that broke it is the cause.

    Attributes:
        worker: the name of the last one.
        attempts: the number of starts of the work.
    """

    def __init__(self, message: str, *, worker: str, attempts: int) -> None:
        super().__init__(message)
        self.worker = worker
        self.attempts = attempts


class NoWorkerError(WorkerLostError):
    """No worker of a cluster accepted a call for long: all were paused, closing or lost.

    Attributes:
        states: the scheduler's state of each worker, by address.
    """

    def __init__(
        self, message: str, *, states: Mapping[str, str], worker: str = "", attempts: int = 0
    ) -> None:
        super().__init__(message, worker=worker, attempts=attempts)
        self.states: dict[str, str] = dict(states)


class RemoteError(CudadrvError):
    """An error of a worker that cannot be pickled, as text.

    Attributes:
        type_name: the name of its class.
    """

    def __init__(self, message: str, *, type_name: str) -> None:
        super().__init__(message)
        self.type_name = type_name


class TensorMapError(CudadrvError):
    """An impossible tensor map: for this array, with this box, or on this device."""


class TextureError(CudadrvError):
    """An impossible CUDA array, texture or surface, or one that CUDA would read differently."""


class ArgumentError(CudadrvError):
    """A kernel or a function got a wrong argument: count, type, range or memory space.

    Attributes:
        kernel: the kernel's name; "" for other functions.
        position: the argument's position, counted from 0, or None for a wrong count.
    """

    def __init__(self, message: str, *, kernel: str = "", position: int | None = None) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.position = position


class ArgumentTypeError(ArgumentError, TypeError):
    """A function got a value of a wrong type."""


class ArgumentValueError(ArgumentError, ValueError):
    """A function got a value of the right type that is not allowed."""


class ArgumentIndexError(ArgumentError, IndexError):
    """An array has no element or axis of an index."""


class LaunchConfigError(CudadrvError):
    """A launch configuration that the device or the kernel cannot run."""


class KernelNotFoundError(CudadrvError):
    """A module has no kernel or global of a name.

    Attributes:
        available: the names that the module has.
    """

    def __init__(self, message: str, *, name: str, available: tuple[str, ...]) -> None:
        super().__init__(message)
        self.name = name
        self.available = available


class CheckError(CudadrvError):
    """A check of the emulator found faults in kernels that ran to their end.

    Attributes:
        findings: the findings with their code locations; a race names the missing order.
    """

    def __init__(self, message: str, findings: tuple[Found, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class CopyError(CudadrvError):
    """The two sides of a copy do not match in shape, dtype, size or layout."""


class ExportError(CudadrvError, BufferError):
    """Device memory cannot be exported as a consumer of DLPack requests it."""


class DTypeError(CudadrvError, TypeError):
    """A dtype that NumPy does not have, or that device memory cannot hold, such as object."""
