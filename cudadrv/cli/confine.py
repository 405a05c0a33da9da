"""Confine this process, then run a command in it: `python confine.py LIMITS COMMAND...`.

It runs by its path, before NumPy starts threads: only a process of one thread gets namespaces.
LIMITS is a JSON object: `folder`, `cpu_seconds`, `file_bytes`, and `report`, the descriptor that
gets what is in force as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

# <linux/sched.h>, <linux/prctl.h>, <linux/landlock.h>, and the numbers of Linux's system calls.
_NEW_USER: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_NEW_IPC: Final = 0x08000000
_NEW_PROCESSES: Final = 0x20000000
_SIGNAL_OF_PARENT: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_WRITES: Final = (
    1 << 1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
)
_REFER: Final = 1 << 13  # since version 2
_TRUNCATE: Final = 1 << 14  # since version 3
_ON_FILES: Final = 1 << 1 | _TRUNCATE
_TCP: Final = 3  # since version 4: bind and connect
_SCOPES: Final = 3  # since version 6: abstract sockets and signals
_DEVICES: Final = ("/dev/null",)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _limit_resources(cpu_seconds: int, file_bytes: int) -> None:
    import resource  # not on Windows

    for name, limit in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(name, (limit, limit))


def _leave_network(libc: Any) -> None:
    """Enter a network without interfaces, as the same user."""
    user, group = os.getuid(), os.getgid()
    _checked(libc.unshare(_NEW_USER | _NEW_NETWORK | _NEW_IPC))
    with suppress(OSError):  # files of the user stay the user's
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def _own_processes(libc: Any) -> None:
    """Let all processes that this one starts end with the first of them."""
    _checked(libc.unshare(_NEW_PROCESSES))


def _run_first(libc: Any, command: list[str]) -> None:
    """Run the command as the first process of a namespace; end as it does."""
    first = os.fork()
    if not first:
        libc.prctl(_SIGNAL_OF_PARENT, signal.SIGKILL, 0, 0, 0)
        os.execv(command[0], command)
    status = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    os._exit(status if status >= 0 else 128 - status)


def _write_only_to(libc: Any, folder: str) -> None:
    """Let this process write below a folder alone, and signal no process outside."""
    version = _checked(libc.syscall(_CREATE_RULESET, None, 0, _VERSION))
    writes = _WRITES | (_REFER if version > 1 else 0) | (_TRUNCATE if version > 2 else 0)
    words = [writes, *([_TCP] if version > 3 else []), *([_SCOPES] if version > 5 else [])]
    attributes = struct.pack(f"={len(words)}Q", *words)
    rules = _checked(libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    for path in (folder, *_DEVICES):
        is_folder = os.path.isdir(path)
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        beneath = struct.pack("=Qi", writes if is_folder else writes & _ON_FILES, opened)
        _checked(libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, beneath, 0))
        os.close(opened)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _in_force(steps: Iterable[tuple[str, Callable[[], None]]]) -> dict[str, bool]:
    done = {}
    for name, step in steps:
        try:
            step()
            done[name] = True
        except (OSError, AttributeError, ImportError, ValueError):
            done[name] = False
    return done


def main(text: str, command: list[str]) -> None:
    """Confine the process as far as the system allows, report it, and run the command."""
    limits = json.loads(text)
    libc = ctypes.CDLL(None, use_errno=True)
    done = _in_force(
        (
            ("resources", lambda: _limit_resources(limits["cpu_seconds"], limits["file_bytes"])),
            ("network", lambda: _leave_network(libc)),
            ("children", lambda: _own_processes(libc)),
            ("files", lambda: _write_only_to(libc, limits["folder"])),
        )
    )
    os.write(limits["report"], json.dumps(done).encode())
    os.close(limits["report"])
    if done["children"]:
        _run_first(libc, command)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
