"""A small session of the emulator in a process that has no more of the system than Windows has.

Run as a script. It takes away what Windows lacks, after the packages of others are imported, as
those find out by themselves where they are.
"""

from __future__ import annotations

import builtins
import importlib
import io
import mmap
import os
import platform
import signal
import socket
import sys
import types
from multiprocessing import connection, reduction
from typing import Any

import numpy as np

for other in ("cuda.bindings.driver", "cuda.bindings.nvrtc", "cuda.pathfinder"):
    importlib.import_module(other)

MODULES = (
    "fcntl", "grp", "nis", "posix_ipc", "pty", "pwd", "resource", "syslog", "termios", "tty",
)  # fmt: skip
FUNCTIONS = (
    "chown", "eventfd", "fchmod", "fork", "forkpty", "getegid", "geteuid", "getgid", "getuid",
    "killpg", "memfd_create", "mkfifo", "pidfd_open", "posix_fallocate", "pread", "pwrite",
    "register_at_fork", "sched_getaffinity", "sched_setaffinity", "setsid", "statvfs", "sysconf",
    "uname", "wait3", "wait4",
)  # fmt: skip
FLAGS = ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK")
SIGNALS = ("SIGALRM", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "pthread_kill")
MAPPING = tuple(name for name in dir(mmap) if name.startswith(("MAP_", "MADV_", "PROT_")))


def be_without_posix() -> None:
    """Take away the modules, functions and folders that Windows lacks."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it raises
    for module, names in (
        (os, (*FUNCTIONS, *FLAGS)), (signal, SIGNALS), (mmap, MAPPING),
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
    sys.platform = "win32"
    platform.system = lambda: "Windows"


def _guarded(function: Any) -> Any:
    """The function, for files that Windows may have, and without descriptors of folders."""

    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path).startswith(("/proc", "/dev/shm", "/sys/")):
            raise FileNotFoundError(2, "not on this system", str(path))
        if kwargs.pop("dir_fd", None) is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        return function(path, *args, **kwargs)

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
    from cudadrv.errors import CheckError, CudaError, NotSupportedError

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
            ("event", lambda: cudadrv.IpcEventHandle.of(shared_event())),
        ):
            try:
                make()
            except (NotSupportedError, CudaError) as error:
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
