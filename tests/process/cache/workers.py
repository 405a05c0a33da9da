"""What the tests' other processes run; each prints one line of JSON."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

from ptx import CompileOptions, Image, ImageCache, ImageKind, Target, nearest_target
from ptx.cache.key import sealed_key
from ptx.cache.store import Store, encode

PTX80 = CompileOptions(target=Target.ptx("compute_80"))


def source(number: int) -> str:
    """One of a family of different kernels."""
    return f"__global__ void k{number}(int* x) {{ x[threadIdx.x] = {number}; }}"


def compile_all(folder: str, count: int, start: float) -> None:
    """Compile `count` sources in an order of one's own, from a moment shared by all processes."""
    cache = ImageCache(folder)
    time.sleep(max(0.0, start - time.time()))
    first = os.getpid() % count
    digests = {}
    for number in (*range(first, count), *range(first)):
        image = cache.get_or_compile(source(number), PTX80, name=f"k{number}.cu")
        digests[number] = hashlib.sha256(image.data).hexdigest()
    print(json.dumps({"digests": digests, "compiled": cache.stats().process.compiled}))


def big_image(number: int) -> Image:
    """An image whose bytes are known, large enough to be killed in."""
    content = bytes([number % 251]) * (1 << 20)
    return Image(Target(ImageKind.CUBIN, 90), content)


def write_for_ever(folder: str) -> None:
    """Write entry after entry, until killed; say so once there is one, however slow that was."""
    store = Store(Path(folder), 1 << 40)
    for number in itertools.count(1):
        key = sealed_key({"number": str(number % 8)})
        store.write(key.digest, encode(big_image(number % 8), key))
        if number == 1:
            print("writing", flush=True)


def hold_lock_and_die(folder: str, digest: str) -> None:
    """Take the lock of an entry and be killed with it."""
    with Store(Path(folder), 1 << 40).lock(digest) as held:
        print(json.dumps({"held": held}), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def hit(folder: str, kernel: str) -> None:
    """Ask for one source, and say what this process loaded for it."""
    os.environ["CUDADRV_CACHE_DIR"] = folder
    target = nearest_target((8, 0))
    image = ImageCache(folder).get_or_compile(kernel, CompileOptions(target=target))
    maps = Path("/proc/self/maps")
    print(
        json.dumps(
            {
                "origin": image.origin.value,
                "signatures": sorted(image.signatures),
                "modules": sorted(m for m in sys.modules if m.startswith(("cuda.b", "cuda.p"))),
                "library": "libnvrtc" in maps.read_text() if maps.exists() else False,
            }
        )
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["compile_all", folder, count, start]:
            compile_all(folder, int(count), float(start))
        case ["write_for_ever", folder]:
            write_for_ever(folder)
        case ["hold_lock_and_die", folder, digest]:
            hold_lock_and_die(folder, digest)
        case ["hit", folder, kernel]:
            hit(folder, kernel)
        case _:
            raise SystemExit(f"unknown: {sys.argv}")
