"""What a GPU gave for a source: PTX and the bits of every result, in a small file.

A file is JSON in xz. Results of exact cases that are large are kept as digests of their parts, with
the values of some lanes; approximate ones are kept whole.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.emulator.differential.case import Case, Source

Bits = NDArray[Any]
DATA = Path(__file__).with_name("data")
_WHOLE_BYTES = 1024
_PART = 256
_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Result:
    """One array.

    Attributes:
        dtype: "u1" to "u8": the bits.
        count: of all elements.
        part: elements of each part that has a digest; 0 where everything is kept.
        bits: base64 of everything, or of the first lanes of each part.
        digests: base64 of 8 bytes a part.
    """

    dtype: str
    count: int
    part: int
    bits: str
    digests: str = ""

    @classmethod
    def of(cls, values: Bits, rows: int, whole: bool) -> Result:
        """Keep everything, or digests of `rows` parts (of 256 elements where there are no rows)."""
        dtype = values.dtype.str[1:]
        if whole or values.nbytes <= _WHOLE_BYTES:
            return cls(dtype, len(values), 0, _encoded(values))
        part = len(values) // rows if rows > 1 else _PART
        sample = _encoded(_sample(values, part))
        return cls(dtype, len(values), part, sample, _digests(values, part))

    def values(self) -> Bits:
        """What is kept of the elements."""
        return np.frombuffer(base64.b64decode(self.bits), "<" + self.dtype)

    def wrong_parts(self, got: Bits) -> list[int]:
        """The numbers of the parts whose digest is another one."""
        want = np.frombuffer(base64.b64decode(self.digests), "<u8")
        have = np.frombuffer(base64.b64decode(_digests(got, self.part)), "<u8")
        found: list[int] = np.flatnonzero(want != have).tolist()
        return found

    def sample_of(self, got: Bits) -> Bits:
        """The elements of other bits that `values` keeps."""
        return _sample(got, self.part) if self.part else got


@dataclass(frozen=True, slots=True)
class Recording:
    """A source's file.

    Attributes:
        source: its digest when it was recorded.
        gpu, driver, nvrtc: what it was recorded with.
        target: of the cubin that ran.
        ptx: of the same compilation.
        results: by case: an entry for each array that the kernel wrote.
        seeds: by case.
        inputs: by case: a digest of what the seed gave.
    """

    source: str
    gpu: str
    driver: str
    nvrtc: str
    target: str
    ptx: str
    results: dict[str, list[Result]]
    seeds: dict[str, int]
    inputs: dict[str, str]

    def save(self, path: Path) -> None:
        text = json.dumps(asdict(self), separators=(",", ":"))
        path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))

    @classmethod
    def load(cls, path: Path) -> Recording:
        fields = json.loads(lzma.decompress(path.read_bytes()))
        results = fields.pop("results")
        return cls(
            results={name: [Result(**each) for each in kept] for name, kept in results.items()},
            **fields,
        )


def path_of(source: Source) -> Path:
    """Where a source's recording lies."""
    return DATA / f"{source.name}.json.xz"


def results_of(case: Case, found: list[Bits]) -> list[Result]:
    """What is kept of a case's arrays."""
    return [Result.of(bits, len(case.rows), case.bound is not None) for bits in found]


def _encoded(values: Bits) -> str:
    return base64.b64encode(values.astype(f"<{values.dtype.str[1:]}").tobytes()).decode()


def _parts(values: Bits, part: int) -> list[Bits]:
    return [values[at : at + part] for at in range(0, len(values), part)]


def _sample(values: Bits, part: int) -> Bits:
    return np.concatenate([each[:_SAMPLES] for each in _parts(values, part)])


def _digests(values: Bits, part: int) -> str:
    found = [
        hashlib.blake2b(each.astype(f"<{each.dtype.str[1:]}").tobytes(), digest_size=8).digest()
        for each in _parts(values, part)
    ]
    return base64.b64encode(b"".join(found)).decode()
