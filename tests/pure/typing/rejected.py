"""Mistakes on top of cudadrv: each line with a comment is an error to every type checker."""

from __future__ import annotations

import numpy as np

import cudadrv
import ptx


def missing(stream: cudadrv.Stream, array: cudadrv.DeviceArray[np.float32]) -> None:
    # Names are looked up at their first use, so a missing one must not pass as Any.
    array.tolist()  # type: ignore[attr-defined]
    stream.handel  # type: ignore[attr-defined]  # noqa: B018
    cudadrv.absent  # type: ignore[attr-defined]  # noqa: B018
    ptx.absent  # type: ignore[attr-defined]  # noqa: B018


def other_elements(stream: cudadrv.Stream, slab: cudadrv.DeviceArray[np.float32]) -> None:
    wrong: cudadrv.DeviceArray[np.int64] = slab  # type: ignore[assignment]
    stream.to_host(slab, np.empty(8, np.int16))  # type: ignore[arg-type, misc, unused-ignore]
    cudadrv.DeviceArena(np.int64).release(3, slab)  # type: ignore[arg-type]
    arena: cudadrv.DeviceArena[np.float64] = cudadrv.DeviceArena(np.float32)  # type: ignore[assignment]
    del wrong, arena


def other_classes(context: cudadrv.Context, texture: cudadrv.texture.Texture) -> None:
    cudadrv.texture.Surface(texture)  # type: ignore[arg-type]
    cudadrv.KernelLibrary({"a.cu": ""}, headers=["a.h"])  # type: ignore[arg-type]
    cudadrv.KernelLibrary({"a.cu": 3})  # type: ignore[dict-item]
    context.compile("", "-O3")  # type: ignore[arg-type]
    cudadrv.LaunchConfig("1", 32)  # type: ignore[arg-type]
