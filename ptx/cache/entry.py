"""A stored image: how it is written and read. Plain values only; nothing is unpickled or run."""

from __future__ import annotations

import json
import struct
from typing import Any

from ptx.cache.folder import seal, unseal
from ptx.cache.key import Key, sealed_key
from ptx.image import Image, ImageOrigin
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

_LENGTHS = struct.Struct("<4Q")


def encode(image: Image, key: Key) -> bytes:
    """The bytes of an entry: lengths, key, description, data, PTX (where it is not the data)."""
    description = {
        "kind": image.kind.value,
        "number": image.target.number,
        "suffix": image.target.suffix,
        "log": image.log,
        "lowered_names": dict(image.lowered_names),
        "signatures": [signature.to_json() for signature in image.signatures.values()],
        "compiler": image.compiler,
        "build_ms": image.build_ms,
        "has_ptx": image.ptx is not None,
    }
    name = _dump([key.digest, dict(key.parts), key.headers])
    text = b"" if image.ptx is None or image.kind is ImageKind.PTX else image.ptx.encode()
    blocks = (name, _dump(description), image.data, text)
    return seal(b"".join((_LENGTHS.pack(*map(len, blocks)), *blocks)))


def decode(data: bytes, digest: str) -> Image | None:
    """The image of an entry, or None if the bytes are damaged or another key's."""
    blocks = _blocks(data)
    if blocks is None:
        return None
    try:
        if not blocks[0].startswith(f'["{digest}",'.encode()):
            return None
        return _image(json.loads(blocks[1]), blocks[2], blocks[3])
    except (ValueError, KeyError, TypeError, IndexError):
        return None  # sealed by another version of this format


def decode_key(data: bytes) -> Key | None:
    """The key of an entry, or None if the bytes are damaged or do not have the digest they say."""
    blocks = _blocks(data)
    if blocks is None:
        return None
    try:
        digest, parts, headers = json.loads(blocks[0])
        key = sealed_key(parts, tuple((path, content) for path, content in headers))
    except (ValueError, KeyError, TypeError):
        return None
    return key if key.digest == digest else None


def _image(description: dict[str, Any], data: bytes, text: bytes) -> Image:
    """The image of a description as `encode` writes it (Any: JSON, checked by use)."""
    kind = ImageKind(description["kind"])
    ptx = None
    if description["has_ptx"]:
        ptx = (data if kind is ImageKind.PTX else text).decode()
    compiler = description["compiler"]
    signatures = map(KernelSignature.from_json, description["signatures"])
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


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
