"""The pictures of the gallery, of what the examples return: ``python -m tools.draw_gallery``.

It needs NumPy alone, and draws the same files from the same results.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from examples import (
    heat,
    histogram,
    image_filter,
    n_body,
    reduction,
    several_gpus,
    sort_rows,
    tensor_cores,
)

from .drawing import Drawing

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images" / "gallery"
Pixels = npt.NDArray[np.uint8]
# From dark blue over red to light yellow, evenly brighter.
_HEAT: Final = np.array(
    [(13, 8, 60), (84, 15, 109), (156, 40, 100), (212, 72, 66), (245, 125, 21), (250, 193, 39),
     (252, 255, 180)], float,
)  # fmt: skip


def coloured(values: npt.NDArray[Any], scale: int) -> Pixels:
    """Numbers as colours from their least to their greatest, each `scale` pixels wide and high."""
    share = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    place = share * (len(_HEAT) - 1)
    below = np.minimum(place.astype(int), len(_HEAT) - 2)
    rest = (place - below)[..., None]
    return enlarged(_HEAT[below] * (1 - rest) + _HEAT[below + 1] * rest, scale)


def grey(values: npt.NDArray[Any], scale: int) -> Pixels:
    """Numbers from 0 to 1 as shades of grey."""
    return enlarged(np.repeat(255.0 * values[..., None], 3, axis=2), scale)


def enlarged(pixels: npt.NDArray[Any], scale: int) -> Pixels:
    """Each pixel as a square."""
    return np.kron(np.clip(pixels, 0, 255).astype(np.uint8), np.ones((scale, scale, 1), np.uint8))


def beside(*panels: Pixels) -> Pixels:
    """Pictures of one height, with white space between them."""
    gap = np.full((panels[0].shape[0], 16, 3), 255, np.uint8)
    parts = [part for panel in panels for part in (panel, gap)]
    return np.concatenate(parts[:-1], axis=1)


def png(pixels: Pixels) -> bytes:
    """A PNG file of red, green and blue."""
    height, width, _ = pixels.shape
    rows = np.insert(pixels.reshape(height, width * 3), 0, 0, axis=1)  # each without a filter

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.astype(np.uint8).tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def svg(width: int, height: int, title: str, *elements: str) -> bytes:
    """A drawing of elements as they are."""
    drawing = Drawing(width, height, title)
    for element in elements:
        drawing.add(element)
    return drawing.svg().encode()


def points(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> str:
    """Coordinates of a line."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _reduction() -> bytes:
    low, high, mean = reduction.summary(reduction.noisy_signal())
    x = 20 + np.arange(len(mean)) * 680 / len(mean)
    up, down, middle = (120 - 70 * values for values in (high, low, mean))
    band = points(np.append(x, x[::-1]), np.append(up, down[::-1]))
    return svg(
        720,
        240,
        "The least, greatest and mean value of each section of a signal",
        f'<polygon points="{band}" fill="#bbf7d0" stroke="#166534" stroke-width="0.7"/>',
        f'<polyline points="{points(x, middle)}" fill="none" stroke="#166534" stroke-width="2"/>',
    )


def _histogram() -> bytes:
    bins = histogram.histogram(histogram.grey_image())
    bars = [
        f'<rect x="{20 + 2.65 * k:.2f}" y="{220 - 190 * n / np.max(bins):.1f}" width="2.4" '
        f'height="{190 * n / np.max(bins):.1f}" fill="rgb({k},{k},{k})" '
        'stroke="#475569" stroke-width="0.4"/>'
        for k, n in enumerate(bins.tolist())
        if n
    ]
    ground = '<rect x="12" y="10" width="696" height="214" fill="#e0e7ff"/>'
    return svg(720, 236, "How many pixels have each brightness", ground, *bars)


def _n_body() -> bytes:
    found = n_body.paths(*n_body.disc(), 60)[:, :, :2] * 80 + 200
    lines = [
        f'<polyline points="{points(found[:, k, 0], found[:, k, 1])}" fill="none" '
        'stroke="#4f46e5" stroke-width="0.7"/>'
        for k in range(1, n_body.BODIES)
    ]
    last = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>' for x, y in found[-1, 1:]]
    heavy = f'<circle cx="{found[-1, 0, 0]:.1f}" cy="{found[-1, 0, 1]:.1f}" r="7" fill="#b45309"/>'
    return svg(
        400, 400, "The paths of 128 bodies", *lines, '<g fill="#312e81">', *last, "</g>", heavy
    )


def _heat() -> bytes:
    plate = heat.cold_plate()
    once, *_, last = heat.snapshots(plate, 6)
    return png(beside(*(coloured(part, 3) for part in (plate, once, last))))


def _tensor_cores() -> bytes:
    a, b = tensor_cores.factors()
    parts = (a.astype(float), b.astype(float), tensor_cores.product(a, b))
    return png(beside(*(coloured(part, 3) for part in parts)))


def _image_filter() -> bytes:
    image = image_filter.picture()
    return png(beside(grey(image, 3), grey(image_filter.filtered(image, 0.35), 3)))


def _sort_rows() -> bytes:
    rows = sort_rows.noise()
    pair = (rows, sort_rows.sorted_rows(rows))
    return png(beside(*(enlarged(np.repeat(part[::, ::, None], 3, axis=2), 2) for part in pair)))


def _several_gpus() -> bytes:
    parts = several_gpus.tiles()
    whole = coloured(np.log1p(np.concatenate([steps for _, steps in parts])), 4)
    row = 0
    for _, steps in parts[:-1]:
        row += 4 * len(steps)
        whole[row - 1 : row + 1] = 255  # between two devices
    return png(whole)


PICTURES: Final[dict[str, Callable[[], bytes]]] = {
    "reduction.svg": _reduction, "heat.png": _heat, "histogram.svg": _histogram,
    "tensor_cores.png": _tensor_cores, "image_filter.png": _image_filter, "n_body.svg": _n_body,
    "sort_rows.png": _sort_rows, "several_gpus.png": _several_gpus,
}  # fmt: skip
"""How each picture is drawn; its name is that of the example."""


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_bytes(draw())


if __name__ == "__main__":
    main()
