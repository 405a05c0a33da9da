"""A program for the emulator: each function of a stand-in library, with any arguments.

Its arguments are the library of `any_calls.c`, a folder, the way and the seed. The file `place` of
the folder has the number of the running call, and `calls` the name and the arguments of each.
With the library "none" it writes the file `plan` for `any_program.c`, and calls nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import re
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from cudadrv.driver.functions import FunctionForm, forms
from cudadrv.emulator.shared_libraries.libnvjitlink import LINKER_FUNCTIONS
from cudadrv.emulator.shared_libraries.nvml_functions import NVML_FUNCTIONS, NVML_NAMES

ROUNDS = 4
PAGES = 60
LINKER = "libnvJitLink.so.13"
PAGE = 4096
MOST = 16
PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n) { ret; }
\0"""
UNMAPPED = (1, 8, 4095, 0xDEADBEEF, 1 << 46, (1 << 47) - 8, 1 << 63, (1 << 64) - 1)
INTEGERS = (0, 1, 2, 7, 64, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
TAKE_FUNCTIONS = re.compile(
    "HostFunc|AddCallback|HostNode|UserObjectCreate|PotentialBlockSize|RegisterCallback"
)
"""Functions whose arguments name a function, which they call, as the driver does."""
TEXTS = ("cuGetErrorName", "cuGetErrorString")
"""Functions that write their results also after Python's end, unchecked, as the driver does."""
FILLERS = (b"\0", b"\1", b"\xff")
FIRST_PAGE = 1 << 36
FIRST_HANDLE = 0xFACE0000 << 32
Planned = tuple[str, str, list[int]]


class Call(ctypes.Structure):
    """`struct call` of any_calls.c."""

    _fields_ = (
        ("called", ctypes.c_void_p),
        ("arguments", ctypes.c_uint64 * MOST),
        ("result", ctypes.c_long),
    )


def handles(cuda: ctypes.CDLL) -> tuple[int, ...]:
    """A context, a stream, an event, a module, its kernel, a graph and memory."""
    made = [ctypes.c_size_t() for _ in range(7)]
    at = [ctypes.byref(each) for each in made]
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(at[0], 0) == 0
    assert cuda.cuCtxSetCurrent(made[0]) == 0
    assert cuda.cuStreamCreate(at[1], 1) == 0
    assert cuda.cuEventCreate(at[2], 0) == 0
    assert cuda.cuModuleLoadData(at[3], PTX) == 0
    assert cuda.cuModuleGetFunction(at[4], made[3], b"k") == 0
    assert cuda.cuGraphCreate(at[5], 0) == 0
    assert cuda.cuMemAlloc_v2(at[6], ctypes.c_size_t(PAGE)) == 0
    return tuple(each.value for each in made)


class Values:
    """Values for parameters: numbers, handles, addresses that are mapped and not."""

    def __init__(self, seed: str, of_handles: Sequence[int], addresses: Sequence[int]) -> None:
        self._random = random.Random(seed)
        self._handles = of_handles
        self._addresses = addresses

    def address(self) -> int:
        return self._random.choice(self._addresses)

    def value(self, word: str) -> int:
        if word in ("int", "uint", "byte", "short"):
            return self._random.choice(INTEGERS)
        kinds = [(0,), UNMAPPED, self._addresses]
        if word in ("size", "bytes", "stream"):
            kinds += [INTEGERS, self._handles, self._handles]
        return self._random.choice(self._random.choice(kinds))


def arguments_of(form: FunctionForm, name: str, values: Values) -> list[list[int]]:
    """The arguments of each call of a function."""
    count = len(form.parameters)
    if TAKE_FUNCTIONS.search(name):
        return [[0] * count]
    same = (0, 1, 1 << 46, (1 << 64) - 1)
    made = [[each] * count for each in same] + [[values.address() for _ in range(count)]]
    made += [[values.value(word) for word in form.parameters] for _ in range(ROUNDS)]
    return made


def libraries() -> list[tuple[str, tuple[FunctionForm, ...]]]:
    absent = tuple(
        FunctionForm(name, 0, ("size",) * 4, ())
        for name in NVML_NAMES
        if name not in {form.symbol for form in NVML_FUNCTIONS}
    )
    return [
        ("libcuda.so.1", forms()),
        ("libnvidia-ml.so.1", (*NVML_FUNCTIONS, *absent)),
        (LINKER, LINKER_FUNCTIONS),
    ]


def plan(way: str, seed: str, values: Values, unchecked: Sequence[str]) -> list[Planned]:
    """The calls of all functions, in an order of the seed: library, symbol and arguments.

    `unchecked`: the ways of calls without an interpreter.
    """
    planned = [
        (library, symbol, arguments)
        for library, table in libraries()
        for form in table
        if way not in unchecked or form.symbol not in TEXTS
        for symbol in filter(None, (form.symbol, form.per_thread))
        for arguments in arguments_of(form, symbol, values)
    ]
    random.Random(seed).shuffle(planned)
    texts = [f"{name} {[hex(each) for each in given]}" for _, name, given in planned]
    Path("calls").write_text("\n".join(texts))
    return planned


def write_plan(way: str, seed: str) -> None:
    """Write the plan of a program that maps the pages, and replaces numbers by handles."""
    numbers = range(FIRST_HANDLE, FIRST_HANDLE + 7)
    pages = range(FIRST_PAGE, FIRST_PAGE + 2 * PAGE * PAGES, 2 * PAGE)
    values = Values(seed, numbers, pages)
    with open("plan", "wb") as file:
        for library, symbol, arguments in plan(way, seed, values, ("exit", "fork")):
            given = (*arguments, *[0] * (MOST - len(arguments)))
            file.write(struct.pack(f"24s56s{MOST}Q", library.encode(), symbol.encode(), *given))


def every_call(way: str, seed: str) -> tuple[ctypes.Array[Call], list[mmap.mmap]]:
    """The calls of a plan, and what the mapped addresses are of; each page ends with zeros."""
    loaded = {name: ctypes.CDLL(name) for name, _ in libraries()}
    pages = [mmap.mmap(-1, 2 * PAGE) for _ in range(PAGES)]
    for number, page in enumerate(pages):
        page[:PAGE] = FILLERS[number % len(FILLERS)] * PAGE
    addresses = [ctypes.addressof(ctypes.c_char.from_buffer(page)) for page in pages]
    values = Values(seed, handles(loaded["libcuda.so.1"]), addresses)
    planned = plan(way, seed, values, ("exit", "finalizer"))
    assert loaded["libnvidia-ml.so.1"].nvmlInit_v2() == 0
    calls = (Call * len(planned))()
    for call, (library, symbol, arguments) in zip(calls, planned, strict=True):
        call.called = ctypes.cast(getattr(loaded[library], symbol), ctypes.c_void_p).value
        call.arguments[: len(arguments)] = arguments
    return calls, pages


def main(library: str, folder: str, way: str, seed: str) -> None:
    os.chdir(folder)
    if library == "none":
        write_plan(way, seed)
        return
    calls, pages = every_call(way, seed)
    with open("place", "r+b") as file:
        place = mmap.mmap(file.fileno(), PAGE)
    at_place = ctypes.addressof(ctypes.c_char.from_buffer(place))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((calls, pages, place)))  # beyond Python's end
    native = (ctypes.PyDLL if way == "locked" else ctypes.CDLL)(library)
    arguments = ctypes.byref(calls), ctypes.c_long(len(calls)), ctypes.c_void_p(at_place)
    now, call_all = (*arguments, ctypes.c_long(0)), native.call_all

    class AtExit:
        def __del__(self) -> None:
            call_all(*now)

    if way == "exit":
        native.call_at_exit(*arguments)
    elif way == "finalizer":
        globals()["at_exit"] = AtExit()
    elif way == "hosted":
        cuda = ctypes.CDLL("libcuda.so.1")
        stream = ctypes.c_void_p()
        assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
        assert native.call_in_host_function(*arguments, cuda.cuLaunchHostFunc, stream) == 0
    elif way == "fork":
        if os.fork():
            _, status = os.wait()
            assert status == 0, status
        else:
            call_all(*now)
            os._exit(0)
    else:
        call_all(*arguments, ctypes.c_long(way != "plain"))


if __name__ == "__main__":
    main(*sys.argv[1:5])
