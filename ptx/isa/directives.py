"""The directives of PTX, each with what becomes of it; one that is not in the table is rejected.

PTX ISA, "Directives".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Final

from ptx.isa.constant_expressions import integer_literal
from ptx.isa.lexer import Cursor


class Treatment(Enum):
    """What becomes of a directive.

    HONOURED: the emulator does what it says.
    WITHOUT_EFFECT: it changes nothing that a program can observe on the emulator.
    REJECTED: NVIDIA's assembler rejects it in each version that a driver loads, or nothing here
        could do what it says.
    """

    HONOURED = "honoured"
    WITHOUT_EFFECT = "without effect"
    REJECTED = "rejected"


class DirectivePlace(Flag):
    """Where a directive may stand; ENTRY, FUNCTION and PROTOTYPE are after the parameters."""

    MODULE = auto()
    ENTRY = auto()
    FUNCTION = auto()
    PROTOTYPE = auto()
    BODY = auto()
    DECLARATION = auto()


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive.

    Attributes:
        name: with its dot.
        places: where it may stand.
        treatment: what becomes of it.
        reason: where it is honoured, or why it has no effect or is rejected.
        numbers: how many integers follow it among the directives of a function.
        is_positive: whether all of them must be positive.
    """

    name: str
    places: DirectivePlace
    treatment: Treatment
    reason: str
    numbers: tuple[int, ...] = ()
    is_positive: bool = False


_M, _E, _F, _P = (
    DirectivePlace.MODULE,
    DirectivePlace.ENTRY,
    DirectivePlace.FUNCTION,
    DirectivePlace.PROTOTYPE,
)
_B, _D = DirectivePlace.BODY, DirectivePlace.DECLARATION
_HONOURED, _WITHOUT, _REJECTED = Treatment.HONOURED, Treatment.WITHOUT_EFFECT, Treatment.REJECTED

DIRECTIVES: Final[tuple[Directive, ...]] = (
    # The header.
    Directive(".version", _M, _HONOURED, "gates features, and must be one that the driver knows"),
    Directive(".target", _M, _HONOURED, "gates features, and must fit the device"),
    Directive(".address_size", _M, _HONOURED, "must be 64, as for each device that is emulated"),
    # Functions and their attributes.
    Directive(".entry", _M, _HONOURED, "a kernel"),
    Directive(".func", _M, _HONOURED, "a function"),
    Directive(".alias", _M, _HONOURED, "another name of a function"),
    Directive(".maxntid", _E, _HONOURED, "limits the threads of a block", (1, 2, 3), True),
    Directive(".reqntid", _E, _HONOURED, "requires a shape of blocks", (1, 2, 3), True),
    Directive(".maxnreg", _E, _HONOURED, "limits the registers that occupancy counts", (1,), True),
    Directive(".minnctapersm", _E, _HONOURED, "limits the registers as well", (1,), True),
    Directive(".maxnctapersm", _E, _REJECTED, "replaced by .minnctapersm in PTX 2.0", (1, 2, 3)),
    Directive(".reqnctapercluster", _E, _HONOURED, "requires a shape of clusters", (1, 2, 3)),
    Directive(".explicitcluster", _E, _HONOURED, "requires launches that name their cluster", (0,)),
    Directive(".maxclusterrank", _E, _HONOURED, "limits the blocks of a cluster", (1,)),
    Directive(".blocksareclusters", _E, _HONOURED, "a launch's grid counts clusters", (0,)),
    Directive(
        ".noreturn",
        _F | _P,
        _WITHOUT,
        "a promise: a function that returns nevertheless has no defined behaviour",
        (0,),
    ),
    Directive(
        ".abi_preserve",
        _F | _P,
        _WITHOUT,
        "allocates registers, of which each call has its own here",
        (1,),
    ),
    Directive(".abi_preserve_control", _F | _P, _WITHOUT, "as .abi_preserve", (1,)),
    Directive(".language", _E | _F, _REJECTED, "unknown to drivers before CUDA 13.5", (1,)),
    # Variables.
    Directive(".align", _D, _HONOURED, "the least alignment"),
    Directive(
        ".attribute",
        _D,
        _HONOURED,
        ".managed: emulated device memory is the host's as well;"
        " .unified: without an index file it has no effect",
    ),
    Directive(".extern", _D, _HONOURED, "defined by another module"),
    Directive(".visible", _D, _HONOURED, "for the linker"),
    Directive(".weak", _D, _HONOURED, "for the linker"),
    Directive(".common", _D, _HONOURED, "for the linker"),
    Directive(
        ".ptr",
        _D,
        _WITHOUT,
        "a promise about the memory that a parameter points to; the type of"
        " the parameter becomes a pointer",
    ),
    # Indirect branches and calls.
    Directive(".branchtargets", _B, _HONOURED, "the labels of brx.idx"),
    Directive(
        ".calltargets", _B, _HONOURED, "the functions of an indirect call, which are checked"
    ),
    Directive(".callprototype", _B, _HONOURED, "the parameters of an indirect call"),
    # Places in the source, and hints.
    Directive(".file", _M, _HONOURED, "names source files in errors and reports"),
    Directive(".loc", _B, _HONOURED, "gives source lines in errors and reports"),
    Directive(".section", _M, _WITHOUT, "tells debuggers about types and variables"),
    Directive(
        ".pragma",
        _M | _E | _B,
        _HONOURED,
        '"used_bytes_mask" of a load; others are hints for optimisation',
    ),
)
"""All directives but the state spaces and `.reg`, which declare variables."""

_BY_NAME: Final = {directive.name: directive for directive in DIRECTIVES}
# PTX ISA, "Performance-Tuning Directives": pairs that do not go together.
_CONFLICTS: Final = (("maxntid", "reqntid"), ("reqnctapercluster", "maxclusterrank"))
_NEEDS: Final = {"blocksareclusters": ("reqntid", "reqnctapercluster")}


def directive_of(cursor: Cursor, place: DirectivePlace) -> Directive:
    """The directive at a cursor.

    Raises:
        PtxSyntaxError: the table has none of this name for the place, or it is rejected.
    """
    directive = _BY_NAME.get(cursor.word)
    if directive is None or not place & directive.places:
        cursor.fail(f"expected a directive{cursor.found}")
    if directive.treatment is Treatment.REJECTED:
        cursor.fail(f"{directive.name} is {directive.reason}")
    return directive


def read_directives(cursor: Cursor, place: DirectivePlace) -> dict[str, tuple[int, ...]]:
    """`{.directive [n {, n}]}` after a function's parameters, by name without the dot.

    A directive that stands twice has its last numbers.
    """
    found: dict[str, tuple[int, ...]] = {}
    while cursor.kind == "directive":
        at = cursor.index
        directive = directive_of(cursor, place)
        if directive.name == ".pragma":
            list(pragma(cursor))
            continue
        cursor.advance()
        found[directive.name[1:]] = _numbers(cursor, directive, at)
    return found


def _numbers(cursor: Cursor, directive: Directive, at: int) -> tuple[int, ...]:
    numbers: list[int] = []
    if max(directive.numbers, default=0):
        numbers.append(integer_literal(cursor))
        while len(numbers) < max(directive.numbers) and cursor.accept(","):
            numbers.append(integer_literal(cursor))
    if max(numbers, default=0) >= 1 << 32:
        raise cursor.error(f"a number of {directive.name} has over 32 bits", at)
    if directive.is_positive and min(numbers) <= 0:
        most = max(directive.numbers)
        plural = "a positive integer" if most == 1 else f"1 to {most} positive integers"
        raise cursor.error(f"{directive.name} takes {plural}", at)
    return tuple(numbers)


def fault_of_directives(found: dict[str, tuple[int, ...]]) -> str:
    """Why directives do not go together, "" where they do."""
    for pair in _CONFLICTS:
        if found.keys() >= set(pair):
            return f".{pair[0]} and .{pair[1]} do not go together"
    for name, needed in _NEEDS.items():
        if name in found and not found.keys() >= set(needed):
            return f".{name} needs {' and '.join(f'.{each}' for each in needed)}"
    return ""


def version_of(text: str) -> tuple[int, int]:
    """Return the numbers of a `.version`, such as `8.6`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def pragma(cursor: Cursor) -> Iterator[str]:
    """`.pragma string {, string} ;`: the strings with their quotes."""
    cursor.expect(".pragma")
    while True:
        yield cursor.expect_kind("string")
        if not cursor.accept(","):
            break
    cursor.expect(";")


def required_cluster(directives: Mapping[str, tuple[int, ...]]) -> tuple[int, int, int] | None:
    """The blocks of each cluster of a kernel with `.reqnctapercluster`."""
    required = directives.get("reqnctapercluster")
    if required is None:
        return None
    x, y, z = (*required, 1, 1)[:3]
    return x, y, z


def blocks_of_grid(
    directives: Mapping[str, tuple[int, ...]], grid: tuple[int, int, int]
) -> tuple[int, int, int]:
    """The blocks of a launch whose grid counts clusters, with `.blocksareclusters`."""
    cluster = required_cluster(directives)
    if cluster is None or "blocksareclusters" not in directives:
        return grid
    return grid[0] * cluster[0], grid[1] * cluster[1], grid[2] * cluster[2]
