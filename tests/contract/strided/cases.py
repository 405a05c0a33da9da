"""Random arrays, and random views of them, for hypothesis."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

AnyArray = npt.NDArray[Any]
Step = tuple[str, Any]
"""What is done to an array: its name, and what it takes."""

PAIR: Final = np.dtype([("a", "u1"), ("b", "<i4", (2,)), ("c", "<f8")])
DTYPES: Final = ("u1", "<i2", "<f4", "<f8", "<c16", "S3", PAIR)


@st.composite
def arrays(draw: st.DrawFn, dtypes: tuple[Any, ...] = DTYPES) -> AnyArray:
    """An array of 0 to 4 axes, with bytes that are all different as far as they go."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    count = int(np.prod(shape)) * dtype.itemsize
    data = (np.arange(count) * 7 + draw(st.integers(0, 255))).astype(np.uint8)
    if dtype.kind in "fc":  # no NaN, which equals nothing
        data = np.arange(count // dtype.itemsize).astype(dtype).view(np.uint8)
    found: AnyArray = data.view(dtype).reshape(shape)
    return found


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index of whole numbers, slices, new axes and an ellipsis."""
    found: list[Any] = []
    axes = draw(st.integers(0, len(shape)))
    for extent in shape[:axes]:
        ends = st.none() | st.integers(-extent - 1, extent + 1)
        pieces = st.builds(slice, ends, ends, st.sampled_from((None, 1, 2, 3, -1, -2)))
        found.append(draw(pieces | st.integers(-extent, extent - 1) if extent else pieces))
        if draw(st.integers(0, 9)) == 0:
            found.append(None)
    if draw(st.integers(0, 4)) == 0:
        found.append(Ellipsis)
    return tuple(found)


@st.composite
def steps(draw: st.DrawFn, array: AnyArray) -> list[Step]:
    """Up to three views, each of the one before."""
    taken: list[Step] = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(("index", "index", "transpose", "T", "field")))
        if kind == "index":
            step: Step = kind, draw(keys(array.shape))
        elif kind == "transpose":
            step = kind, tuple(draw(st.permutations(range(array.ndim))))
        elif kind == "field" and array.dtype.names:
            step = "index", draw(st.sampled_from(array.dtype.names))
        else:
            step = "T", ()
        taken.append(step)
        array = np.asarray(viewed(array, [step]))
    return taken


# An array of the host or of a device: both have these.
def viewed(array: Any, taken: list[Step]) -> Any:
    """What the steps make of an array."""
    for kind, given in taken:
        if kind == "index":
            # Without an ellipsis NumPy would give a scalar where no axis is left.
            is_open = isinstance(given, tuple) and Ellipsis not in given
            array = array[(*given, ...) if is_open else given]
        elif kind == "transpose":
            array = array.transpose(*given)
        else:
            array = array.T
    return array
