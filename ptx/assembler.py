"""NVIDIA's assembler for PTX: nvJitLink, in a process of its own.

The separate process always uses NVIDIA's own library. A text that crashes it ends no program. This
process can still replace nvJitLink by another library later.
"""

from __future__ import annotations

import functools
import os
import struct
import subprocess
import sys
import threading
import weakref
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

from ptx import _nvrtc
from ptx.cache.folder import (
    UNREADABLE,
    PrivateFolder,
    cache_settings,
)
from ptx.cache.toolchain import Build, build_of, noted_build
from ptx.errors import LinkError, NvJitLinkNotFoundError
from ptx.linker import Linker, LinkInput, LinkKind

_UNKNOWN_ARCH: Final = "is not defined for option 'gpu-name'"
_MOST_KNOWN: Final = 1024  # results that a process caches
# A text of a few KiB takes milliseconds. nvJitLink has read some texts without end.
SECONDS: Final = 300.0
SECONDS_PER_BYTE: Final = 1 / 1024
_LENGTH: Final = struct.Struct("<Q")
_LENGTHS: Final = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Assembly:
    """The result of assembling a text.

    Attributes:
        errors: its log where it rejects the text, else "".
        skipped: why there is no result; else "".
        is_of_text: whether the assembler crashed or hung because of this text.
    """

    errors: str = ""
    skipped: str = ""
    is_of_text: bool = False


class Assembler:
    """nvJitLink as an assembler, with its results cached in the cache folder.

    Its process starts with the first text that is not in the cache. Threads may share it: two
    threads that assemble at once use a process each. A forked child starts one of its own.
    """

    def __init__(self, folder: Path | None) -> None:
        self._top = PrivateFolder(folder.absolute()) if folder else None
        self._memos = self._top.below("memos") if self._top else None
        self._build: Build | None = None
        self._known: dict[str, Assembly] = {}
        self._idle: list[_AssemblerProcess] = []

    @property
    def build(self) -> Build:
        """The nvJitLink that assembles, read from a note in the cache folder if there is one.

        Raises:
            NvJitLinkNotFoundError: it is not installed, or its process does not start.
        """
        if self._build is None:
            self._build = noted_build("nvJitLink", self._top)
        if self._build is None:
            process = _AssemblerProcess(self._top)
            self._build = process.build
            self._idle.append(process)
        return self._build

    def assemble(self, text: str, arch: str) -> Assembly:
        """Assemble a text for an architecture such as "sm_90a".

        Raises:
            NvJitLinkNotFoundError: it is not installed, or its process does not start.
        """
        content = text.encode("utf-8", "surrogatepass")
        key = repr(("assembly 2", arch, str(self.build), sha256(content).hexdigest()))
        digest = sha256(key.encode()).hexdigest()[:32]
        memo, memos = f"{digest}.memo", self._memos
        assembly = self._known.get(digest) or (
            _assembly(memos.read_literal(memo)) if memos else None
        )
        if assembly is None:
            assembly = self._query(content, arch)
            if memos is not None and not assembly.is_of_text:
                memos.write_literal(memo, (assembly.errors, assembly.skipped))
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[digest] = assembly
        return assembly

    def _query(self, content: bytes, arch: str) -> Assembly:
        """Return the result of a process, which is idle afterwards."""
        process = self._take()
        assembly = process.query(content, arch) if process is not None else None
        if process is None or (assembly is None and not process.is_hung):
            # None was idle, or it has ended since, as by an interrupt of both.
            process = _AssemblerProcess(self._top)
            assembly = process.query(content, arch)
        if assembly is None:
            reason = f"hung for {_limit(content):.0f} s" if process.is_hung else "crashed"
            major, minor = self.build.version
            return Assembly(skipped=f"nvJitLink {major}.{minor} {reason}", is_of_text=True)
        if not self._idle:
            self._idle.append(process)  # else, or after an interrupt, it goes
        return assembly

    def _take(self) -> _AssemblerProcess | None:
        """An idle process of ours. Taken off in one step, as a finalizer may come here too."""
        while self._idle:
            try:
                process = self._idle.pop()
            except IndexError:
                break  # another thread took it
            if process.owner == os.getpid():
                return process
        return None


class _AssemblerProcess:
    """A process that assembles; it ends with this object.

    Attributes:
        pid: its number.
        owner: the process that started it, and alone may use it.
        build: its nvJitLink.
        is_hung: whether a limit of time has ended it.
    """

    def __init__(self, folder: PrivateFolder | None) -> None:
        # Isolated, so that it takes no start-up code of this process; but with its packages.
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from ptx.assembler import serve; serve()"
        )
        command = [sys.executable, "-I", "-c", program, str(folder.path) if folder else ""]
        self.owner: int = os.getpid()
        try:
            # Without buffers, of which a forked child would write out its copy.
            process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            raise _not_started(f"{sys.executable!r} does not start: {error}") from None
        weakref.finalize(self, _end, process, self.owner)
        assert process.stdin is not None  # it is a pipe
        assert process.stdout is not None
        self.pid: int = process.pid
        self._requests: IO[bytes] = process.stdin
        self._output: IO[bytes] = process.stdout
        self._kill = process.kill
        self.is_hung: bool = False
        with self._limited(SECONDS):
            reply = self._receive()
        match reply:
            case (int(major), int(minor)), int(nbytes):
                self.build = Build((major, minor), nbytes)
            case str(remedy), str(reason):
                raise NvJitLinkNotFoundError(remedy, reason)
            case _:
                hung = f"hung for {SECONDS:.0f} s"
                reason = hung if self.is_hung else f"ended with status {process.wait()}"
                raise _not_started(f"its process {reason}")

    def query(self, content: bytes, arch: str) -> Assembly | None:
        """Assemble a text; None if the process ended."""
        name = arch.encode()
        data = memoryview(_LENGTHS.pack(len(name), len(content)) + name + content)
        with self._limited(_limit(content)):
            try:
                while data:
                    data = data[self._requests.write(data) :]
            except OSError:
                return None
            return _assembly(self._receive())

    @contextmanager
    def _limited(self, seconds: float) -> Iterator[None]:
        """End the process if the block takes longer."""
        timer = threading.Timer(seconds, self._give_up)
        timer.daemon = True
        # At its end an interpreter starts no thread.
        with suppress(RuntimeError):
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        self.is_hung = True
        self._kill()

    def _receive(self) -> object:
        """The literal that it sends next; None at its end."""
        try:
            (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
            return literal_eval(self._read(length).decode())
        except (struct.error, *UNREADABLE):
            return None  # cut off

    def _read(self, nbytes: int) -> bytes:
        """So many bytes, fewer at its end."""
        parts: list[bytes] = []
        while nbytes and (part := self._output.read(nbytes)):
            parts.append(part)
            nbytes -= len(part)
        return b"".join(parts)


def _limit(content: bytes) -> float:
    """The seconds after which the assembler of a text counts as hung."""
    return SECONDS + len(content) * SECONDS_PER_BYTE


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process of ours; a forked child only closes its ends of the pipes."""
    if owner == os.getpid():
        process.kill()
        process.wait()
    else:
        process.returncode = 0
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _assembly(content: object) -> Assembly | None:
    """The assembly that two texts mean; None for anything else."""
    match content:
        case str(errors), str(skipped):
            return Assembly(errors, skipped)
    return None


def _not_started(reason: str) -> NvJitLinkNotFoundError:
    return NvJitLinkNotFoundError(_nvrtc.install_command(), reason)


def serve() -> None:
    """Serve requests until the input ends, in the process that `_AssemblerProcess` starts."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Keep nvJitLink's own output apart from the replies.
    os.dup2(2, 1)
    folder = PrivateFolder(Path(sys.argv[1])) if sys.argv[1] else None

    def send(value: object) -> None:
        data = repr(value).encode()
        replies.write(_LENGTH.pack(len(data)) + data)
        replies.flush()

    try:
        build = build_of("nvJitLink", folder)
    except NvJitLinkNotFoundError as error:
        send((error.command, error.reason))
        return
    send((build.version, build.nbytes))
    _nvrtc.linker_api()
    while len(head := requests.read(_LENGTHS.size)) == _LENGTHS.size:
        of_arch, of_text = _LENGTHS.unpack(head)
        arch = requests.read(of_arch).decode()
        send(_assembled(arch, requests.read(of_text), build))


def _assembled(arch: str, text: bytes, build: Build) -> tuple[str, str]:
    """Return the errors of a text, and the reason if there is no result."""
    unknown = f"nvJitLink {build.version[0]}.{build.version[1]} does not know {arch}"
    try:
        linker = Linker((f"-arch={arch}",))
    except LinkError:
        return "", unknown
    with linker:
        try:
            linker.add(LinkInput(LinkKind.PTX, text, "module"))
            linker.complete()
        except LinkError as error:
            log = error.log or str(error)
            # nvJitLink 12 takes some architectures that its assembler then rejects.
            return ("", unknown) if _UNKNOWN_ARCH in log else (log, "")
    return "", ""


def default_assembler() -> Assembler:
    """The process's assembler, with the cache folder that the environment names now.

    Raises:
        ValueError: `CUDADRV_CACHE_MAX_MB` is not a number.
    """
    folder, _ = cache_settings()
    return _default(folder)


@functools.lru_cache(maxsize=4)
def _default(folder: Path | None) -> Assembler:
    return Assembler(folder)
