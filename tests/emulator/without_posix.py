"""A small session of the emulator in a process that has no more of the system than Windows has.

Run as a script. It takes away what Windows lacks, after the packages of others are imported, as
those find out by themselves where they are.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import io
import mmap
import os
import platform
import select
import signal
import socket
import sys
import time
import types
from multiprocessing import connection, reduction
from typing import Any

import numpy as np

for other in ("cuda.bindings.driver", "cuda.bindings.nvrtc", "cuda.pathfinder"):
    importlib.import_module(other)

MODULES = (
    "crypt", "curses", "fcntl", "grp", "nis", "posix_ipc", "pty", "pwd", "readline", "resource",
    "spwd", "syslog", "termios", "tty", "_posixshmem",
)  # fmt: skip
FUNCTIONS = (
    "chown", "chroot", "confstr", "ctermid", "eventfd", "fchdir", "fchmod", "fchown", "fdatasync",
    "fork", "forkpty", "fstatvfs", "getegid", "geteuid", "getgid", "getgroups", "getloadavg",
    "getpgid", "getpgrp", "getpriority", "getsid", "getuid", "getxattr", "killpg", "lchown",
    "lockf", "memfd_create", "mkfifo", "mknod", "nice", "openpty", "pathconf", "pidfd_open",
    "pipe2", "posix_fadvise", "posix_fallocate", "posix_spawn", "posix_spawnp", "pread", "preadv",
    "pwrite", "pwritev", "readv", "register_at_fork", "sched_getaffinity", "sched_setaffinity",
    "sched_yield", "sendfile", "setgid", "setpgid", "setpriority", "setsid", "setuid", "splice",
    "statvfs", "sync", "sysconf", "ttyname", "uname", "wait", "wait3", "wait4", "waitid", "writev",
)  # fmt: skip
FLAGS = (
    "O_ASYNC", "O_CLOEXEC", "O_DIRECT", "O_DIRECTORY", "O_DSYNC", "O_NOATIME", "O_NOCTTY",
    "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_SYNC", "O_TMPFILE",
)  # fmt: skip
SIGNALS = (
    "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP",
    "SIGUSR1", "SIGUSR2", "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer",
    "siginterrupt", "sigpending", "sigtimedwait", "sigwait",
)  # fmt: skip
CLOCKS = tuple(name for name in dir(time) if name.startswith(("CLOCK_", "clock_", "pthread_")))
MAPPING = tuple(name for name in dir(mmap) if name.startswith(("MAP_", "MADV_", "PROT_")))


def be_without_posix() -> None:
    """Take away the modules, functions and folders that Windows lacks."""
    machine = platform.machine()  # may start a process, which needs what is taken away
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it raises
    for module, names in (
        (os, (*FUNCTIONS, *FLAGS)), (signal, SIGNALS), (mmap, MAPPING), (time, CLOCKS),
        (select, ("poll", "epoll")),
        (reduction, ("DupFd", "dup", "sendfds", "recvfds")), (connection, ("SocketClient",)),
        (socket, ("AF_UNIX", "send_fds", "recv_fds", "SCM_RIGHTS", "socketpair")),
    ):  # fmt: skip
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    locking = types.ModuleType("msvcrt")
    locking.__dict__.update(LK_NBLCK=2, LK_UNLCK=0, locking=lambda descriptor, mode, nbytes: None)
    sys.modules["msvcrt"] = locking
    for module, name in ((builtins, "open"), (io, "open"), (os, "open"), (os, "stat"),
                         (os, "readlink"), (os, "listdir")):  # fmt: skip
        setattr(module, name, _guarded(getattr(module, name)))
    ctypes.CDLL.__init__ = _named(ctypes.CDLL.__init__)  # type: ignore[method-assign]
    sys.platform = "win32"
    platform.system, platform.machine = lambda: "Windows", lambda: machine


def _guarded(function: Any) -> Any:
    """The function, for files that Windows may have, and without descriptors of folders."""

    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path).startswith(("/proc", "/dev/shm", "/sys/")):
            raise FileNotFoundError(2, "not on this system", str(path))
        if kwargs.pop("dir_fd", None) is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        return function(path, *args, **kwargs)

    return call


def _named(function: Any) -> Any:
    """The constructor of a library, which on Windows needs a name, also for the C library."""

    def call(library: Any, name: str | None, *args: Any, **kwargs: Any) -> None:
        if name is None:
            raise TypeError("the name of a library is missing")
        function(library, None if name == "msvcrt" else name, *args, **kwargs)

    return call


SOURCE = """
extern "C" __global__ void twice(int* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void race(int* x) { x[0] = threadIdx.x; }
"""


def main() -> None:
    """Compile, launch, check, cache, and ask for what Windows does not have."""
    import cudadrv
    import cudadrv.cluster
    from cudadrv import emulator
    from cudadrv.cli.doctor import look
    from cudadrv.errors import CheckError, CudaError, DriverSelectionError, NotSupportedError

    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        kernel = context.compile(SOURCE).kernel("twice")
        pinned = cudadrv.pinned_empty(64, np.int32)
        managed = cudadrv.managed_empty(64, np.int32)
        pinned[:] = managed[:] = np.arange(64)
        x = stream.to_device(pinned)
        config = cudadrv.LaunchConfig(1, 64)
        with stream.capture() as graph:
            kernel.launch(stream, config, x)
            kernel.launch(stream, config, managed)
        executable = graph.instantiate()
        for _ in range(2):
            executable.launch(stream)
        stream.synchronize()
        print("graph", stream.to_host(x)[:4].tolist(), managed[:4].tolist())
        large = np.arange(5 << 20, dtype=np.int32)  # copied by several threads
        print("copy", bool((stream.to_host(stream.to_device(large)) == large).all()))
    print("doctor", look().cache_fault or "ready")
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        x = stream.to_device(np.arange(64, dtype=np.int32))
        kernel = context.compile(SOURCE).kernel("twice")
        kernel.launch(stream, cudadrv.LaunchConfig(1, 64), x)
        print("launch", stream.to_host(x)[:4].tolist())
        runtime = cudadrv.GpuRuntime.current()
        assert runtime is not None
        pool = cudadrv.scatter_map(runtime, range(8), lambda ordinal, tile: sum(tile))
        print("scatter", sum(pool))

        def shared_event() -> cudadrv.Event:
            return cudadrv.Event(context, timing=False, interprocess=True)

        for name, make in (
            ("pool", lambda: cudadrv.MemoryPool(context.device, shareable=True)),
            ("executor", cudadrv.cluster.GpuExecutor.local),
            ("event", lambda: cudadrv.ipc.IpcEventHandle.of(shared_event())),
            ("stand_in", emulator.stand_in),
        ):
            try:
                make()
            except (NotSupportedError, DriverSelectionError, CudaError) as error:
                print(name, type(error).__name__, "|", str(error).splitlines()[0])
    try:
        with emulator.session(check="race"):
            context = cudadrv.cuda_context_for(0)
            stream = context.default_stream
            x = stream.zeros(64, np.int32)
            kernel = context.compile(SOURCE).kernel("race")
            kernel.launch(stream, cudadrv.LaunchConfig(1, 64), x)
            stream.synchronize()
    except CheckError as error:
        print("check", str(error).splitlines()[0])


if __name__ == "__main__":
    be_without_posix()
    main()
