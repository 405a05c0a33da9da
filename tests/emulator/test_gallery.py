"""The gallery's pictures show what the examples beside them compute now."""

from __future__ import annotations

import importlib
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest

from cudadrv import emulator
from tests.documents.__main__ import ROOT
from tools import draw_gallery

PAGE: Final = ROOT / "docs" / "gallery.md"
REDRAW: Final = "python -m tools.draw_gallery"
_IMAGE: Final = re.compile(r"!\[[^]]+\]\((images/gallery/([^)]+))\)")
_EXAMPLE: Final = re.compile(r"literalinclude\} \.\./examples/(\w+)\.py$", re.MULTILINE)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
# Versions of NumPy may round a last digit in another way.
_DIGIT, _SHADE = 0.11, 1


def sections() -> dict[str, tuple[Path, str]]:
    """Return the file of each picture of the page, and the example of its section, by its name."""
    pictures = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        (path, name), *further = _IMAGE.findall(section)
        (example,) = _EXAMPLE.findall(section)
        assert not further
        pictures[name] = PAGE.parent / path, example
    return pictures


SECTIONS: Final = sections()


def drawn(name: str) -> bytes:
    """Return a picture of what its example computes now."""
    with emulator.session(devices=2):
        return draw_gallery.PICTURES[name]()


def pixels(png: bytes) -> npt.NDArray[np.int16]:
    """Return the (height, width, 3) values of a PNG file without filters."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    start = 8
    while start < len(png):
        nbytes, kind = struct.unpack_from(">I4s", png, start)
        content = png[start + 8 : start + 8 + nbytes]
        assert struct.unpack_from(">I", png, start + 8 + nbytes) == (zlib.crc32(kind + content),)
        chunks[kind] = chunks.get(kind, b"") + content
        start += 12 + nbytes
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]  # 8 bits of red, green and blue
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3).astype(np.int16)


def elements(svg: bytes) -> Iterator[tuple[str, list[float]]]:
    """Yield the elements of a drawing: their text with "#" for each number, and the numbers."""
    for element in ElementTree.fromstring(svg).iter():
        text = f"{element.tag} {sorted(element.attrib.items())} {(element.text or '').strip()}"
        yield _NUMBER.sub("#", text), [float(number) for number in _NUMBER.findall(text)]


def is_same(name: str, committed: bytes, new: bytes) -> bool:
    """Return whether two files show the same, apart from rounding."""
    if name.endswith(".png"):
        first, second = pixels(committed), pixels(new)
        return first.shape == second.shape and bool((abs(first - second) <= _SHADE).all())
    first_elements, second_elements = list(elements(committed)), list(elements(new))
    return [text for text, _ in first_elements] == [text for text, _ in second_elements] and all(
        np.allclose(numbers, new_numbers, rtol=0, atol=_DIGIT)
        for (_, numbers), (_, new_numbers) in zip(first_elements, second_elements, strict=True)
    )


def computing(example: ModuleType) -> list[FunctionType]:
    """Return the functions of an example that use its kernels."""
    functions = [value for value in vars(example).values() if isinstance(value, FunctionType)]
    return [
        function
        for function in functions
        if not {"SOURCE", "KERNELS"}.isdisjoint(function.__code__.co_names)
    ]


def test_each_section_has_a_picture_that_is_drawn_of_the_example_beside_it() -> None:
    assert len(SECTIONS) == 8
    for name, (path, example) in SECTIONS.items():
        assert path.is_file()
        assert name.split(".")[0] == example
    assert set(SECTIONS) == set(draw_gallery.PICTURES)
    assert {path.name for path in draw_gallery.FOLDER.iterdir()} == set(SECTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_a_picture_shows_what_its_example_computes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, example = SECTIONS[name]
    module, called = importlib.import_module(f"examples.{example}"), []
    for function in computing(module):

        def recorded(*args: object, _function: FunctionType = function) -> object:
            called.append(_function.__name__)
            return _function(*args)

        monkeypatch.setattr(module, function.__name__, recorded)
    new = drawn(name)
    assert called, f"{name} is not drawn of what {example} computes"
    assert is_same(name, path.read_bytes(), new), f"{path.name} is stale: {REDRAW}"


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_a_stale_picture_is_found(name: str) -> None:
    picture = SECTIONS[name][0].read_bytes()
    assert is_same(name, picture, picture)
    if name.endswith(".png"):
        values = pixels(picture).astype(np.uint8)
        values[5, 7] ^= 2
        assert not is_same(name, picture, draw_gallery.png(values))
        assert not is_same(name, picture, draw_gallery.png(values[1:]))
        return
    for old, new in ((b'.2"', b'.4"'), (b"</svg>", b"<g/></svg>"), (b"fill=", b"stroke=")):
        if old in picture:
            assert not is_same(name, picture, picture.replace(old, new, 1))
