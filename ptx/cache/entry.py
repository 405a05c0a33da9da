"""A stored image: how it is written and read. Plain values only; nothing is unpickled or run."""

from __future__ import annotations

import struct
from ast import literal_eval
from typing import Any

from ptx.cache.folder import UNREADABLE, seal, unseal
from ptx.cache.key import Key, sealed_key
from ptx.image import Image, ImageOrigin
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

_LENGTHS = struct.Struct("<5Q")


def encode(image: Image, key: Key) -> bytes:
    """The bytes of an entry: lengths, key, description, signatures, data, PTX.

    Key and description are Python literals, which are read without loading JSON's module. PTX is
    left out where it is the data.
    """
    description = {
        "kind": image.kind.value,
        "number": image.target.number,
        "suffix": image.target.suffix,
        "log": image.log,
        "lowered_names": dict(image.lowered_names),
        "compiler": image.compiler,
        "build_ms": image.build_ms,
        "has_ptx": image.ptx is not None,
    }
    name = repr((key.digest, dict(key.parts), key.headers)).encode()
    signatures = "\n".join(signature.to_line() for signature in image.signatures.values())
    text = b"" if image.ptx is None or image.kind is ImageKind.PTX else image.ptx.encode()
    blocks = (name, repr(description).encode(), signatures.encode(), image.data, text)
    return seal(b"".join((_LENGTHS.pack(*map(len, blocks)), *blocks)))


def decode(data: bytes, digest: str) -> Image | None:
    """The image of an entry, or None if the bytes are damaged or another key's."""
    blocks = _blocks(data)
    if blocks is None:
        return None
    try:
        if not blocks[0].startswith(f"('{digest}',".encode()):
            return None
        return _image(literal_eval(blocks[1].decode()), *blocks[2:])
    except UNREADABLE:
        return None  # sealed by another version of this format


def decode_key(data: bytes) -> Key | None:
    """The key of an entry, or None if the bytes are damaged or do not have the digest they say."""
    blocks = _blocks(data)
    if blocks is None:
        return None
    try:
        digest, parts, headers = literal_eval(blocks[0].decode())
        key = sealed_key(parts, headers)
    except UNREADABLE:
        return None
    return key if key.digest == digest else None


def _image(description: dict[str, Any], lines: bytes, data: bytes, text: bytes) -> Image:
    """The image of a description as `encode` writes it (Any: literals, checked by use)."""
    kind = ImageKind(description["kind"])
    ptx = None
    if description["has_ptx"]:
        ptx = (data if kind is ImageKind.PTX else text).decode()
    compiler = description["compiler"]
    signatures = map(KernelSignature.from_line, lines.decode().splitlines())
    return Image(
        target=Target(kind, description["number"], description["suffix"]),
        data=data,
        ptx=ptx,
        log=description["log"],
        lowered_names=description["lowered_names"],
        signatures={signature.name: signature for signature in signatures},
        compiler=None if compiler is None else (compiler[0], compiler[1]),
        build_ms=description["build_ms"],
        origin=ImageOrigin.DISK,
    )


def _blocks(data: bytes) -> list[bytes] | None:
    content = unseal(data)
    if content is None or len(content) < _LENGTHS.size:
        return None
    lengths = _LENGTHS.unpack_from(content)
    if _LENGTHS.size + sum(lengths) != len(content):
        return None
    blocks = []
    start = _LENGTHS.size
    for length in lengths:
        blocks.append(content[start : start + length])
        start += length
    return blocks
