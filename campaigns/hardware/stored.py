"""Stored results of a GPU: cases with their PTX, and the bytes of each result."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from .case import Bits, Buffer, Case

FORMAT: Final = 1
FORMS: Final = Path(__file__).with_name("measured_h200_forms.xz")
KERNELS: Final = Path(__file__).with_name("measured_h200_kernels.xz")
PROGRAMS: Final = Path(__file__).with_name("measured_h200_programs.xz")


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of one set of cases.

    Attributes:
        device: the GPU's name.
        driver: its version, such as "580.105" or "13.0".
        cases: in their order.
        results: of each case: the bytes of each compared buffer.
        rejected: why a form could not be measured, by its name.
    """

    device: str
    driver: str
    cases: tuple[Case, ...]
    results: tuple[tuple[Bits, ...], ...]
    rejected: dict[str, str]

    def save(self, path: Path) -> None:
        """Write it: a line of JSON, and the bytes of all results, compressed."""
        head = {
            "format": FORMAT,
            "device": self.device,
            "driver": self.driver,
            "cases": [asdict(case) for case in self.cases],
            "rejected": self.rejected,
        }
        body = b"".join(bits.tobytes() for case in self.results for bits in case)
        text = json.dumps(head, separators=(",", ":")).encode() + b"\n"
        path.write_bytes(lzma.compress(text + body, preset=9))

    @classmethod
    def load(cls, path: Path) -> Measured:
        """Return what `save` wrote.

        Raises:
            ValueError: it has another format.
        """
        head, _, body = lzma.decompress(path.read_bytes()).partition(b"\n")
        fields = json.loads(head)
        if fields["format"] != FORMAT:
            raise ValueError(f"{path.name} has format {fields['format']}: this reads {FORMAT}")
        cases = tuple(
            Case(
                **{
                    **case,
                    "forms": tuple(case["forms"]),
                    "buffers": tuple(Buffer(**buffer) for buffer in case["buffers"]),
                }
            )
            for case in fields["cases"]
        )
        return cls(
            fields["device"], fields["driver"], cases, _divided(cases, body), fields["rejected"]
        )


def stored_forms() -> frozenset[str]:
    """Return the names of the forms that have results."""
    return frozenset(name for case in Measured.load(FORMS).cases for name in case.forms)


def _divided(cases: Sequence[Case], body: bytes) -> tuple[tuple[Bits, ...], ...]:
    everything = np.frombuffer(body, np.uint8)
    found, at = [], 0
    for case in cases:
        own = []
        for k in case.results:
            own.append(everything[at : at + case.buffers[k].nbytes])
            at += case.buffers[k].nbytes
        found.append(tuple(own))
    return tuple(found)
