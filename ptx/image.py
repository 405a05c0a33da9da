"""A compiled image, with the properties of its kernels that the driver layer needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import NoneType
from typing import Self

from ptx.argument_checks import checks
from ptx.errors import ImageFormatError, PtxArgumentTypeError, PtxArgumentValueError
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

__all__ = ["Image", "ImageOrigin"]

# The first directives of the header, with any blanks and comments before each.
_BLANKS = r"(?:\s|//[^\n]*|/\*(?s:.)*?\*/|#[^\n]*)*+"
_PTX_VERSION = re.compile(rf"{_BLANKS}\.version{_BLANKS}(\d+)\.(\d+)")
_PTX_TARGET = re.compile(rf"{_BLANKS}\.target{_BLANKS}(?:sm|compute)_(\d+)([af]?)")


def version_of_text(text: str) -> tuple[int, int] | None:
    """Return the version that PTX begins with; None for any other text."""
    match = _PTX_VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else None


class ImageOrigin(Enum):
    """The source of an image in this process."""

    COMPILED = "compiled"
    DISK = "disk"
    MEMORY = "memory"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Image:
    """Bytes that the driver (or the emulator) loads, and their contents.

    `data` is PTX text in UTF-8 without a trailing zero, or the bytes of a cubin, LTO-IR or fatbin.
    `ptx` is the PTX text if the compiler returned one: for a cubin too, not for LTO-IR.

    `lowered_names` maps each name expression to its name in the image. `signatures` maps a kernel's
    name in the image to its parameters, and is empty without PTX.

    `compiler` is the version of the NVRTC (or nvJitLink) that made it, None if unknown. `origin`
    and `build_ms` (the time to make it) do not take part in equality.
    """

    target: Target
    data: bytes
    ptx: str | None = None
    log: str = ""
    lowered_names: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, KernelSignature] = field(default_factory=dict)
    compiler: tuple[int, int] | None = None
    build_ms: float = field(default=0.0, compare=False)
    origin: ImageOrigin = field(default=ImageOrigin.COMPILED, compare=False)

    def __post_init__(self) -> None:
        checks.instance_of("Image: target", self.target, Target)
        checks.instance_of("Image: data", self.data, bytes)
        checks.instance_of("Image: ptx", self.ptx, (str, NoneType))
        checks.instance_of("Image: lowered_names", self.lowered_names, Mapping)
        checks.instance_of("Image: signatures", self.signatures, Mapping)

    def __hash__(self) -> int:
        raise PtxArgumentTypeError("an image cannot be hashed: it holds mappings")

    def __repr__(self) -> str:
        kernels = f": {', '.join(self.signatures)}" if self.signatures else ""
        return f"<Image {self.target}, {len(self.data)} bytes{kernels}>"

    @property
    def kind(self) -> ImageKind:
        """The form of `data`."""
        return self.target.kind

    @property
    def ptx_version(self) -> tuple[int, int] | None:
        """The PTX ISA version that the PTX text requires of a driver, such as (8, 4)."""
        return version_of_text(self.ptx or "")

    @classmethod
    def from_ptx(cls, text: str) -> Self:
        """Return the image of PTX text from elsewhere; its target is that of its `.target` line.

        Raises:
            ImageFormatError: the text has no `.target` line.
        """
        from ptx.isa.signature import signatures_of  # saves 10 ms where PTX is not read

        text = checks.instance_of("Image.from_ptx: text", text, str).rstrip("\0")
        checks.text("the PTX", text)
        version = _PTX_VERSION.match(text)
        match = _PTX_TARGET.match(text, version.end() if version else 0)
        if match is None:
            raise ImageFormatError("the text has no '.target sm_…' line: it is not a PTX module")
        try:
            target = Target(ImageKind.PTX, int(match[1]), match[2])
        except PtxArgumentValueError as error:
            raise ImageFormatError(f"the text's '.target' line is none: {error}") from error
        return cls(
            target,
            text.encode(),
            text,
            signatures=signatures_of(text),
            origin=ImageOrigin.GIVEN,
        )

    @classmethod
    def from_binary(cls, data: bytes, target: Target) -> Self:
        """The image of a cubin, LTO-IR or fatbin from elsewhere."""
        checks.instance_of("Image.from_binary: data", data, (bytes, bytearray, memoryview))
        if checks.instance_of("Image.from_binary: target", target, Target).kind is ImageKind.PTX:
            raise PtxArgumentValueError("PTX is text: use Image.from_ptx")
        return cls(target, bytes(data), origin=ImageOrigin.GIVEN)

    def from_origin(self, origin: ImageOrigin) -> Image:
        """Return the same image with another origin."""
        checks.instance_of("Image.from_origin: origin", origin, ImageOrigin)
        return replace(self, origin=origin)
