"""The pictures that explain: ``python -m tools.draw_pictures``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from .drawing import BLUE, GREEN, GREY, RED, YELLOW, Drawing

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images"


def allocation() -> Drawing:
    """An array that two streams use, from its allocation to its reuse."""
    d = Drawing(
        720,
        330,
        "An array is allocated on stream A, written there, and read on stream B, which waits for "
        "the write by an event. The program drops the array. Its memory is freed on stream A after "
        "the read on stream B, and the next allocation on A reuses it.",
    )
    d.text(20, 28, "Memory of an array that two streams use", size=15, bold=True)
    for y, name in ((72, "program"), (142, "stream A"), (222, "stream B"), (292, "memory")):
        d.text(20, y + 5, name, size=13, bold=True)
        d.line((100, y), (706, y), arrow=False)
    for x, width, words in (
        (104, 88, "a.zeros(n)"),
        (200, 100, "b: launch(x)"),
        (308, 60, "del x"),
        (560, 100, "a.zeros(n)"),
    ):
        d.box(x, 58, width, 28, words, fill=GREY)
    d.box(114, 128, 130, 28, "allocate, fill x", fill=GREEN)
    d.box(474, 128, 78, 28, "free x", fill=YELLOW)
    d.box(576, 128, 120, 28, "allocate, fill", fill=GREEN)
    d.box(270, 208, 190, 28, "kernel reads x", fill=BLUE)
    d.line((244, 142), (257, 142), (257, 222), (269, 222))
    d.text(262, 186, "waits for the write (event)", size=12)
    d.line((460, 222), (467, 222), (467, 142), (473, 142))
    d.text(474, 186, "waits for the read (event)", size=12)
    d.box(114, 278, 438, 28, "belongs to x, although the program has dropped it", fill=GREEN)
    d.box(576, 278, 120, 28, "reused", fill=GREEN)
    d.line((338, 86), (338, 120), dashed=True)
    d.text(344, 112, "nothing waits on the host", size=12)
    return d


def tiles() -> Drawing:
    """An array scattered over devices."""
    d = Drawing(
        720,
        320,
        "scatter_batched divides an array by the speed of the devices. Each device has a thread, "
        "which calls your function with its tile. The function copies the tile to the device, "
        "launches kernels, and copies the results back into the array.",
    )
    d.text(20, 28, "scatter_batched(runtime, values, work)", size=15, bold=True, mono=True)
    d.text(20, 66, "values", size=13, bold=True)
    widths = (300, 200, 100)
    fills = (GREEN, BLUE, YELLOW)
    names = ("device 0", "device 1", "device 2")
    speeds = ("share 3", "share 2", "share 1")
    x = 100
    for row, (width, fill) in enumerate(zip(widths, fills, strict=True)):
        y = 116 + 56 * row
        d.box(x, 48, width, 30, f"tile {row}", fill=fill)
        d.text(20, y + 14, names[row], size=13, bold=True)
        d.text(20, y + 31, f"thread, {speeds[row]}", size=12)
        d.line((x + width / 2, 78), (x + width / 2, 92), dashed=True, arrow=False)
        for step, words in enumerate(("copy to the device", "launch", "copy back")):
            d.box(150 + 190 * step, y, 160, 36, words, fill=fill)
            if step:
                d.line((120 + 190 * step, y + 18), (149 + 190 * step, y + 18))
        x += width
    d.line((100, 92), (700, 92), arrow=False, dashed=True)
    d.text(704, 112, "work(ordinal, part) of each tile, at the same time", anchor="end", size=12)
    d.text(
        20,
        304,
        "An error in one tile does not stop the others: ScatterError lists the failed tiles.",
        size=13,
    )
    return d


_FINDING: Final = (
    "race: kernel reverse, 4 bytes of shared memory at 0xfc",
    "  write by block (0, 0, 0), thread (63, 0, 0), at reverse.cu:5 (PTX line 27)",
    "  read by block (0, 0, 0), thread (0, 0, 0), at reverse.cu:6 (PTX line 33)",
    "  nothing orders the two: __syncthreads() between them",
)


def finding() -> Drawing:
    """The report of a race, with its parts explained."""
    d = Drawing(
        720,
        330,
        "The report of a race, explained: the kernel and the memory, the first access, the second "
        "access with its line, and what would order the two.",
    )
    d.text(20, 28, "How to read the report of a race", size=15, bold=True)
    for row, line in enumerate(_FINDING):
        y = 44 + 72 * row
        d.box(16, y, 688, 28, fill=RED if row == 0 else GREY)
        d.text(26, y + 19, line, size=13, mono=True)
    notes = (
        "the kernel, and the memory that two threads access: shared, 252 bytes after its start",
        "one access: block and thread, and its line in the source of CUDA and in the PTX",
        "the other access: this line reads what thread 63 writes, perhaps before it is written",
        "a remedy: __syncthreads() between lines 5 and 6",
    )
    for row, note in enumerate(notes):
        d.line((40, 92 + 72 * row), (40, 75 + 72 * row))
        d.text(52, 94 + 72 * row, note, size=13)
    return d


def orders() -> Drawing:
    """A read without a wait, under each order."""
    d = Drawing(
        720,
        400,
        "A program queues a copy to a host array and reads the array without a wait. Under "
        '"immediate" the copy runs at its call, and the value is right by luck. Under "late" the '
        'host reads first, and the value is wrong. Under "random" the seed decides.',
    )
    d.text(20, 28, "A program queues a copy to a host array, and reads the array without a wait.")
    for top, order, words, copied_at, fill in (
        (58, "immediate", "the copy runs at its call: right, by luck", 200, GREEN),
        (168, "late", "the copy runs when something waits for it: wrong in each run", 500, RED),
        (278, "random", "the copy runs at any later call: the seed decides, and repeats", 310,
         YELLOW),
    ):  # fmt: skip
        d.text(20, top + 10, f'"{order}"', bold=True)
        d.text(130, top + 10, words)
        for y, name in ((top + 37, "stream"), (top + 73, "host")):
            d.text(20, y + 5, name, size=13)
            d.line((90, y), (700, y), arrow=False)
        d.box(100, top + 60, 90, 26, "queues", fill=GREY)
        d.box(copied_at, top + 24, 150, 26, "copy to array", fill=fill)
        d.box(370, top + 60, 110, 26, "reads array", fill=fill)
    d.text(20, 384, "stream.synchronize() before the read makes the value right under all three.")
    return d


PICTURES: Final[dict[str, Callable[[], Drawing]]] = {
    "allocation.svg": allocation,
    "orders.svg": orders,
    "tiles.svg": tiles,
    "finding.svg": finding,
}


def main() -> None:
    """Draw all of them."""
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw().svg())


if __name__ == "__main__":
    main()
