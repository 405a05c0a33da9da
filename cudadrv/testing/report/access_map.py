"""`AccessMap`: which lane of one warp accesses which sector or bank, by instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.count.warp_rows import traffic_of
from ptx.emulate.history.access_log import LoggedAccess
from ptx.emulate.model.geometry import WARP, Dim3
from ptx.isa.instruction_facts import InstructionFacts, InstructionKind, facts_of

PlaceOf: TypeAlias = Callable[[int], "tuple[str, int] | None"]
_SECTOR: Final = 32  # bytes
_WORD: Final = 4  # bytes of a bank
_BANKS: Final = 32
_ROWS_OF_MATRIX: Final = 8


@dataclass(frozen=True, slots=True)
class TouchedPiece:
    """A sector of global memory, or a bank of shared memory, that lanes access.

    Attributes:
        name: "x + 32" for a sector, by the array and its offset in bytes; "bank 3" for a bank.
        position: how many sectors or banks after the first one of the request.
        lanes: the lanes, ascending.
        words: how many different words of the bank; 0 for a sector.
    """

    name: str
    position: int
    lanes: tuple[int, ...]
    words: int = 0


@dataclass(frozen=True, slots=True)
class WarpRequest:
    """One execution of an instruction by the warp.

    Attributes:
        number: counts the recorded ones of the instruction, from 1.
        pieces: ascending.
        traffic: the sectors, or the wavefronts of shared memory.
        least: as few as the same access needs at best.
    """

    number: int
    pieces: tuple[TouchedPiece, ...]
    traffic: int
    least: int

    @property
    def lanes(self) -> int:
        """How many lanes take part."""
        return len({lane for piece in self.pieces for lane in piece.lanes})


@dataclass(frozen=True, slots=True)
class AccessMap:
    """The accesses of one warp by one instruction.

    Attributes:
        instruction: such as "ld.global.f32"; `ptx_line`: its line.
        file, line: of CUDA; None if unknown.
        kind: "read", "write" or "atomic".
        space: "global" or "shared".
        nbytes: of each lane.
        requests: how many were recorded; at most 64.
        fewest, most: the traffic of the requests.
        shown: the first request, and the first one with the most traffic if that is another.
    """

    instruction: str
    ptx_line: int
    file: str | None
    line: int | None
    kind: str
    space: str
    nbytes: int
    requests: int
    fewest: int
    most: int
    shown: tuple[WarpRequest, ...]

    @property
    def pattern(self) -> tuple[object, ...]:
        """Equal for instructions whose lanes access other memory in the same pattern."""
        shown = [
            (request.number, piece.position, piece.lanes, piece.words)
            for request in self.shown
            for piece in request.pieces
        ]
        return (
            self.instruction, self.kind, self.space, self.nbytes, self.requests, self.fewest,
            self.most, *shown,
        )  # fmt: skip

    @property
    def unit(self) -> str:
        """The unit of the traffic."""
        return "sector" if self.space == "global" else "wavefront"


def access_maps(
    accesses: Sequence[LoggedAccess], block: Dim3, place_of: PlaceOf
) -> tuple[AccessMap, ...]:
    """Return the maps of a warp's accesses to global and shared memory, in the order of the PTX.

    Args:
        accesses: of one warp.
        block: the extent of its block.
        place_of: returns the array of an address, and the offset there.
    """
    steps_by_instruction: dict[tuple[str, int, str], dict[int, list[LoggedAccess]]] = {}
    for access in accesses:
        if access.space in ("global", "shared"):
            key = access.where.kernel, access.where.ptx_line, access.space
            steps_by_instruction.setdefault(key, {}).setdefault(access.step, []).append(access)
    return tuple(
        _map_of([*steps.values()], block, place_of)
        for (_, _, _), steps in sorted(steps_by_instruction.items(), key=lambda entry: entry[0])
    )


def _map_of(steps: Sequence[Sequence[LoggedAccess]], block: Dim3, place_of: PlaceOf) -> AccessMap:
    first = steps[0][0]
    opcode, *modifiers = first.where.instruction.split(".")
    facts = facts_of(opcode, tuple(modifiers))
    requests = [
        _request(number, accesses, facts, block, place_of)
        for number, accesses in enumerate(steps, 1)
    ]
    worst = max(requests, key=lambda request: (request.traffic, -request.number))
    is_varied = worst.traffic > requests[0].traffic
    return AccessMap(
        first.where.instruction,
        first.where.ptx_line,
        first.where.source_file,
        first.where.source_line,
        first.kind,
        first.space,
        first.nbytes,
        len(requests),
        min(request.traffic for request in requests),
        worst.traffic,
        (requests[0], worst) if is_varied else (requests[0],),
    )


def _request(
    number: int,
    accesses: Iterable[LoggedAccess],
    facts: InstructionFacts,
    block: Dim3,
    place_of: PlaceOf,
) -> WarpRequest:
    row = np.full((1, WARP), -1, np.int64)
    space, nbytes = "", 0
    for access in accesses:
        space, nbytes = access.space, access.nbytes
        if access.where.thread is not None:
            x, y, z = access.where.thread
            row[0, (x + block[0] * (y + block[1] * z)) % WARP] = access.address
    is_global = space == "global"
    if facts.matrices and not is_global:
        # Eight lanes each give the addresses of one matrix's rows.
        row[:, _ROWS_OF_MATRIX * facts.matrices :] = -1
    is_load = facts.kind is InstructionKind.LOAD
    traffic = traffic_of(row, space, nbytes, is_atomic=facts.is_atomic, is_load=is_load)
    pieces = _sectors(row, place_of) if is_global else _banks(row, nbytes)
    return WarpRequest(number, pieces, *traffic)


def _sectors(row: NDArray[np.int64], place_of: PlaceOf) -> tuple[TouchedPiece, ...]:
    lanes_of: dict[int, list[int]] = {}
    for lane, address in enumerate(row[0].tolist()):
        if address >= 0:
            lanes_of.setdefault(address // _SECTOR * _SECTOR, []).append(lane)
    base = min(lanes_of, default=0)
    return tuple(
        TouchedPiece(_name_of(start, base, place_of), (start - base) // _SECTOR, tuple(lanes))
        for start, lanes in sorted(lanes_of.items())
    )


def _name_of(start: int, base: int, place_of: PlaceOf) -> str:
    place = place_of(start)
    if place is not None:
        name, offset = place
        return f"{name} {'-' if offset < 0 else '+'} {abs(offset)}"
    # Addresses differ between runs.
    return f"first + {start - base}"


def _banks(row: NDArray[np.int64], nbytes: int) -> tuple[TouchedPiece, ...]:
    lanes_of: dict[int, list[int]] = {}
    words_of: dict[int, set[int]] = {}
    for lane, address in enumerate(row[0].tolist()):
        first = address // _WORD
        for word in range(first, first + max(nbytes // _WORD, 1)) if address >= 0 else ():
            lanes_of.setdefault(word % _BANKS, []).append(lane)
            words_of.setdefault(word % _BANKS, set()).add(word)
    base = min(lanes_of, default=0)
    return tuple(
        TouchedPiece(f"bank {bank}", bank - base, tuple(lanes), len(words_of[bank]))
        for bank, lanes in sorted(lanes_of.items())
    )
