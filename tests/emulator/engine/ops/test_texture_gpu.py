"""What an H100 gave for some six hundred texture and surface instructions, through the emulator.

`data/textures.npz` holds images, how they are read, rows of operands, and the GPU's results (NVIDIA
H100 80GB HBM3, CUDA 13.0 driver; objects made by cuTexObjectCreate and cuSurfObjectCreate,
instructions by inline assembly). Everything is exact but what has a bound here: the level that
gradients choose, sRGB texels under a linear filter, and three-dimensional mipmaps.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulator.engine.ops.fetches import Words, accessed, fetched
from tests.rows import all_rows
from tests.short_cases import few

_FILE = Path(__file__).parents[1] / "data" / "textures.npz"
_GROUPS = (
    "bordfmt", "cube", "format", "gather", "gather2", "grad", "int", "level", "lin1", "lin2",
    "lin3", "linfmt", "linmem", "linwrap", "offset", "pitch", "point", "query", "quirk", "sparse",
    "surf", "trilin", "wide",
)  # fmt: skip


class Recording:
    """The file, read once."""

    def __init__(self) -> None:
        with np.load(_FILE) as file:
            self.arrays = {name: file[name] for name in file.files}
        index: dict[str, Any] = json.loads(self.arrays.pop("index").tobytes())
        self.images: dict[str, Any] = index["images"]
        self.cases: list[dict[str, Any]] = index["cases"]
        self.rows: Words = np.ascontiguousarray(self.arrays.pop("rows").T)
        self.results: Words = np.ascontiguousarray(self.arrays.pop("results").T)
        ends = np.cumsum([case["rows"] for case in self.cases])
        self.places = [
            slice(end - case["rows"], end) for end, case in zip(ends, self.cases, strict=True)
        ]

    def levels(self, name: str) -> list[NDArray[Any]]:
        """The levels of an image: stored, counted up or filled with one number."""
        found = []
        for number, level in enumerate(self.images[name]["levels"]):
            dtype, shape = np.dtype(level["dtype"]), level["shape"]
            if "fill" in level:
                array = np.full(shape, level["fill"], dtype)
            elif "count" in level:
                array = (np.arange(np.prod(shape)) + level["count"]).astype(dtype).reshape(shape)
            else:
                array = self.arrays[f"{name}.{number}"].view(dtype).reshape(shape)
            found.append(np.ascontiguousarray(array))
        return found


@lru_cache(maxsize=1)
def _recording() -> Recording:
    return Recording()


def _wrong(found: Words, expected: Words, bound: float) -> NDArray[np.bool_]:
    """(n,) where results differ: in any bit but those of a NaN or a zero's sign, or by a bound."""
    a, b = found.view(np.float32), expected.view(np.float32)
    with np.errstate(all="ignore"):
        same = (found == expected) | (np.isnan(a) & np.isnan(b)) | ((a == 0) & (b == 0))
        if bound:
            same |= np.abs(a.astype(np.float64) - b) <= bound
    wrong: NDArray[np.bool_] = ~same.all(axis=1)
    return wrong


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("group", few(_GROUPS, 6))
def test_results_are_those_of_the_gpu(group: str) -> None:
    recording = _recording()
    for number, case in enumerate(recording.cases):
        if case["group"] != group:
            continue
        place = recording.places[number]
        rows, expected = recording.rows[place], recording.results[place]
        kind, levels = recording.images[case["image"]]["kind"], recording.levels(case["image"])
        if group == "surf":
            found, after = accessed(case["form"], kind, levels[0], rows)
            if case.get("after"):
                bits = recording.arrays[f"after.{number}"]
                assert np.array_equal(after.reshape(-1).view(np.uint8), bits), case
        else:
            found = fetched(case["form"], kind, levels, case.get("how", {}), rows)
        wrong = _wrong(found, expected, case.get("bound", 0.0)).nonzero()[0]
        assert not len(wrong), (case, rows[wrong[:2]], found[wrong[:2]], expected[wrong[:2]])


def test_every_case_of_the_recording_is_in_a_group_that_is_tested() -> None:
    assert {case["group"] for case in _recording().cases} == set(_GROUPS)
