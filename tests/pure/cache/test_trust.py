"""What is not this user's alone is neither read nor written; and only the cache's own is removed.

What another user does is done by a child process that gives up root's rights.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

import ptx
from ptx import CompileOptions, ImageCache, ImageOrigin, Target
from ptx.cache import toolchain
from ptx.cache.folder import PrivateFolder, UntrustedFolderError
from ptx.cache.store import STATISTICS, Store, add_to_file
from tests.patience import SECONDS
from tests.pure.cache.other_user import MISSING, OTHER, other_user

if os.name == "nt":
    pytest.skip("no POSIX permissions", allow_module_level=True)

SOURCE: Final = "__global__ void k(int* x) { *x = 1; }"
PTX80: Final = CompileOptions(target=Target.ptx("compute_80"))
DIGEST: Final = "ab" * 32
NEEDS_ROOT: Final = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def in_time(work: Callable[[], object]) -> None:
    """Do it in a thread; a failure where it hangs or raises."""
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(work() is not Exception), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert done, "it hangs or failed"


def use_all(folder: Path) -> ptx.Image:
    """Each thing that a cache does with its folder."""
    cache = ImageCache(folder)
    image = cache.get_or_compile(SOURCE, PTX80)
    cache.close()
    cache.stats()
    cache.verify(remove=True)
    cache.clear()
    return image


def contents(folder: Path) -> dict[str, object]:
    """What every file and folder is, and when it was changed."""
    found: dict[str, object] = {}
    for path in (folder, *folder.rglob("*")):
        held = path.lstat()
        of = path.read_bytes() if stat.S_ISREG(held.st_mode) else os.fspath(path)
        found[str(path)] = (held.st_mode, held.st_uid, held.st_mtime_ns, held.st_nlink, of)
    return found


@pytest.mark.parametrize("place", ["", "images"])
@pytest.mark.parametrize(("mode", "who"), [(0o777, "everybody"), (0o770, "its group")])
def test_a_folder_that_others_can_write_is_left_alone(
    tmp_path: Path, place: str, mode: int, who: str
) -> None:
    folder = tmp_path / "cache"
    ImageCache(folder).get_or_compile(SOURCE, PTX80)
    (folder / "images" / ".new-1-0123456789abcdef").touch()
    (folder / place).chmod(mode)
    before = contents(folder / place)
    with pytest.warns(
        ptx.CacheWarning, match=f"(?s)writable by {who}.*CUDADRV_CACHE_DIR"
    ) as caught:
        assert use_all(folder).origin is ImageOrigin.COMPILED
    assert len(caught) == 1
    assert contents(folder / place) == before


@pytest.mark.parametrize("place", ["memos", "locks"])
def test_images_are_cached_beside_a_folder_that_others_can_write(
    tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "cache"
    (tmp_path / "a.h").touch()
    options = CompileOptions(target=PTX80.target, include_paths=(tmp_path,))
    (folder / place).mkdir(parents=True)
    folder.chmod(0o700)
    (folder / place).chmod(0o770)
    before = contents(folder / place)
    cache = ImageCache(folder)
    with pytest.warns(ptx.CacheWarning, match=f"{place} is writable by its group") as caught:
        cache.get_or_compile(f'#include "a.h"\n{SOURCE}', options)
    # The second time without a warning, which would be an error here.
    cache.get_or_compile(f'#include "a.h"\n{SOURCE} ', options)
    assert len(caught) == 1
    assert cache.stats().entries == 2
    assert contents(folder / place) == before


@NEEDS_ROOT
def test_a_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    ImageCache(folder).get_or_compile(SOURCE, PTX80)
    os.chown(folder, OTHER, OTHER)
    before = contents(folder)
    with pytest.warns(ptx.CacheWarning, match=f"belongs to user {OTHER}"):
        assert use_all(folder).origin is ImageOrigin.COMPILED
    assert contents(folder) == before


@NEEDS_ROOT
def test_a_link_that_another_user_made_is_not_followed(tmp_path: Path) -> None:
    mine, link = tmp_path / "mine", tmp_path / "link"
    mine.mkdir(mode=0o700)
    link.symlink_to(mine)
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    with pytest.warns(ptx.CacheWarning, match=f"is a link that user {OTHER} made"):
        assert use_all(link).origin is ImageOrigin.COMPILED
    assert list(mine.iterdir()) == []


def test_ones_own_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    ImageCache(tmp_path / "link").get_or_compile(SOURCE, PTX80)
    assert ImageCache(tmp_path / "disk").get_or_compile(SOURCE, PTX80).origin is ImageOrigin.DISK


@pytest.mark.parametrize("name", ["images", "memos", "locks"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    folder, mine = tmp_path / "cache", tmp_path / "mine"
    for path in (folder, mine):
        path.mkdir(mode=0o700)
    (folder / name).symlink_to(mine)
    with pytest.warns(ptx.CacheWarning, match="is a link"):
        assert use_all(folder).origin is ImageOrigin.COMPILED
    assert list(mine.iterdir()) == []


def spoils() -> list[str]:
    return [STATISTICS, toolchain.FILE, f"locks/{DIGEST[:2]}", f"images/{DIGEST}.image"]


@pytest.mark.parametrize("name", spoils())
@pytest.mark.parametrize("kind", ["link", "hard link", "FIFO", "folder"])
def test_a_link_or_a_fifo_in_the_place_of_a_file_changes_and_delays_nothing(
    tmp_path: Path, name: str, kind: str
) -> None:
    folder, mine = tmp_path / "cache", tmp_path / "mine"
    store = Store(folder, 1 << 20)
    store.images.ensure()
    store.top.below("locks").ensure()
    mine.write_text("mine")
    mine.chmod(0o600)
    os.utime(mine, (1e9, 1e9))
    match kind:
        case "link":
            (folder / name).symlink_to(mine)
        case "hard link":
            (folder / name).hardlink_to(mine)
        case "FIFO":
            os.mkfifo(folder / name)
        case _:
            (folder / name).mkdir()

    def use() -> None:
        toolchain.build_of("nvrtc", store.top)
        add_to_file(store.top, {"misses": 1})
        assert store.read(DIGEST) in (None, b"mine")
        with store.lock(DIGEST), contextlib.suppress(OSError):
            store.write(DIGEST, b"an entry")
        store.clear()

    in_time(use)
    assert mine.read_text() == "mine"
    assert mine.stat().st_mtime == 1e9


@pytest.fixture
def seen_by_all() -> Iterator[Path]:
    """A folder that other users can look into."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@NEEDS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_lock_that_another_user_holds_costs_no_time(seen_by_all: Path) -> None:
    folder = seen_by_all / "cache"
    store = Store(folder, 1 << 20)
    with store.lock(DIGEST) as held:
        assert held
    path = folder / "locks" / DIGEST[:2]
    for each in (folder, folder / "locks"):
        each.chmod(0o755)
    path.chmod(0o644)
    locked: list[bool] = []

    def lock() -> None:
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX)

    def use() -> None:
        with store.lock(DIGEST) as held:
            locked.append(held)

    with other_user(lock):
        with path.open() as own, pytest.raises(BlockingIOError):
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        in_time(use)
    assert locked == [False]


def test_files_of_the_users_own_survive_eviction_and_clearing(tmp_path: Path) -> None:
    names = [
        "images/holiday.jpg", "images/a.image", f"images/{DIGEST}.image.jpg", "images/.new-album",
        "memos/todo.memo", "memos/note.txt", "toolchain", "statistics", ".new-things",
        "headers-13.0/mine.h", "headers-mine/.nvrtc_headers_version",
    ]  # fmt: skip
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(name.encode() * 100)
        os.utime(path, (1e9, 1e9))
    store = Store(tmp_path, 4000)
    for number in range(8):
        store.write(f"{number:064x}", bytes(1000))
    entries, nbytes = store.usage()
    assert (entries, nbytes) == (4, 4000)
    cache = ImageCache(tmp_path, max_bytes=4000)
    cache.get_or_compile(SOURCE, PTX80)
    cache.close()
    cache.clear()
    assert {name: (tmp_path / name).read_bytes() for name in names} == {
        name: name.encode() * 100 for name in names
    }
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert {name for name in left - set(names) if not name.startswith("locks/")} == set()


def test_an_entry_dated_in_the_future_is_evicted_first(tmp_path: Path) -> None:
    store = Store(tmp_path, 4000)
    for number in range(4):
        store.write(f"{number:064x}", bytes(900))
    future = time.time() + 1e8
    os.utime(tmp_path / "images" / f"{2:064x}.image", (future, future))
    store.write(f"{4:064x}", bytes(900))
    assert f"{2:064x}" not in store.digests()
    assert len(store.digests()) == 4


def test_folders_above_are_made_for_this_user_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        ImageCache(tmp_path / "a" / "b" / "cache").get_or_compile(SOURCE, PTX80)
    finally:
        os.umask(old)
    for name in ("a", "a/b", "a/b/cache", "a/b/cache/images", "a/b/cache/locks"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700, name


def test_another_folder_put_in_the_place_of_one_that_is_open_gets_nothing(tmp_path: Path) -> None:
    """As somebody may who can write to the folder above."""
    folder, other = PrivateFolder(tmp_path / "cache"), tmp_path / "other"
    folder.ensure()
    other.mkdir(mode=0o700)
    with folder._opened() as opened:
        (tmp_path / "cache").rename(tmp_path / "moved")
        other.rename(tmp_path / "cache")
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=opened))
    assert [p.name for p in (tmp_path / "moved").iterdir()] == ["file"]
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_write_into_a_folder_that_goes_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, replace = Store(tmp_path / "cache", 1 << 20), os.replace
    cleared: list[int] = []

    def clear_and_replace(*paths: str, src_dir_fd: int, dst_dir_fd: int) -> None:
        if not cleared:
            cleared.append(Store(tmp_path / "cache", 1 << 20).clear())
        replace(*paths, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "replace", clear_and_replace)
    store.write(DIGEST, b"an entry")
    assert store.read(DIGEST) == b"an entry"
    assert cleared == [0]


def test_an_entry_larger_than_the_bound_is_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path, 1000)
    store.write(DIGEST, b"an entry")
    with (tmp_path / "images" / f"{DIGEST}.image").open("ab") as file:
        file.truncate(1 << 40)
    assert store.read(DIGEST) is None


def test_what_may_not_be_trusted_reports_what_to_do(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    with pytest.raises(UntrustedFolderError, match="chmod go-w") as caught:
        PrivateFolder(tmp_path).read("file")
    assert caught.value.errno is None or caught.value.errno == errno.EPERM
