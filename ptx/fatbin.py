"""`Fatbin`: images for several architectures in one, built by nvFatbin and read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from ptx import _nvrtc
from ptx.argument_checks import checks
from ptx.errors import FatbinError, PtxArgumentValueError, UnsupportedTargetError
from ptx.image import Image, ImageOrigin
from ptx.isa import fatbin as stored
from ptx.ordinary_files import read_bytes
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

__all__ = ["Fatbin", "FatbinEntry"]

_KINDS: Final = {
    stored.PTX: ImageKind.PTX,
    stored.CUBIN: ImageKind.CUBIN,
    stored.LTOIR: ImageKind.LTOIR,
}


@dataclass(frozen=True, slots=True)
class FatbinEntry:
    """One image of a fatbin; made by `Fatbin`.

    Attributes:
        target: its kind and architecture.
        name: what its maker called it.
        options: for its compilation by the driver.
    """

    target: Target
    name: str
    options: str
    _stored: stored.StoredEntry = field(repr=False)

    @property
    def data(self) -> bytes:
        """Its bytes, decompressed now; those of machine code can be padded by zeros.

        Raises:
            ImageFormatError: they are damaged, or their compression is unknown here.
        """
        is_ptx = self.target.kind is ImageKind.PTX
        return self._stored.text().encode() if is_ptx else self._stored.data()

    def image(self) -> Image:
        """Return it as an image; the errors are those of `data`."""
        if self.target.kind is ImageKind.PTX:
            return Image.from_ptx(self._stored.text())
        return Image.from_binary(self._stored.data(), self.target)


@dataclass(frozen=True, slots=True)
class Fatbin:
    """Images for several architectures in one; the driver loads the one that fits its device.

    Attributes:
        data: the bytes, as nvcc's option -fatbin writes them.
        entries: the images in it.
        lowered_names, signatures: those of the images that it was built from.
    """

    data: bytes = field(repr=False)
    entries: tuple[FatbinEntry, ...]
    lowered_names: Mapping[str, str] = field(default_factory=dict, repr=False)
    signatures: Mapping[str, KernelSignature] = field(default_factory=dict, repr=False)

    def __hash__(self) -> int:
        return hash(self.data)

    @classmethod
    def build(cls, images: Sequence[Image], *, compress: bool = False) -> Self:
        """Build a fatbin from images of one source, such as a cubin and PTX for newer devices.

        Args:
            images: PTX, cubins and LTO-IR.
            compress: whether nvFatbin compresses them, by Zstandard.

        Raises:
            NvFatbinNotFoundError: nvFatbin is not installed; the text has the command.
            FatbinError: nvFatbin rejects an image.
        """
        checked = checks.sequence_of("Fatbin.build: images", images, Image)
        checks.instance_of("Fatbin.build: compress", compress, bool)
        if not checked:
            raise PtxArgumentValueError("Fatbin.build: images is empty: give one or more images")
        options = ("-compress-all",) if compress else ("-compress=false",)
        with _FatbinBuilder(options) as builder:
            for image in checked:
                builder.add(image)
            data = builder.data()
        built = cls.read(data)
        names: dict[str, str] = {}
        signatures: dict[str, KernelSignature] = {}
        for image in checked:
            names |= image.lowered_names
            signatures |= image.signatures
        return cls(data, built.entries, names, signatures)

    @classmethod
    def read(cls, fatbin: bytes | Path) -> Self:
        """Read a fatbin, such as a file of nvcc -fatbin; entries of unknown kinds are left out.

        Raises:
            ImageFormatError: it is none, or it is damaged.
            OSError: the file cannot be read.
        """
        where = "Fatbin.read: fatbin"
        if isinstance(fatbin, Path):
            data = read_bytes(checks.path(where, fatbin))
        else:
            data = checks.instance_of(where, fatbin, bytes)
        return cls(
            data,
            tuple(
                FatbinEntry(
                    Target(_KINDS[entry.kind], entry.architecture, entry.suffix),
                    entry.name,
                    entry.options,
                    entry,
                )
                for entry in stored.stored_entries(data)
                if entry.kind in _KINDS
            ),
        )

    def image(self) -> Image:
        """Return it as one image, for `Context.load_module` and `ptx.link`."""
        oldest = min((entry.target.number for entry in self.entries), default=10)
        return Image(
            target=Target(ImageKind.FATBIN, oldest),
            data=self.data,
            lowered_names=self.lowered_names,
            signatures=self.signatures,
            origin=ImageOrigin.GIVEN,
        )

    def image_for(self, compute_capability: tuple[int, int]) -> Image:
        """Return the image that fits a device best: machine code, else PTX.

        Raises:
            UnsupportedTargetError: none runs on such a device.
        """
        major, minor = checks.int_pair("image_for: compute_capability", compute_capability)
        order = (ImageKind.PTX, ImageKind.CUBIN)
        fitting = [
            entry
            for entry in self.entries
            if entry.target.kind in order and entry.target.runs_on((major, minor))
        ]
        if not fitting:
            targets = tuple(entry.target for entry in self.entries)
            raise UnsupportedTargetError(
                f"no image of the fatbin runs on compute capability {major}.{minor}: it has "
                f"{', '.join(map(str, targets)) or 'none'}",
                None,
                targets,
            )
        return max(
            fitting,
            key=lambda e: (order.index(e.target.kind), e.target.number, e.target.suffix == "a"),
        ).image()


class _FatbinBuilder(_nvrtc.InUse):
    """One handle of nvFatbin; the end of its `with` block destroys it."""

    def __init__(self, options: Sequence[str]) -> None:
        self._api = _nvrtc.fatbin_api()
        # nvFatbinResult nvFatbinCreate(nvFatbinHandle *, const char **options, size_t)
        self._handle = self._api.create(options, len(options))

    def _destroy(self) -> None:
        # nvFatbinResult nvFatbinDestroy(nvFatbinHandle *)
        self._api.destroy(self._handle)

    def add(self, image: Image) -> None:
        """Add an image."""
        api, data = self._api, image.data
        arch = f"{image.target.number}{image.target.suffix}"
        name = next(iter(image.signatures), "")
        try:
            if image.kind is ImageKind.PTX:
                text = data + b"\0"
                # nvFatbinResult nvFatbinAddPTX(nvFatbinHandle, const char *code, size_t size,
                #                               const char *arch, … *identifier, … *options)
                api.add_ptx(self._handle, text, len(text), arch, name, "")
            elif image.kind is ImageKind.CUBIN:
                # nvFatbinResult nvFatbinAddCubin(nvFatbinHandle, const void *code, size_t size,
                #                                 const char *arch, const char *identifier)
                api.add_cubin(self._handle, data, len(data), arch, name)
            elif image.kind is ImageKind.LTOIR:
                # nvFatbinResult nvFatbinAddLTOIR(…), as nvFatbinAddPTX
                api.add_ltoir(self._handle, data, len(data), arch, name, "")
            else:
                raise PtxArgumentValueError("Fatbin.build: an image is a fatbin: give its entries")
        except api.nvFatbinError as error:
            raise FatbinError(f"nvFatbin rejects an image, {image.target}: {error}") from error

    def data(self) -> bytes:
        """Return the fatbin."""
        try:
            # nvFatbinResult nvFatbinSize(nvFatbinHandle, size_t *), nvFatbinGet(…, void *buffer)
            data = bytearray(self._api.size(self._handle))
            self._api.get(self._handle, data)
        except self._api.nvFatbinError as error:
            raise FatbinError(f"nvFatbin cannot write the fatbin: {error}") from error
        return bytes(data)
