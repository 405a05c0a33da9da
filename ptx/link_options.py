"""The options of a link, each with one accepted form."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType

from ptx import border


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How nvJitLink generates code; None leaves its own default.

    The floating-point options act on LTO-IR, whose code is generated at the link. `extra` are
    further nvJitLink options, one string each. `lto` says whether code is generated at the link:
    without it where an input is LTO-IR, which cannot be seen of objects and fatbins that have some.
    Source: nvJitLink manual, "Linking".
    """

    fmad: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    lineinfo: bool = False
    debug: bool = False
    maxrregcount: int | None = None
    extra: tuple[str, ...] = ()
    lto: bool | None = None

    def __post_init__(self) -> None:
        for name in ("fmad", "ftz", "prec_div", "prec_sqrt", "lto"):
            border.instance(f"LinkOptions: {name}", getattr(self, name), (bool, NoneType))
        if self.maxrregcount is not None:
            border.integer("LinkOptions: maxrregcount", self.maxrregcount)
        given = border.several("LinkOptions: extra", self.extra, str)
        extra = tuple(border.text("LinkOptions: extra", each) for each in given)
        object.__setattr__(self, "extra", extra)

    def flags(self) -> tuple[str, ...]:
        """The options as nvJitLink spells them, without architecture and kind of output."""
        named = (
            ("fma", self.fmad),
            ("ftz", self.ftz),
            ("prec-div", self.prec_div),
            ("prec-sqrt", self.prec_sqrt),
        )
        flags = [f"-{name}={int(value)}" for name, value in named if value is not None]
        if self.lineinfo:
            flags.append("-lineinfo")
        if self.debug:
            flags.append("-g")
        if self.maxrregcount is not None:
            flags.append(f"-maxrregcount={self.maxrregcount}")
        return (*flags, *self.extra)
