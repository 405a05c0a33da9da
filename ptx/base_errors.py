"""The root of the errors of both packages, and the errors about arguments of `ptx`."""

from __future__ import annotations

# Tracebacks show the name that users import.
_SHOWN_MODULES = {"cudadrv.errors.": "cudadrv.errors", __name__: "ptx.errors"}


class CudadrvError(Exception):
    """Root of every error that cudadrv and `ptx` raise by themselves; all can be pickled.

    The text has its control characters escaped: it may have names and source of other people, and
    a traceback shows it on a terminal.
    """

    __module__ = "cudadrv.errors"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for prefix, shown in _SHOWN_MODULES.items():
            if cls.__module__.startswith(prefix):
                cls.__module__ = shown

    def __str__(self) -> str:
        return shown(super().__str__())

    def __reduce__(self) -> tuple[object, ...]:
        # By its attributes, whatever its constructor's arguments are: errors cross process pools.
        return _remade, (type(self), self.args, self._state())

    def _state(self) -> dict[str, object]:
        """Return the attributes that another process receives."""
        return self.__dict__


def shown(text: str) -> str:
    """Return the text of an error or a warning as a terminal may show it."""
    from ptx.visible_text import visible  # with re, which no import of `ptx` needs

    return visible(text)


def _remade(
    cls: type[CudadrvError], args: tuple[object, ...], state: dict[str, object]
) -> CudadrvError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class PtxError(CudadrvError):
    """Root of the errors of package `ptx`."""


class PtxArgumentError(PtxError):
    """An argument is invalid."""


class PtxArgumentTypeError(PtxArgumentError, TypeError):
    """A function was given a value of a type that it does not take."""


class PtxArgumentValueError(PtxArgumentError, ValueError):
    """A function was given a value of the right type that it cannot take."""


class FunctionNotFoundError(PtxArgumentError, KeyError):
    """A PTX module has no function of the given name, or only declares it."""

    def __str__(self) -> str:
        return shown(Exception.__str__(self))  # a KeyError shows its text in quotes
