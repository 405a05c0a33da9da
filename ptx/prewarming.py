"""Filling a cache in advance, in several processes if wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptx.argument_checks import checks
from ptx.errors import PtxError
from ptx.image import ImageOrigin
from ptx.image_cache import ImageCache, default_cache
from ptx.options import CompileRequest

__all__ = ["Prewarmed", "prewarm"]


@dataclass(frozen=True, slots=True)
class Prewarmed:
    """The outcome of one request: where its image came from, or the error's text.

    `ms` is the time it took; `index` its place in the list of requests.
    """

    index: int
    name: str
    target: str
    origin: ImageOrigin | None
    ms: float
    error: str = ""


Progress = Callable[[Prewarmed, int, int], None]
"""Called with each result, how many are done, and how many there are."""


def prewarm(
    requests: Sequence[CompileRequest],
    cache: ImageCache | None = None,
    *,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> tuple[Prewarmed, ...]:
    """Compile requests that are not in a cache yet; a source that fails stops no other.

    Args:
        requests: the sources with their options.
        cache: the cache; None is the default one of the process.
        processes: the number of processes that compile. With several the images are on disk
            afterwards, and not in this process's memory.
        on_progress: called after each request, in the order of completion.

    Returns:
        The results, in the order of the requests.
    """
    requests = checks.sequence_of("prewarm: requests", requests, CompileRequest)
    processes = checks.integer("prewarm: processes", processes)
    if on_progress is not None:
        checks.function("prewarm: on_progress", on_progress, takes=3)
    used = default_cache() if cache is None else checks.instance_of("cache", cache, ImageCache)
    results: list[Prewarmed | None] = [None] * len(requests)
    for done, result in enumerate(_results(requests, used, processes), 1):
        results[result.index] = result
        if on_progress is not None:
            on_progress(result, done, len(requests))
    return tuple(result for result in results if result is not None)


def _results(
    requests: Sequence[CompileRequest], cache: ImageCache, processes: int
) -> Iterator[Prewarmed]:
    if processes <= 1 or len(requests) <= 1 or cache.folder is None:
        for index, request in enumerate(requests):
            yield _one(cache, index, request)
        return
    # Saves 20 ms where one process does it.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    # Spawned, not forked: a child of a process that used CUDA cannot use it.
    pool = ProcessPoolExecutor(
        min(processes, len(requests)), mp_context=multiprocessing.get_context("spawn")
    )
    with pool:
        tasks = [
            pool.submit(_in_process, cache.folder, cache.max_bytes, index, request)
            for index, request in enumerate(requests)
        ]
        for task in as_completed(tasks):
            yield task.result()


def _in_process(folder: Path, max_bytes: int, index: int, request: CompileRequest) -> Prewarmed:
    cache = ImageCache(folder, max_bytes=max_bytes)
    try:
        return _one(cache, index, request)
    finally:
        cache.close()


def _one(cache: ImageCache, index: int, request: CompileRequest) -> Prewarmed:
    started = time.perf_counter()
    origin, error = None, ""
    try:
        origin = cache.get_or_build(request).origin
    except PtxError as failure:
        error = str(failure)
    took = (time.perf_counter() - started) * 1e3
    return Prewarmed(index, request.name, str(request.target), origin, took, error)
