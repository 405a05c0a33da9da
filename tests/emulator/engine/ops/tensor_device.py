"""A tensor in memory, kernels by its tensor map, and what NumPy says of its boxes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.model.tensor_map import ELEMENT_TYPES, PixelBox, TensorLayout
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

Bytes = NDArray[np.uint8]
HEAD = """.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .b64 %rd<20>;
    .shared .align 1024 .b8 s[16384]; .shared .align 8 .b64 m;
    ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mov.u32 %r5, s; mov.u32 %r6, m; setp.eq.u32 %p1, %r1, 0;
"""
PARAMS = ".param .u64 map, .param .u64 out"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra W;"
SIGNAL = "mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
BACK = "cp.async.bulk.global.shared::cta.bulk_group"
# By 16-byte pieces of rows of 128 bytes, as the CUDA Programming Guide draws them: with 32 bytes
# every other row exchanges neighbours, and so on.
PATTERNS = {0: 1, 1: 2, 2: 4, 3: 8}
NUMBERS = {each.name: number for number, each in ELEMENT_TYPES.items()}


def arrive(nbytes: int) -> str:
    return f"mbarrier.init.shared.b64 [m], 1;mbarrier.arrive.expect_tx.shared.b64 _, [m], {nbytes};"


def load(
    coordinates: Sequence[int | str], *, words: str = "tile", signal: str = SIGNAL, tail: str = ""
) -> str:
    names = ", ".join(map(str, coordinates))
    return (
        f"cp.async.bulk.tensor.{len(coordinates)}d.shared::cluster.global.{words}.{signal}"
        f" [%r5], [%rd1, {{{names}}}], [m]{tail};"
    )


def swizzled(box: Bytes, swizzle: int) -> Bytes:
    """A box as it lies in shared memory: pieces of 16 bytes, in rows of eight."""
    rows = PATTERNS[swizzle]
    padded = np.zeros(-(-len(box) // 1024) * 1024, np.uint8)
    padded[: len(box)] = box
    pieces = padded.reshape(-1, 8, 16)
    found = np.zeros_like(pieces)
    for row, column in itertools.product(range(len(pieces)), range(8)):
        found[row, column ^ row % rows] = pieces[row, column]
    return found.reshape(-1)


def box_of(
    x: NDArray[np.generic],
    start: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    fill: object = 0,
) -> NDArray[np.generic]:
    """The box of an array, outermost axis first, one element after the other."""
    counts = [-(-n // step) for n, step in zip(box, steps, strict=True)]
    found = np.full(counts, fill, x.dtype)
    for at in itertools.product(*map(range, counts)):
        where = tuple(s + k * step for s, k, step in zip(start, at, steps, strict=True))
        if all(0 <= w < n for w, n in zip(where, x.shape, strict=True)):
            found[at] = x[where]
    return found


class Device:
    """A tensor in memory, whose rows may be padded, and a kernel by its tensor map."""

    def __init__(
        self,
        body: str,
        x: NDArray[np.generic],
        box: Sequence[int],
        *,
        swizzle: int = 0,
        steps: Sequence[int] | None = None,
        nan: bool = False,
        pixels: PixelBox | None = None,
        element: str = "",
        cluster: int = 1,
        rank: int = 0,
    ) -> None:
        text = ptx_text(HEAD + body + "\nret;", PARAMS)
        if cluster > 1:
            text = text.replace(")\n{", f")\n.reqnctapercluster {cluster}\n{{")
        self.runner = KernelRunner(text, 1 << 22)
        row = -(-x.shape[-1] * x.itemsize // 16) * 16
        self.padded = np.zeros((*x.shape[:-1], row // x.itemsize), x.dtype)
        self.padded[..., : x.shape[-1]] = x
        self.x = x
        self.address = self.runner.put(self.padded, "tensor")
        names = {"f": "f", "i": "s", "u": "u"}
        name = element or f"{names[x.dtype.kind]}{8 * x.itemsize}"
        self.layout = TensorLayout(
            self.address,
            NUMBERS[name],
            x.shape[::-1],
            self.padded.strides[-2::-1],
            () if pixels else tuple(box)[::-1],
            tuple(steps or (1,) * x.ndim)[::-1],
            swizzle,
            nan,
            pixels,
        )

    def launched(
        self,
        nbytes: int,
        grid: int = 1,
        block: int = 1,
        *,
        limits: Limits | None = None,
        order: LaunchOrder | None = None,
    ) -> Bytes:
        data = np.frombuffer(self.layout.encode(), np.uint8)
        tensor_map = self.runner.put(data, "map")
        out = self.runner.put(np.zeros(nbytes, np.uint8), "result")
        self.runner.launch(
            "k", grid, block, tensor_map, out, limits=limits or Limits(), order=order
        )
        return np.asarray(self.runner.get(out, nbytes, np.uint8))

    def tensor(self) -> NDArray[np.generic]:
        """What stands in the tensor now."""
        found = self.runner.get(self.address, self.padded.size, self.x.dtype)
        return np.asarray(found).reshape(self.padded.shape)[..., : self.x.shape[-1]]


def noise(shape: Sequence[int], dtype: str) -> NDArray[np.generic]:
    rng = np.random.default_rng(3)
    return rng.integers(1, 100, shape).astype(dtype)


def loading(coordinates: Sequence[int | str], nbytes: int) -> str:
    """A kernel that loads one box and writes it out as it lies."""
    return f"{arrive(nbytes)} {load(coordinates)} {WAIT} {BACK} [%rd2], [%r5], {nbytes};"
