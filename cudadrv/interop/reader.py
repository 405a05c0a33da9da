"""Readers: how a launch finds the memory of another library's object, by that library's own means.

The shared protocols build a dictionary or a capsule at each use. A library's own accessors cost a
tenth of that. Each library has a file here, which is imported when an object of it is first seen;
so nothing is loaded on account of a library that a program does not use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from .. import border

_T = TypeVar("_T")
_CLASS: Final = type

# What a reader's functions take is of the type that it is registered for, which only that says.
_Value: TypeAlias = Any


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """How the memory behind objects of one type is found; see `register`.

    A launch calls `address` and `device` for each such argument, `dtype` and `is_lazy` where they
    matter, and `stream` once: they should be quick, best of all functions of C. What they raise
    becomes an `ArgumentError` that names the kernel and the argument.

    Attributes:
        address: the address of the first element; 0 where there are no elements; None where the
            shared protocols are to be asked after all.
        device: the ordinal of the CUDA device where the memory lies; negative for memory elsewhere.
        stream: the number of the stream that comes after all that the library has queued so far for
            the memory of a device, given the ordinal: 0 is the legacy default stream. None where
            the memory may be used as it is.
        dtype: the type of the elements: NumPy's, or what has NumPy's name for it at its end, such
            as ``torch.float32``. None where the elements have no type.
        is_lazy: whether the bytes are not what they stand for. None where they always are.
        examine: raises a `BufferError` that says what is wrong with an object, and tells whether
            the functions above are enough for objects of the same type and dtype. It is called
            before them where an object is looked at for the first time, or was refused. None where
            there is nothing to say.
        is_read_only: whether no kernel may write the memory.
    """

    address: Callable[[_Value], int | None]
    device: Callable[[_Value], int]
    stream: Callable[[int], int] | None = None
    dtype: Callable[[_Value], object] | None = None
    is_lazy: Callable[[_Value], bool] | None = None
    examine: Callable[[_Value], bool] | None = None
    is_read_only: bool = False


class Foreign(NamedTuple):
    """A type of another library, with its reader, and the dtype that its objects must have."""

    type: type
    reader: Reader
    dtype: object = None


# The file of each library here, by the package that its types are of.
_LIBRARIES: Final = {
    "torch.": "torch_tensors",
    "cupy.": "cupy_arrays",
    "numba.cuda.": "numba_arrays",
    "jaxlib.": "jax_arrays",
    "cuda.core.": "core_buffers",
    "warp.": "warp_arrays",
}
_loaded: Final[set[str]] = set()
_registered: Final[dict[type, Reader]] = {}
# What was found for a type. Bounded, as it keeps types alive that a program may make at run time.
_found: Final[dict[type, Foreign | None]] = {}
_MOST_FOUND: Final = 256


def register(type: type[_T], reader: Reader) -> None:
    """Let launches find the memory of objects of a type by a reader.

    Objects of the very type are then nearly as quick an argument as arrays of this library. Those
    of types that inherit from it are read likewise, but more slowly. A later reader for the same
    type takes the place of the former one, those of this library among them; a launcher that has
    seen such an object already keeps the reader that it found.

    Args:
        type: the class of the objects.
        reader: how their memory is found.

    Raises:
        TypeError: one of the two is something else.
    """
    border.instance("interop.register: type", type, _CLASS)
    border.instance("interop.register: reader", reader, Reader)
    _registered[type] = reader
    _found.clear()


def found_for(kind: type) -> Foreign | None:
    """The nearest class of a type's that has a reader; its library's file is loaded for it."""
    try:
        return _found[kind]
    except KeyError:
        pass
    for base in kind.__mro__:
        _load_library_of(base)
    known = (Foreign(base, _registered[base]) for base in kind.__mro__ if base in _registered)
    found = next(known, None)
    if len(_found) >= _MOST_FOUND:
        _found.clear()
    _found[kind] = found
    return found


def _load_library_of(kind: type) -> None:
    """Register the readers of the library that a type is of, if it is known here."""
    where = f"{kind.__module__}."
    for package, file in _LIBRARIES.items():
        if where.startswith(package) and file not in _loaded:
            # Dynamic, so that no library's file is loaded without a use.
            library = importlib.import_module(f"{__package__}.{file}")
            readers: Iterable[tuple[type, Reader]] = library.readers()
            for its_type, reader in readers:
                _registered.setdefault(its_type, reader)
            _loaded.add(file)
