"""The errors of the runtime layer, after gam's `GpuError`: one class a variant."""

from __future__ import annotations

from typing import Any, Self, TypeAlias, TypeVar

from ptx.base_errors import shown

from .base import CudadrvError

_GpuErrorT = TypeVar("_GpuErrorT", bound="GpuError")
Classes: TypeAlias = tuple[type[CudadrvError], ...]


class GpuError(CudadrvError):
    """Root of the runtime layer's errors.

    Attributes:
        reason: the fault, in words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    @classmethod
    def of(cls, error: Exception, reason: str) -> Self:
        """Return this variant for an error of a lower layer, of whose class it is, too.

        So ``except ptx.CompileError`` or ``except OutOfMemoryError`` catches it, and it has that
        error's attributes, but for `reason`. An error that is no `CudadrvError` has no part in it.
        """
        if not isinstance(error, CudadrvError) or isinstance(error, BaseExceptionGroup):
            return cls(reason)
        others = _PARTS.get(type(error), (type(error),))
        return cls._made(others, (reason,), {**error._state(), "reason": reason})

    @classmethod
    def _made(cls, others: Classes, args: tuple[object, ...], state: dict[str, object]) -> Self:
        of_all = _of_all(cls, others)
        made = of_all.__new__(of_all, *args)  # not by constructors, whose arguments differ
        made.__dict__.update(state)
        return made


class DriverLibraryUnavailable(GpuError):
    """There is no CUDA runtime on this machine."""


class DriverLibraryLoadFailed(GpuError):
    """The driver library exists but did not load."""


class RuntimeDependencyUnavailable(GpuError):
    """A library that the work needs (NVRTC, cuBLAS, an extra) is missing."""


class DriverSymbolMissing(GpuError):
    """The driver lacks a function that the work needs."""


class DriverCallFailed(GpuError):
    """A driver call failed; its `CudaError` is the cause."""


class CalibrationFailed(GpuError):
    """Timings or checksums of the calibration were invalid."""


class NoDeviceKernel(GpuError):
    """No device kernel exists for the request."""


class RequiredDeviceUnavailable(GpuError):
    """The policy requires a device and there is none."""


# Classes that are made for a variant and others, once for each; Any, as the value is of the key's
# own variant.
_CLASSES: dict[tuple[type[GpuError], Classes], Any] = {}
_PARTS: dict[type[CudadrvError], Classes] = {}
"""The classes that each of them was made of, which other processes find by their names."""


def _of_all(variant: type[_GpuErrorT], others: Classes) -> type[_GpuErrorT]:
    """Return the class of a variant's errors that are of other classes, too."""
    known: type[_GpuErrorT] | None = _CLASSES.get((variant, others))
    if known is not None:
        return known

    def reduced(error: _GpuErrorT) -> tuple[object, ...]:
        return variant._made, (others, error.args, error._state())

    members = {
        "__doc__": variant.__doc__,
        "__module__": variant.__module__,
        "__reduce__": reduced,
        "__str__": lambda error: shown(error.reason),
    }
    classes: list[type[CudadrvError]] = list(dict.fromkeys((variant, *others)))
    bases = [c for c in classes if not any(issubclass(o, c) and o is not c for o in classes)]
    if bases == [variant]:
        return variant
    made: type[_GpuErrorT] = type(variant.__name__, tuple(bases), members)
    _PARTS[made] = tuple(bases)
    return _CLASSES.setdefault((variant, others), made)  # type: ignore[no-any-return]  # as above
