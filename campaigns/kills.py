"""Sixteen processes on one cache folder, killed at random while they read, write, evict and clear.

Every read gives the right image or a miss, no process hangs, and what the killed ones left goes.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import signal
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Final

from ptx import CompileOptions, ImageCache, Target
from ptx.cache.store import Store, decode

from .cached_images import get, image_of, key_of
from .report import Report

PROCESSES: Final = 16
NUMBERS: Final = 64
MAX_BYTES: Final = 600_000
MEMORY_BYTES: Final = 100_000
HANGS_AFTER_SECONDS: Final = 60.0
COUNTED: Final = ("things done", "images asked for", "compilations", "clears", "checks", "ends")
_SOURCE: Final = "__global__ void k(int* x) {{ *x = {}; }}"
_PTX80: Final = CompileOptions(target=Target.ptx("compute_80"))


class Tallies:
    """Counts in memory that all processes share; a killed one's are not lost."""

    def __init__(self) -> None:
        self._counts = memoryview(mmap.mmap(-1, PROCESSES * len(COUNTED) * 8)).cast("Q")

    def add(self, place: int, what: str) -> None:
        """Count one for the process in this place."""
        self._counts[place * len(COUNTED) + COUNTED.index(what)] += 1

    def of(self, place: int) -> int:
        """How many things the processes in this place did."""
        return self._counts[place * len(COUNTED)]

    def sum(self, what: str) -> int:
        """The count of all."""
        return sum(self._counts[COUNTED.index(what) :: len(COUNTED)])


class Worker:
    """What one process does, until it is killed or told to stop."""

    def __init__(self, folder: Path, place: int, seed: int, tallies: Tallies, said: int) -> None:
        self.folder = folder
        self.place = place
        self.tallies = tallies
        self.said = said
        self.random = random.Random(seed)
        self.stopped = False
        self.cache = ImageCache(folder, max_bytes=MAX_BYTES, memory_bytes=MEMORY_BYTES)

    def run(self) -> None:
        """Use the cache; what does not hold is said to the parent."""
        os.nice(10)  # so that the parent comes to kill
        signal.signal(signal.SIGTERM, self._stop)
        warnings.simplefilter("error")
        while not self.stopped:
            try:
                wrong = self._act()
            except Exception:
                wrong = traceback.format_exc()
            if wrong:
                os.write(self.said, f"{wrong[-1500:]}\0".encode())
            self.tallies.add(self.place, "things done")

    def _stop(self, *_: object) -> None:
        self.stopped = True

    def _act(self) -> str:
        """Do one thing; what is wrong with it, or nothing."""
        chance = self.random.random()
        if chance < 0.003:
            self.cache.clear()
            self.tallies.add(self.place, "clears")
        elif chance < 0.05:
            damaged = self.cache.verify().damaged
            self.tallies.add(self.place, "checks")
            # What another evicts or clears in between cannot be read.
            torn = [digest for digest in damaged if self._is_torn(digest)]
            return f"torn entries: {torn}" if torn else ""
        elif chance < 0.1:
            self.cache.close()
            self.cache = ImageCache(self.folder, max_bytes=MAX_BYTES, memory_bytes=MEMORY_BYTES)
            self.tallies.add(self.place, "ends")
        elif chance < 0.12:
            return self._compile(self.random.randrange(4))
        else:
            number = self.random.randrange(NUMBERS)
            self.tallies.add(self.place, "images asked for")
            return "" if get(self.cache, number) else f"image {number} is wrong"
        return ""

    def _is_torn(self, digest: str) -> bool:
        data = Store(self.folder, MAX_BYTES).read(digest)
        return data is not None and decode(data, digest) is None

    def _compile(self, number: int) -> str:
        image = self.cache.get_or_compile(_SOURCE.format(number), _PTX80)
        self.tallies.add(self.place, "compilations")
        right = f", {number};" in (image.ptx or "")
        return "" if right else f"the kernel of {number} is wrong"


class Crowd:
    """The processes, of which one after the other is killed and another put in its place."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.tallies = Tallies()
        self.hears, self.said = os.pipe()
        os.set_blocking(self.hears, False)
        self.born = 0
        self.children = [self._start(place) for place in range(PROCESSES)]
        self.seen = [(time.monotonic(), 0)] * PROCESSES

    def _start(self, place: int) -> int:
        self.born += 1
        seed = self.random.getrandbits(32)
        child = os.fork()
        if child == 0:
            try:
                Worker(self.folder, place, seed, self.tallies, self.said).run()
            finally:
                os._exit(0)
        return child

    def kill_one(self) -> None:
        """Kill one in the middle of whatever it does."""
        place = self.random.randrange(PROCESSES)
        os.kill(self.children[place], signal.SIGKILL)
        os.waitpid(self.children[place], 0)
        self.children[place] = self._start(place)
        self.seen[place] = (time.monotonic(), self.tallies.of(place))

    def hanging(self) -> list[int]:
        """The places of processes that have done nothing for long."""
        now, hang = time.monotonic(), []
        for place, (since, count) in enumerate(self.seen):
            if self.tallies.of(place) != count:
                self.seen[place] = (now, self.tallies.of(place))
            elif now - since > HANGS_AFTER_SECONDS:
                hang.append(place)
        return hang

    def stop(self) -> int:
        """Tell all to end; how many did not and were killed."""
        for child in self.children:
            os.kill(child, signal.SIGTERM)
        deadline, hang = time.monotonic() + HANGS_AFTER_SECONDS, 0
        for child in self.children:
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    hang += 1
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    break
                time.sleep(0.01)
        return hang

    def heard(self) -> list[str]:
        """What the processes said."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while read := os.read(self.hears, 1 << 16):
                text += read
        return [said for said in text.decode(errors="replace").split("\0") if said]


def run_campaign(seconds: float, seed: int) -> Report:
    """Kill one of sixteen processes again and again, for about so long."""
    outcome = Report()
    if not hasattr(os, "fork"):
        outcome.skipped["kills"] = "processes cannot be forked here"
        return outcome
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name) / "cache"
        crowd = Crowd(folder, seed)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not outcome.failures:
            time.sleep(crowd.random.uniform(0.0, 0.04))
            crowd.kill_one()
            outcome.count("kills")
            outcome.failures += [f"process {p} hangs; seed {seed}" for p in crowd.hanging()]
            outcome.failures += [f"{said}; seed {seed}" for said in crowd.heard()]
        if hang := crowd.stop():
            outcome.failures.append(f"{hang} processes do not end; seed {seed}")
        outcome.failures += [f"{said}; seed {seed}" for said in crowd.heard()]
        for what in COUNTED[1:]:
            outcome.count(what, crowd.tallies.sum(what))
        _look_at_the_rest(folder, outcome)
    return outcome


def _look_at_the_rest(folder: Path, outcome: Report) -> None:
    """Every entry is whole, every lock free, and what was left unfinished goes."""
    store = Store(folder, MAX_BYTES)
    for number in range(NUMBERS):
        key = key_of(number)
        data = store.read(key.digest)
        outcome.count("entries read afterwards", data is not None)
        image = decode(data, key.digest) if data is not None else None
        if data is not None and (image is None or image.data != image_of(number).data):
            outcome.failures.append(f"the entry of {number} is torn or another's")
        with store.lock(key.digest, 0.0) as held:
            if not held and data is None:
                outcome.failures.append(f"the lock of {number} is held by nobody that lives")
    cache = ImageCache(folder, max_bytes=MAX_BYTES)
    wrong = [number for number in range(NUMBERS) if not get(cache, number)]
    outcome.failures += [f"image {number} is wrong" for number in wrong]
    left = list(folder.rglob(".new-*"))
    outcome.count("unfinished files left and removed", len(left))
    for path in left:
        os.utime(path, (time.time() - 60,) * 2)
    Store(folder, MAX_BYTES).write(key_of(0).digest, b"one write looks for them")
    if still := list(folder.rglob(".new-*")):
        outcome.failures.append(f"{len(still)} unfinished files stay")
    nbytes = sum(path.stat().st_size for path in (folder / "images").iterdir())
    if nbytes > MAX_BYTES:  # the last write counted them
        outcome.failures.append(f"{nbytes} bytes of images are above the bound")
