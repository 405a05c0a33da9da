"""The root of the errors of package `ptx`, and the errors about arguments."""

from __future__ import annotations


class PtxError(Exception):
    """Root of the errors of package `ptx`; it can be pickled."""

    # Tracebacks show the name that users import.
    __module__ = "ptx.errors"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__ == __name__:
            cls.__module__ = "ptx.errors"

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle by content, independently of the constructor: errors cross process pools.
        return _remade, (type(self), self.args, self.__dict__)


def _remade(cls: type[PtxError], args: tuple[object, ...], state: dict[str, object]) -> PtxError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class PtxArgumentError(PtxError):
    """An argument is invalid."""


class PtxArgumentTypeError(PtxArgumentError, TypeError):
    """A function was given a value of a type that it does not take."""


class PtxArgumentValueError(PtxArgumentError, ValueError):
    """A function was given a value of the right type that it cannot take."""


class FunctionNotFoundError(PtxArgumentError, KeyError):
    """A PTX module has no function of the given name, or only declares it."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # a KeyError shows its text in quotes
