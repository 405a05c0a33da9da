"""The ways into a cache folder that the campaign `cache` tries."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import stat
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final

import ptx
from ptx import CompileOptions, ImageCache, Target
from ptx.cache import toolchain
from ptx.cache.store import Store
from tests.pure.cache.other_user import OTHER, other_user

from .cached_images import get

NUMBERS: Final = 6
MAX_BYTES: Final = 400_000
_PTX80: Final = Target.ptx("compute_80")
_INCLUDING: Final = '#include "a.h"\n__global__ void k(int* x) { *x = VALUE; }'


class Place:
    """The folder of one attack, and what did not hold of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder / "cache"
        self.random = random.Random(seed)
        self.wrong: list[str] = []
        mine = folder / "mine"
        mine.mkdir(mode=0o700)
        self.treasure = mine / "treasure"
        self.treasure.write_bytes(b"treasure" * 100)
        self.treasure.chmod(0o600)
        self._treasure_at_first = _contents(mine)

    def check(self, holds: bool, otherwise: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.wrong.append(otherwise)

    def use(self, *, clear: bool | None = None) -> list[str]:
        """Whatever a cache does, twice; the texts of its warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                cache = ImageCache(self.folder, max_bytes=MAX_BYTES)
                for number in self.random.sample(range(NUMBERS), NUMBERS):
                    self.check(get(cache, number), f"image {number} is wrong")
                toolchain.build_of("nvrtc", Store(self.folder, MAX_BYTES).top)
                cache.stats()
                cache.verify(remove=self.random.random() < 0.5)
                cache.close()
            if self.random.random() < 0.5 if clear is None else clear:
                cache.clear()
        self.check(_contents(self.treasure.parent) == self._treasure_at_first, "treasure is lost")
        self.check(len(caught) <= 2, f"{len(caught)} warnings of two caches")
        return [str(each.message) for each in caught if each.category is ptx.CacheWarning]

    def one_file(self) -> Path:
        """One of the cache's files."""
        return self.random.choice(sorted(p for p in self.folder.rglob("*") if p.is_file()))


def damage(place: Place) -> None:
    """Bytes changed, cut, added; entries swapped; files of others."""
    place.use(clear=False)
    for _ in range(4):
        path, other = place.one_file(), place.one_file()
        data = bytearray(path.read_bytes())
        at = place.random.randrange(len(data) + 1)
        match place.random.randrange(6):
            case 0:
                data[at : at + 1] = bytes([place.random.randrange(256)])
            case 1:
                del data[at:]
            case 2:
                data += place.random.randbytes(at)
            case 3:
                data[at:] = bytes(len(data) - at)
            case 4:
                data[:] = place.random.randbytes(at)
            case _:
                data[:], swapped = other.read_bytes(), bytes(data)
                other.write_bytes(swapped)
        path.write_bytes(data)
    place.check(place.use() == [], "damage is warned of")


def put_in_place(place: Place) -> None:
    """Links, FIFOs and folders in the place of the cache's files and folders."""
    place.use(clear=False)
    for _ in range(3):
        target = place.random.choice(sorted(place.folder.rglob("*")))
        if target.is_symlink() or not target.exists():
            continue
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        match place.random.randrange(6):
            case 0:
                target.symlink_to(place.treasure)
            case 1:
                target.symlink_to(place.treasure.parent)
            case 2:
                target.hardlink_to(place.treasure)
            case 3:
                os.mkfifo(target)
            case 4:
                target.symlink_to("/dev/zero")
            case _:
                target.mkdir()
    place.use()


def open_to_others(place: Place) -> None:
    """Folders that a group, everybody or another user can write to."""
    place.use(clear=False)
    folder = place.random.choice([place.folder, place.folder / "images"])
    if os.geteuid() == 0 and place.random.random() < 0.3:
        os.chown(folder, OTHER, OTHER)
    else:
        folder.chmod(0o700 | place.random.choice([0o020, 0o002, 0o022, 0o070, 0o077, 0o072]))
    before = _contents(folder)
    told = place.use()
    place.check(len(told) == 2, f"two caches gave {len(told)} warnings")
    place.check(all("CUDADRV_CACHE_DIR" in text for text in told), "no warning says what to do")
    place.check(_contents(folder) == before, f"what is in {folder.name} was touched")


def files_of_ones_own(place: Place) -> None:
    """The user's own files in the cache's folders, under names that come near to the cache's."""
    place.use(clear=False)
    own: dict[Path, bytes] = {}
    forms = ["{}.jpg", "{}.image", ".new-{}", "statistics{}", "headers-{}", "{:064x}.image.bak"]
    for _ in range(10):
        form, number = place.random.choice(forms), place.random.randrange(100)
        path = place.folder / place.random.choice(["", "images", "memos"]) / form.format(number)
        own[path] = place.random.randbytes(2000)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(own[path])
        os.utime(path, (1e9, 1e9))
    store = Store(place.folder, 50_000)
    for number in range(20):
        store.write(f"{number:064x}", bytes(10_000))
    place.check(store.usage()[1] <= 50_000, "the bound does not hold")
    place.use(clear=True)
    place.check(all(p.exists() and p.read_bytes() == own[p] for p in own), "own files are lost")


def dates(place: Place) -> None:
    """Dates of the future, and from before there were any."""
    place.use(clear=False)
    for path in (place.folder / "images").iterdir():
        date = place.random.choice([time.time() + 1e8, 4e9, 0.0, -1e6, time.time() - 1e8])
        os.utime(path, (date, date))
    store = Store(place.folder, 60_000)
    for number in range(12):
        store.write(f"{number:064x}", bytes(10_000))
        place.check(store.read(f"{number:064x}") is not None, "what was just written is gone")
    place.check(store.usage()[1] <= 60_000, "the bound does not hold")


def clearing(place: Place) -> None:
    """Threads that read and write while another clears."""
    ended = threading.Event()

    def work(seed: int) -> None:
        order = random.Random(seed)
        while not ended.is_set():
            cache = ImageCache(place.folder, max_bytes=MAX_BYTES)
            for _ in range(4):
                number = order.randrange(NUMBERS)
                place.check(get(cache, number), f"image {number} is wrong")

    threads = [
        threading.Thread(target=work, args=(place.random.getrandbits(32),)) for _ in range(3)
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for _ in range(20):
            ImageCache(place.folder, max_bytes=MAX_BYTES).clear()
            time.sleep(place.random.uniform(0.0, 0.005))
        ended.set()
        for thread in threads:
            thread.join()
    place.check(caught == [], f"{[str(each.message) for each in caught]}")


def toggled_header(place: Place) -> None:
    """A header that is now this and now that while it is compiled."""
    header, ended = place.folder.parent / "a.h", threading.Event()
    options = CompileOptions(target=_PTX80, include_paths=(header.parent,))

    def put(value: int, how: int) -> None:
        new = header.with_suffix(".new") if how else header
        new.write_text(f"#define VALUE {value}\n")
        new.replace(header)

    def toggle(order: random.Random) -> None:
        while not ended.is_set():
            for value in (2, 1):
                put(value, order.randrange(2))
                time.sleep(order.choice([0.0, 0.001, 0.005, 0.02]))

    put(1, 0)
    thread = threading.Thread(target=toggle, args=(random.Random(place.random.random()),))
    thread.start()
    for _ in range(4):
        with contextlib.suppress(ptx.CompileError):  # read as it was being written
            ImageCache(place.folder).get_or_compile(_INCLUDING, options)
    ended.set()
    thread.join()
    for value in (1, 2):
        put(value, 0)
        image = ImageCache(place.folder).get_or_compile(_INCLUDING, options)
        place.check(f", {value};" in (image.ptx or ""), f"the image of {value} is another's")


def locks_of_another(place: Place) -> None:
    """Another user who holds every lock that he can open."""
    place.use(clear=False)
    place.folder.parent.chmod(0o755)
    for path in (place.folder, *place.folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else place.random.choice([0o600, 0o644, 0o604]))

    def lock() -> None:
        for path in place.folder.rglob("*"):
            with contextlib.suppress(PermissionError):
                fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)

    with other_user(lock):
        shutil.rmtree(place.folder / "images")
        place.use()


def folders_exchanged(place: Place) -> None:
    """Another user who may write above the folder, and puts links and folders in its place."""
    place.use(clear=False)
    place.folder.parent.chmod(0o777)
    put, away = str(place.folder), str(place.folder) + ".away"

    def exchange() -> None:
        os.rename(put, away)
        if place.random.random() < 0.5:
            os.symlink(place.treasure.parent, put)
        else:
            os.mkdir(put, 0o777)
            os.symlink(place.treasure, f"{put}/{toolchain.FILE}")
            os.symlink(place.treasure.parent, f"{put}/images")

    with other_user(exchange):
        place.use()


def _contents(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in (folder, *folder.rglob("*")):
        of = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(of.st_mode) else b""
        found[str(path)] = (of.st_mode, of.st_uid, of.st_mtime_ns, data)
    return found


ATTACKS: Final[dict[str, Callable[[Place], None]]] = {
    "damaged, swapped and foreign files": damage,
    "links, FIFOs and folders in place of files": put_in_place,
    "folders that others can write": open_to_others,
    "files of the user's own": files_of_ones_own,
    "dates of the future": dates,
    "clearing while others read and write": clearing,
    "headers toggled while they are compiled": toggled_header,
}
AS_ANOTHER: Final[dict[str, Callable[[Place], None]]] = {
    "another user's locks": locks_of_another,
    "another user's folders and links": folders_exchanged,
}
