"""Linking across translation units, without a cache: options, inputs, nvJitLink, PTX as text."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import NamedTuple, Self, TypeAlias

from ptx import _nvrtc
from ptx.argument_checks import checks
from ptx.cache.toolchain import Build
from ptx.errors import ImageFormatError, LinkError, PtxArgumentValueError
from ptx.image import Image
from ptx.isa.errors import PtxSyntaxError
from ptx.isa.linked_text import link_texts, reject_twice_defined, undefined_references
from ptx.isa.module import with_register_limit
from ptx.isa.signature import known_signatures
from ptx.ordinary_files import read_bytes
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Options of nvJitLink's code generation; None leaves its own default.

    The floating-point options act on LTO-IR, whose code is generated at the link. `extra` are
    further nvJitLink options, one string each. `lto` decides whether code is generated at the link.
    By default it is if an input is LTO-IR; LTO-IR within objects and fatbins cannot be detected.
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
            checks.instance_of(f"LinkOptions: {name}", getattr(self, name), (bool, NoneType))
        checks.integer_fields(self, "maxrregcount")
        extra_options = checks.sequence_of("LinkOptions: extra", self.extra, str)
        extra = tuple(checks.text("LinkOptions: extra", option) for option in extra_options)
        object.__setattr__(self, "extra", extra)

    def flags(self) -> tuple[str, ...]:
        """The options as nvJitLink spells them, without architecture and kind of output."""
        settings = (
            ("fma", self.fmad),
            ("ftz", self.ftz),
            ("prec-div", self.prec_div),
            ("prec-sqrt", self.prec_sqrt),
        )
        flags = [f"-{name}={int(value)}" for name, value in settings if value is not None]
        if self.lineinfo:
            flags.append("-lineinfo")
        if self.debug:
            flags.append("-g")
        if self.maxrregcount is not None:
            flags.append(f"-maxrregcount={self.maxrregcount}")
        return (*flags, *self.extra)


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
        kind: the form of the bytes.
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
        checks.instance_of("LinkInput: kind", self.kind, LinkKind)
        checks.instance_of("LinkInput: data", self.data, bytes)
        checks.text("LinkInput: name", self.name)

    def __hash__(self) -> int:
        return hash((self.kind, self.data))

    @classmethod
    def of(cls, given: object, number: int = 1) -> Self:
        """Convert a `Linkable` to an input; messages name it by `number`.

        Raises:
            ImageFormatError: the bytes are nothing that is linked.
            OSError: a file cannot be read.
        """
        if isinstance(given, cls):
            return given
        checks.integer("LinkInput.of: number", number)
        if isinstance(given, Image):
            return cls._of_image(given, number)
        if isinstance(given, Path):
            checks.path_text("link: a file", given)
            return cls._of_bytes(read_bytes(given), given.name)
        if isinstance(given, str):
            return cls._of_bytes(checks.text("link: PTX", given).encode(), f"input {number}")
        if not isinstance(given, (bytes, bytearray, memoryview)):
            raise checks.wrong_type(f"link: input {number}", given, "give an image, PTX or a Path")
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
"""An input of a link: a str is PTX, a `Path` a file of any kind."""


@dataclass(frozen=True, slots=True)
class OtherLinker:
    """A linker that replaces nvJitLink, such as the driver's own.

    Attributes:
        identity: distinguishes it and its version from others; part of the key of its images.
        link: links, and raises a `LinkError`.
    """

    identity: str
    link: Callable[[Sequence[LinkInput], Target, LinkOptions], Image]

    def __post_init__(self) -> None:
        checks.text("OtherLinker: identity", self.identity)
        checks.function("OtherLinker: link", self.link, takes=3)

    def linked(self, inputs: Sequence[LinkInput], target: Target, options: LinkOptions) -> Image:
        """Return the image that its function gives."""
        image = self.link(inputs, target, options)
        return checks.instance_of(f"what {self.identity} links", image, Image)


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
        f"{name} cannot be linked: give PTX, a cubin, LTO-IR, a fatbin, an object file "
        "or an archive"
    )


# nvJitLinkInputType
_INPUT = {
    LinkKind.CUBIN: 1, LinkKind.PTX: 2, LinkKind.LTOIR: 3, LinkKind.FATBIN: 4, LinkKind.OBJECT: 5,
    LinkKind.ARCHIVE: 6,
}  # fmt: skip


class Linker(_nvrtc.InUse):
    """One nvJitLinkHandle: inputs added, completed, read, destroyed at the end of its `with`.

    Raises:
        NvJitLinkNotFoundError: nvJitLink is not installed.
        LinkError: an option or an input is rejected, or a symbol is missing.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self._api = _nvrtc.linker_api()
        self._options = tuple(options)
        try:
            # nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *, uint32_t, const char **options)
            self._handle = self._api.create(len(self._options), self._options)
        except self._api.nvJitLinkError as error:
            message = f"nvJitLink rejects its options {' '.join(options)}: {error}"
            raise LinkError(message, "", options) from error

    def _destroy(self) -> None:
        # nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *)
        self._api.destroy(self._handle)

    def add(self, link_input: LinkInput) -> None:
        """Add one input."""
        data, name = link_input.data, link_input.name
        try:
            # nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle, nvJitLinkInputType,
            #                                  const void *data, size_t size, const char *name)
            self._api.add_data(self._handle, _INPUT[link_input.kind], data, len(data), name)
        except self._api.nvJitLinkError as error:
            message = f"nvJitLink does not accept {name!r} as {link_input.kind.value}: {error}"
            raise LinkError(message, self._error_log(), self._options) from error

    def complete(self) -> None:
        """Link the added inputs."""
        try:
            # nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle)
            self._api.complete(self._handle)
        except self._api.nvJitLinkError as error:
            message = f"the inputs do not link: {error}"
            raise LinkError(message, self._error_log(), self._options) from error

    def cubin(self) -> bytes:
        """The linked machine code."""
        # nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle, void *cubin), and …Size
        return self._read(self._api.get_linked_cubin_size, self._api.get_linked_cubin)

    def ptx(self) -> str:
        """The linked PTX, after -lto -ptx."""
        # nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle, char *ptx), and …Size
        return _text(self._read(self._api.get_linked_ptx_size, self._api.get_linked_ptx))

    def log(self) -> str:
        """Return nvJitLink's log of a successful link."""
        # nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle, char *log), and …Size
        return _text(self._read(self._api.get_info_log_size, self._api.get_info_log))

    def _error_log(self) -> str:
        # nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle, char *log), and …Size
        return _text(self._read(self._api.get_error_log_size, self._api.get_error_log))

    def _read(self, size_of: Callable[[int], int], read: Callable[[int, bytearray], None]) -> bytes:
        try:
            data = bytearray(size_of(self._handle))
            if data:
                read(self._handle, data)
        except self._api.nvJitLinkError as error:
            message = f"nvJitLink has no result of the link: {error}"
            raise LinkError(message, "", self._options) from error
        return bytes(data)


class LinkRequest(NamedTuple):
    """The checked arguments of a link; `other` replaces nvJitLink."""

    inputs: tuple[LinkInput, ...]
    target: Target
    options: LinkOptions
    other: OtherLinker | None

    @classmethod
    def of(
        cls,
        images: Sequence[Linkable],
        target: Target,
        options: LinkOptions | None,
        linker: OtherLinker | None,
    ) -> LinkRequest:
        """Check the arguments of `ptx.link`, and read its files.

        Raises:
            TypeError: an argument has a wrong type.
            ImageFormatError: an input is nothing that is linked.
            OSError: a file cannot be read.
        """
        linkables = checks.elements("link: images", images)
        inputs = tuple(
            LinkInput.of(linkable, number) for number, linkable in enumerate(linkables, 1)
        )
        checks.instance_of("link: target", target, Target)
        if options is None:
            options = LinkOptions()
        checks.instance_of("link: options", options, LinkOptions)
        if linker is not None:
            checks.instance_of("link: linker", linker, OtherLinker)
        return cls(inputs, target, options, linker)

    @property
    def uses_nvjitlink(self) -> bool:
        """True if nvJitLink takes part."""
        return self.other is None and _uses_nvjitlink(self.inputs, self.target)

    def parts(self, nvjitlink: Build | None) -> Mapping[str, str]:
        """Return everything that the image depends on, by name."""
        contents = [
            [part.kind.name, sha256(part.data).hexdigest(), _names(part)] for part in self.inputs
        ]
        built_in = f"nvJitLink {nvjitlink or 'not needed'}"
        return {
            "inputs": repr(contents),
            "target": str(self.target),
            "link options": repr((self.options.flags(), self.options.lto)),
            "linker": self.other.identity if self.other else built_in,
        }

    def link(self) -> Image:
        """Link, with no cache in between."""
        link = self.other.linked if self.other else link_inputs
        return link(self.inputs, self.target, self.options)


def _names(image: LinkInput) -> list[list[str]]:
    """Return the facts that a linked image copies from this input beside its code."""
    kernels = [["signature", k.to_line()] for k in image.signatures.values()]
    return [*map(list, sorted(image.lowered_names.items())), *kernels]


def _uses_nvjitlink(inputs: Sequence[LinkInput], target: Target) -> bool:
    """Return whether a link needs nvJitLink: PTX becomes PTX without it."""
    is_text = target.kind is ImageKind.PTX
    return not is_text or any(part.kind is LinkKind.LTOIR for part in inputs)


def link_inputs(inputs: Sequence[LinkInput], target: Target, options: LinkOptions) -> Image:
    """Link with no cache in between: to a cubin with nvJitLink, to PTX as text.

    Raises:
        LinkError: an input is rejected or a symbol is missing; it carries the log.
        NvJitLinkNotFoundError: nvJitLink is needed, and not installed.
    """
    started = time.perf_counter()
    check_link(inputs, target)
    lto = [part for part in inputs if part.kind is LinkKind.LTOIR]
    text, log = _lto_text(lto, target, options) if lto else ("", "")
    if target.kind is ImageKind.PTX:
        text = _linked_text(inputs, text, target, options)
        data = text.encode()
    else:
        _reject_twice_defined(inputs, options)
        is_lto = bool(lto) if options.lto is None else options.lto
        with Linker((f"-arch={target.arch}", *(("-lto",) * is_lto), *options.flags())) as linker:
            _add(linker, inputs)
            data, log = linker.cubin(), linker.log()
    is_whole = target.kind is ImageKind.PTX or len(lto) == len(inputs)
    return Image(
        target=target,
        data=data,
        ptx=text if is_whole else None,
        log=log,
        lowered_names={k: v for part in inputs for k, v in part.lowered_names.items()},
        signatures=_signatures(inputs, text),
        compiler=_nvrtc.linker_version() if _uses_nvjitlink(inputs, target) else None,
        build_ms=(time.perf_counter() - started) * 1e3,
    )


def check_link(inputs: Sequence[LinkInput], target: Target) -> None:
    """Reject a link that no linker does.

    Raises:
        PtxArgumentValueError: there is nothing to link, or the target is neither cubin nor PTX.
        LinkError: machine code is to become PTX.
    """
    if not inputs:
        raise PtxArgumentValueError("nothing to link: give at least one image")
    if target.kind not in (ImageKind.PTX, ImageKind.CUBIN):
        raise PtxArgumentValueError(f"linking gives a cubin or PTX, not {target.kind.value}")
    if target.kind is ImageKind.PTX:
        for part in inputs:
            if part.kind not in (LinkKind.PTX, LinkKind.LTOIR):
                raise LinkError(
                    f"{part.name} is {part.kind.value}, which does not link to PTX for an emulated "
                    f"device\n  give PTX or LTO-IR: compile its source for "
                    f"Target.ptx({target.virtual!r})",
                    "",
                    (),
                )


def _lto_text(lto: Sequence[LinkInput], target: Target, options: LinkOptions) -> tuple[str, str]:
    """PTX of LTO-IR, in which alone its kernels' parameters show; and the log."""
    with Linker((f"-arch={target.arch}", "-lto", "-ptx", *options.flags())) as linker:
        _add(linker, lto)
        return linker.ptx(), linker.log()


def _linked_text(
    inputs: Sequence[LinkInput], lto: str, target: Target, options: LinkOptions
) -> str:
    """One text of the PTX among the inputs, and of what LTO-IR has become."""
    texts = _texts(inputs)
    if lto:
        texts.insert(0, ("the LTO-IR", lto))
    try:
        text = link_texts(texts)
        for symbol, name in undefined_references(text, texts).items():
            words = f"the inputs do not link: Undefined reference to {symbol!r} in {name!r}"
            raise LinkError(words, "", options.flags())
        if options.maxrregcount is not None:
            text = with_register_limit(text, options.maxrregcount)
    except PtxSyntaxError as error:
        raise LinkError(f"the inputs do not link: {error}", "", options.flags()) from error
    newest = Image.from_ptx(text).target
    if newest.number > target.number:
        words = f"the inputs do not link: an input is for {newest.arch}, newer than target arch"
        raise LinkError(f"{words} {target.arch}", "", options.flags())
    return text


def _texts(inputs: Sequence[LinkInput]) -> list[tuple[str, str]]:
    return [(part.name, part.data.decode()) for part in inputs if part.kind is LinkKind.PTX]


def _reject_twice_defined(inputs: Sequence[LinkInput], options: LinkOptions) -> None:
    with suppress(PtxSyntaxError):  # which nvJitLink has better words for
        try:
            reject_twice_defined(_texts(inputs))
        except LinkError as error:
            raise LinkError(str(error), "", options.flags()) from None


def _add(linker: Linker, inputs: Sequence[LinkInput]) -> None:
    for part in inputs:
        linker.add(part)
    linker.complete()


def _signatures(inputs: Sequence[LinkInput], text: str) -> Mapping[str, KernelSignature]:
    # The signatures of inputs come first: they may have the types of C++.
    of_inputs = {name: kernel for part in inputs for name, kernel in part.signatures.items()}
    return {**known_signatures(text)[0], **of_inputs}


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode(errors="replace").strip("\n")
