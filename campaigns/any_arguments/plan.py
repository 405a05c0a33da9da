"""The calls of each function of the stand-in libraries, with live handles and any other values."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cudadrv.driver.functions import FunctionForm, forms
from cudadrv.emulator.shared_libraries.libnvjitlink import LINKER_FUNCTIONS
from cudadrv.emulator.shared_libraries.nvml_functions import NVML_FUNCTIONS, NVML_NAMES

from .preparation import (
    CUDA,
    FIRST_HANDLE,
    LINKER,
    NVML,
    PAGE,
    Pages,
    Planned,
    Preparation,
    prepared,
)

ROUNDS: Final = 8
_RANDOM_PAGES: Final = 60
_MOST: Final = 16
_UNMAPPED: Final = (1, 8, 4095, 0xDEADBEEF, 1 << 46, (1 << 47) - 8, 1 << 63, (1 << 64) - 1)
_INTEGERS: Final = (0, 1, 2, 7, 64, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
_SMALL: Final = (0, 0, 1, 1, 1, 2, 3, 4)
_NUMBERS: Final = (*range(40), 64, 97, 100, 128, 133, 140)
_TAKE_FUNCTIONS: Final = re.compile(
    "HostFunc|AddCallback|HostNode|UserObjectCreate|PotentialBlockSize|RegisterCallback"
)
"""Functions whose arguments name a function, which they call, as the driver does."""
_TEXTS: Final = ("cuGetErrorName", "cuGetErrorString")
"""Functions that write their results also after Python's end, unchecked, as the driver does."""
_END: Final = re.compile(
    "Destroy|Reset|Free|Unload|Release|Close|Shutdown|Unregister|SetCurrent|PopCurrent"
    "|PushCurrent|CtxCreate|Detach|LinkComplete"
)
"""Functions that end what the other calls need, and come after them."""
_FAMILIES: Final = tuple(
    (re.compile(pattern), kinds.split())
    for pattern, kinds in (
        ("^nvmlDevice|^nvmlEvent", "nvml"),
        ("^nvJitLink", "linker image name"),
        ("GraphExec|GraphLaunch|GraphUpload", "executable node graph launched fill copy stream"),
        ("GraphAdd", "graph node launched fill copy event memory context"),
        ("Graph.*Node|GraphNode", "node graph launched fill copy event"),
        ("Graph", "graph node executable user"),
        ("Link", "link image"),
        ("Green|DevResource|SmResource", "green described resources stream context"),
        ("Library|Kernel(?!s)", "library kernel launched arguments stream name image"),
        ("Launch|Func|Occupancy", "kernel arguments launched config"),
        ("Module", "module image name"),
        ("Event", "event stream"),
        ("Capture", "stream graph node"),
        ("StreamAttach", "stream memory"),
        ("Stream", "stream event memory"),
        ("Ctx", "context event"),
        ("Tex|Surf", "texture surface resource array flat memory"),
        ("Array|AtoA|AtoH|AtoD|DtoA|HtoA", "array memory flat cubic"),
        ("Pool", "pool memory properties stream access"),
        ("MemCreate|MemMap|MemSetAccess|Address|Handle|Granul|Multicast|MemRetain|MemRelease",
         "physical range properties memory access"),
        ("Memcpy2D", "rows memory stream"),
        ("Memcpy3D", "copy memory stream"),
        ("Mem|Pointer|Ipc", "memory stream"),
        ("User", "user graph"),
        ("", "context stream event module kernel graph memory"),
    )
)  # fmt: skip
"""What a function takes: kinds of handles and of structures."""


class _Values:
    """Values for the parameters of one function: mostly valid ones."""

    def __init__(
        self, chooser: random.Random, made: Preparation, pages: Sequence[int], name: str
    ) -> None:
        self._random = chooser
        self._pages = pages
        self._is_launch = "Launch" in name
        kinds = next(kinds for pattern, kinds in _FAMILIES if pattern.search(name))
        self._handles = [made.handles[kind] for kind in kinds if kind in made.handles]
        self._structures = [made.structures[kind] for kind in kinds if kind in made.structures]
        self._streams = (*made.handles["stream"], 0, 1, 2)

    def page(self) -> int:
        return self._random.choice(self._pages)

    def handle(self) -> int:
        return self._random.choice(self._random.choice(self._handles))

    def all_of(self, words: Sequence[str]) -> tuple[int, ...]:
        """Return a value for each parameter; the first handle is mostly of the first kind."""
        made = [self._value(word) for word in words]
        if "size" in words and self._random.random() < 0.7:
            made[words.index("size")] = self._random.choice(self._handles[0])
        return tuple(made)

    def _value(self, word: str) -> int:
        """Return a value for a parameter, whose word is one of the table of functions."""
        chance = self._random.random()
        if word in ("int", "uint", "byte", "short"):
            numbers: tuple[int, ...] = _NUMBERS if chance < 0.95 else _INTEGERS
            return self._random.choice(_SMALL if self._is_launch or chance < 0.75 else numbers)
        if chance < 0.05:
            return self._random.choice((0, *_UNMAPPED))
        if word.startswith(">"):
            return 0 if word.startswith(">?") and chance < 0.3 else self.page()
        if word == "stream" and chance < 0.9:
            return self._random.choice(self._streams)
        if word in ("size", "bytes"):
            if chance < 0.4:
                return self.handle()
            if chance < 0.7:
                return self._random.choice((0, 0, 0, 1, 1, 2, 4, 16, 64, PAGE))
        if self._structures and chance < 0.85:
            return self._random.choice(self._structures)
        return self.page()


def _arguments(form: FunctionForm, name: str, values: _Values) -> list[tuple[int, ...]]:
    """Return the arguments of each call of a function."""
    count = len(form.parameters)
    if "Multi" in name and "Launch" in name:
        return [(0,) * count]
    if _TAKE_FUNCTIONS.search(name):
        given = (
            values.page() if word[0] == ">" else 0 if word in ("int", "uint") else FIRST_HANDLE
            for word in form.parameters
        )
        return [(0,) * count, tuple(given)]
    made = [(each,) * count for each in (0, 1, 1 << 46, (1 << 64) - 1)]
    made.append(tuple(values.page() for _ in range(count)))
    return made + [values.all_of(form.parameters) for _ in range(ROUNDS)]


def _libraries() -> list[tuple[str, tuple[FunctionForm, ...]]]:
    absent = tuple(
        FunctionForm(name, 0, ("size",) * 4, ())
        for name in NVML_NAMES
        if name not in {form.symbol for form in NVML_FUNCTIONS}
    )
    return [(CUDA, forms()), (NVML, (*NVML_FUNCTIONS, *absent)), (LINKER, LINKER_FUNCTIONS)]


def _random_page(number: int, chooser: random.Random, handles: Sequence[int]) -> bytes:
    """Return the content of a page: one byte everywhere, a name, or words with handles."""
    if number % 6 < 3:
        return (b"\0", b"\1", b"\xff")[number % 6] * PAGE
    if number % 6 == 3:
        return b"k"
    if number % 6 == 4:
        return struct.pack("<64Q", *[chooser.choice(handles)] * 64)
    words = [
        chooser.choice(handles)
        if chooser.random() < 0.4
        else chooser.choice(_SMALL) | chooser.choice(_SMALL) << 32
        for _ in range(64)
    ]
    return struct.pack("<64Q", *words)


def _packed(planned: Sequence[Planned]) -> bytes:
    form = struct.Struct(f"<24s56s{_MOST}Q")
    return b"".join(
        form.pack(library.encode(), symbol.encode(), *given, *[0] * (_MOST - len(given)))
        for library, symbol, given in planned
    )


def write_plan(folder: Path, seed: int, *, texts: bool) -> list[Planned]:
    """Write the files of a plan into a folder, and return its calls.

    With `texts` the calls include those of functions that write their results unchecked.
    """
    chooser = random.Random(seed)
    pages = Pages()
    made = prepared(pages, capturing=seed % 3 == 0)
    handles = [each for kind in made.handles.values() for each in kind]
    addresses = [
        pages.add(_random_page(number, chooser, handles)) for number in range(_RANDOM_PAGES)
    ]
    planned = [
        (library, symbol, arguments)
        for library, table in _libraries()
        for form in table
        if texts or form.symbol not in _TEXTS
        for symbol in filter(None, (form.symbol, form.per_thread))
        for arguments in _arguments(form, symbol, _Values(chooser, made, addresses, symbol))
    ]
    chooser.shuffle(planned)
    planned.sort(key=lambda each: bool(_END.search(each[1])))
    (folder / "pages").write_bytes(pages.content())
    (folder / "preparation").write_bytes(_packed(made.steps))
    (folder / "plan").write_bytes(_packed(planned))
    (folder / "place").write_bytes(bytes(PAGE))
    (folder / "results").write_bytes(b"\xff" * 4 * len(planned))
    return planned
