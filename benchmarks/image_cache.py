"""What the image cache saves: cold against warm, in new processes and in a running one.

    python benchmarks/image_cache.py [--rounds N] [--json]

Needs NVRTC and CUDA's headers, and no GPU. Cold and warm processes take turns. "To the image" is
from before `import ptx` to the image in hand. The interpreter's own start is left out, for it is
the same in both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAIN = "__global__ void k(float* x) { x[threadIdx.x] *= 2.0f; }"
INCLUDING = """
#include <cuda_fp16.h>
#include <cooperative_groups.h>
__global__ void k(__half* x) {
    auto block = cooperative_groups::this_thread_block();
    x[block.thread_rank()] = __hadd(x[block.thread_rank()], x[0]);
}
"""
SOURCES = {"without includes": PLAIN, "cuda_fp16.h and cooperative_groups.h": INCLUDING}

WORKER = """
import json, sys, time
started = time.perf_counter()
import ptx
options = ptx.CompileOptions(target=ptx.Target.cubin("sm_90"))
image = ptx.compile(sys.argv[1], options)
ms = (time.perf_counter() - started) * 1e3
print(json.dumps([ms, image.origin.value]))
"""


def in_new_process(source: str, folder: str) -> tuple[float, str]:
    """Milliseconds to the image, and where it came from."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", WORKER, source],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "CUDADRV_CACHE_DIR": folder},
    )
    ms, origin = json.loads(done.stdout)
    return ms, origin


def processes(source: str, rounds: int) -> dict[str, float]:
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as kept:
        in_new_process(source, kept)
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as empty:
                ms, origin = in_new_process(source, empty)
                assert origin == "compiled"
                cold.append(ms)
            ms, origin = in_new_process(source, kept)
            assert origin == "disk"
            warm.append(ms)
    return {
        "cold_ms": statistics.median(cold),
        "warm_ms": statistics.median(warm),
        "ratio": statistics.median(warm) / statistics.median(cold),
    }


def running(source: str, rounds: int) -> dict[str, float]:
    """Hits in this process: from memory, and from disk by a cache object that is new each time."""
    import ptx

    options = ptx.CompileOptions(target=ptx.Target.cubin("sm_90"))
    with tempfile.TemporaryDirectory() as folder:
        cache = ptx.ImageCache(folder)
        cache.get_or_compile(source, options)
        memory = [clock(lambda: cache.get_or_compile(source, options)) for _ in range(rounds)]
        disk = []
        for _ in range(rounds):
            other = ptx.ImageCache(folder)
            other.get_or_compile(PLAIN + " // what the process learns once", options)
            disk.append(clock(lambda new=other: new.get_or_compile(source, options)))
    return {"memory_ms": statistics.median(memory), "disk_ms": statistics.median(disk)}


def clock(call: object) -> float:
    assert callable(call)
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {
        name: {**processes(source, arguments.rounds), **running(source, 4 * arguments.rounds)}
        for name, source in SOURCES.items()
    }
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for name, result in results.items():
        print(name)
        print(f"  new process:     cold {result['cold_ms']:8.1f} ms, warm {result['warm_ms']:7.2f}")
        print(f"                   warm / cold {result['ratio']:.3f}")
        print(
            f"  running process: memory {result['memory_ms']:.3f} ms, disk {result['disk_ms']:.3f}"
        )


if __name__ == "__main__":
    main()
