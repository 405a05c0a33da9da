"""What is no attribute of a class, and yet what users do: launches, numbers, copies, pickles."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np

from cudadrv import DeviceArray, DeviceBuffer, Kernel, LaunchConfig, Stream


def launch(kernel: Kernel, stream: Stream, config: LaunchConfig, *args: object) -> None:
    """A launch by the kernel, twice: the second makes code."""
    for _ in range(2):
        kernel.launch(stream, config, *args)


def launch_bound(
    kernel: Kernel, stream: Stream, config: LaunchConfig, ordered: bool, *args: object
) -> None:
    """A launch by a launcher."""
    kernel.bind(stream, config, ordered=ordered)(*args)


def launch_prepared(kernel: Kernel, stream: Stream, config: LaunchConfig, *args: object) -> None:
    """A launch whose arguments are packed before."""
    kernel.bind(stream, config).prepare(*args)()


def number_of(array: DeviceArray[Any]) -> object:
    """An array where a number belongs."""
    return float(array)


def address_of(buffer: DeviceBuffer) -> object:
    """A buffer where a whole number belongs: it is one for other libraries."""
    return operator.index(buffer)


def whole_number_of(array: DeviceArray[Any]) -> object:
    """An array where a whole number belongs."""
    return int(array)


def truth_of(array: DeviceArray[Any]) -> object:
    """An array where a truth value belongs."""
    return bool(array)


def rows_of(array: DeviceArray[Any]) -> object:
    """An array as its rows."""
    return [len(array), *array]


def words_of(stream: Stream, other: Stream | str | int | None) -> object:
    """A stream in words, as a key, and beside anything."""
    # NumPy itself refuses to compare arrays of structures with anything.
    given: object = other
    is_same = None if isinstance(given, np.ndarray) else stream == given
    return repr(stream), str(stream), hash(stream), is_same


def twin_of(kernel: Kernel, deep: bool) -> object:
    """A copy of what stands for something of the driver."""
    return pickle.dumps(kernel) if deep else copy.copy(kernel)


OPERATIONS = (
    address_of, launch, launch_bound, launch_prepared, number_of, rows_of, truth_of, twin_of,
    whole_number_of, words_of,
)  # fmt: skip
