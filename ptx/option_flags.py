"""A compiler's options as command lines spell them, sorted by what has a field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ptx.base_errors import PtxArgumentValueError

# One that may be glued to its value, or have it behind.
_GLUED: Final = re.compile(r"-([ID])(.*)", re.DOTALL)
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


class SortedFlags(NamedTuple):
    """What flags say: texts by field, switches by field, and those that have no field."""

    texts: Mapping[str, str]
    switches: Mapping[str, bool]
    include_paths: tuple[str, ...]
    defines: Mapping[str, str | None]
    extra: tuple[str, ...]


def sort_flags(flags: Iterable[str], fields: Mapping[str, str]) -> SortedFlags:
    """Sort flags such as "-std=c++17", "--use_fast_math", "-DN=4".

    Args:
        flags: one option each; the value of a folder or macro may be the next one.
        fields: the names of fields by those of options, without hyphens.

    Raises:
        PtxArgumentValueError: a value is missing, or is none of its option.
    """
    texts: dict[str, str] = {}
    switches: dict[str, bool] = {}
    paths: list[str] = []
    defines: dict[str, str | None] = {}
    extra: list[str] = []
    waiting = (flag.strip() for flag in flags)
    for flag in waiting:
        option, value = _divided(flag, waiting)
        match fields.get(option):
            case "include_paths":
                paths.append(_needed(flag, value))
            case "defines":
                name, has_text, text = _needed(flag, value).partition("=")
                defines[name] = text if has_text else None
            case "std" | "maxrregcount" | "target" as field if value:
                texts[field] = value
            case "fmad" | "ftz" | "prec_div" | "prec_sqrt" as field:
                if value not in _BOOLEANS:
                    raise PtxArgumentValueError(f"option {flag!r}: give true or false behind =")
                switches[field] = _BOOLEANS[value]
            case "use_fast_math" | "lineinfo" | "debug" as field:
                switches[field] = True
            case _:
                extra.append(flag)
    return SortedFlags(texts, switches, tuple(paths), defines, tuple(extra))


def _divided(flag: str, following: Iterator[str]) -> tuple[str, str | None]:
    """The name of an option without its hyphens, and its value."""
    glued = _GLUED.fullmatch(flag)
    if glued:
        return glued[1], glued[2].strip() or next(following, None)
    option, has_value, value = flag.lstrip("-").partition("=")
    return (option if flag.startswith("-") else ""), value if has_value else None


def _needed(flag: str, value: str | None) -> str:
    if not value:
        raise PtxArgumentValueError(f"option {flag!r}: its value is missing")
    return value
