"""What a link takes: images, and files of other compilers, each told by its content."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from ptx import border
from ptx.errors import ImageFormatError
from ptx.image import Image
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

if TYPE_CHECKING:
    from ptx.link_options import LinkOptions

_EM_CUDA = 190  # e_machine of a cubin; any other is an object file of the host
_ELF = b"\x7fELF"
_MACHINE_AT = 18


class LinkKind(Enum):
    """The form of an input of a link."""

    PTX = "PTX"
    CUBIN = "a cubin"
    LTOIR = "LTO-IR"
    FATBIN = "a fatbin"
    OBJECT = "an object file"
    ARCHIVE = "an archive"


_OF_IMAGE = {
    ImageKind.PTX: LinkKind.PTX,
    ImageKind.CUBIN: LinkKind.CUBIN,
    ImageKind.LTOIR: LinkKind.LTOIR,
    ImageKind.FATBIN: LinkKind.FATBIN,
}
_MAGIC = {
    b"\x50\xed\x55\xba": LinkKind.FATBIN,
    b"\xed\x43\x4e\x7f": LinkKind.LTOIR,
    b"!<arch>\n": LinkKind.ARCHIVE,
}


@dataclass(frozen=True, slots=True)
class LinkInput:
    """One input of a link.

    Attributes:
        kind: what the bytes are.
        data: the bytes; PTX as text in UTF-8.
        name: what messages call it.
        lowered_names: name expressions of the input, as `Image` has them.
        signatures: its kernels' parameters, as far as they are known.
    """

    kind: LinkKind
    data: bytes
    name: str = "an input"
    lowered_names: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, KernelSignature] = field(default_factory=dict)

    def __post_init__(self) -> None:
        border.instance("LinkInput: kind", self.kind, LinkKind)
        border.instance("LinkInput: data", self.data, bytes)
        border.text("LinkInput: name", self.name)

    def __hash__(self) -> int:
        return hash((self.kind, self.data))

    @classmethod
    def of(cls, given: object, number: int = 1) -> Self:
        """The input that a `Linkable` is; `number` tells it in messages.

        Raises:
            ImageFormatError: the bytes are nothing that is linked.
            OSError: a file cannot be read.
        """
        if isinstance(given, cls):
            return given
        border.integer("LinkInput.of: number", number)
        if isinstance(given, Image):
            return cls._of_image(given, number)
        if isinstance(given, Path):
            border.path_text("link: a file", given)
            return cls._of_bytes(given.read_bytes(), given.name)
        if isinstance(given, str):
            return cls._of_bytes(border.text("link: PTX", given).encode(), f"input {number}")
        if not isinstance(given, (bytes, bytearray, memoryview)):
            raise border.refused(f"link: input {number}", given, "give an image, PTX or a Path")
        return cls._of_bytes(bytes(given), f"input {number}")

    @classmethod
    def _of_image(cls, image: Image, number: int) -> Self:
        kernels = ", ".join(list(image.signatures)[:3])
        name = f"input {number} ({image.target}{': ' + kernels if kernels else ''})"
        kind = _OF_IMAGE[image.kind]
        return cls(kind, image.data, name, image.lowered_names, image.signatures)

    @classmethod
    def _of_bytes(cls, data: bytes, name: str) -> Self:
        kind = _kind_of(data, name)
        if kind is not LinkKind.PTX:
            return cls(kind, data, name)
        image = Image.from_ptx(data.rstrip(b"\0").decode(errors="replace"))
        return cls(kind, image.data, name, {}, image.signatures)


Linkable: TypeAlias = Image | LinkInput | Path | str | bytes | bytearray | memoryview
"""What a link takes: a str is PTX, a `Path` a file of any kind."""


@dataclass(frozen=True, slots=True)
class OtherLinker:
    """What links in the place of nvJitLink, such as the driver's own linker.

    Attributes:
        identity: what tells it and its version from others; part of the key of its images.
        link: links, and raises a `LinkError`.
    """

    identity: str
    link: Callable[[Sequence[LinkInput], Target, LinkOptions], Image]

    def __post_init__(self) -> None:
        border.text("OtherLinker: identity", self.identity)
        border.function("OtherLinker: link", self.link, takes=3)

    def linked(self, inputs: Sequence[LinkInput], target: Target, options: LinkOptions) -> Image:
        """What its function gives."""
        image = self.link(inputs, target, options)
        return border.instance(f"what {self.identity} links", image, Image)


def _kind_of(data: bytes, name: str) -> LinkKind:
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    if data.startswith(_ELF) and len(data) >= _MACHINE_AT + 2:
        (machine,) = struct.unpack_from("<H", data, _MACHINE_AT)
        return LinkKind.CUBIN if machine == _EM_CUDA else LinkKind.OBJECT
    if b".version" in data[:4096]:
        return LinkKind.PTX
    raise ImageFormatError(
        f"{name} is nothing that is linked: give PTX, a cubin, LTO-IR, a fatbin, an object file "
        "or an archive"
    )
