"""The options of compiling NVVM IR, each with one accepted form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import NoneType

from ptx import border
from ptx.errors import PtxArgumentValueError
from ptx.target import ImageKind, Target


@dataclass(frozen=True, slots=True)
class NvvmOptions:
    """How libNVVM generates code; None leaves its own default.

    Attributes:
        target: PTX for an architecture; `Context.compile_nvvm` fills it in.
        optimize: whether it optimises.
        fmad: whether a product and a sum become one operation.
        ftz: whether subnormal numbers are zero.
        prec_div: whether quotients are rounded as IEEE 754 says.
        prec_sqrt: whether roots are.
        lineinfo: whether the code says which lines it is of.
        debug: whether it can be debugged.
        extra: further options of libNVVM, one string each.

    Source: libNVVM API manual, nvvmCompileProgram.
    """

    target: Target | None = None
    optimize: bool = True
    fmad: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    lineinfo: bool = False
    debug: bool = False
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.target is not None:
            target = border.instance("NvvmOptions: target", self.target, Target)
            if target.kind is not ImageKind.PTX:
                words = f"NvvmOptions: target is {target}: libNVVM makes PTX: link that"
                raise PtxArgumentValueError(words)
        for name in ("optimize", "lineinfo", "debug"):
            border.instance(f"NvvmOptions: {name}", getattr(self, name), bool)
        for name in ("fmad", "ftz", "prec_div", "prec_sqrt"):
            border.instance(f"NvvmOptions: {name}", getattr(self, name), (bool, NoneType))
        given = border.several("NvvmOptions: extra", self.extra, str)
        extra = tuple(border.text("NvvmOptions: extra", each) for each in given)
        object.__setattr__(self, "extra", extra)

    def for_target(self, target: Target) -> NvvmOptions:
        """These options with `target` filled in where none is named yet."""
        return replace(self, target=target) if self.target is None else self

    def flags(self) -> tuple[str, ...]:
        """The options as libNVVM spells them, the target among them."""
        flags = [] if self.target is None else [f"-arch={self.target.virtual}"]
        if not self.optimize:
            flags.append("-opt=0")
        for name, value in (
            ("fma", self.fmad),
            ("ftz", self.ftz),
            ("prec-div", self.prec_div),
            ("prec-sqrt", self.prec_sqrt),
        ):
            if value is not None:
                flags.append(f"-{name}={int(value)}")
        if self.lineinfo:
            flags.append("-generate-line-info")
        if self.debug:
            flags.append("-g")
        return (*flags, *self.extra)
