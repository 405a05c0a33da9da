"""Frames of this library left out of the tracebacks of tests, unless --full-trace asks for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import DriverNotFoundError, NoDeviceError

_PACKAGES: Final = Path(__file__).parents[2]
# Files of both packages, and the names of code that they make at run time.
_OURS: Final = (
    f"{_PACKAGES / 'cudadrv'}{os.sep}", f"{_PACKAGES / 'ptx'}{os.sep}", "<cudadrv ", "<ptx ",
)  # fmt: skip
_UNMARKED: Final = (
    "  the test has neither a marker nor a fixture of cudadrv: mark it @pytest.mark.gpu\n"
    "  it then runs on the GPU if there is one, else on the emulator; --cuda chooses"
)
_PLUGIN: Final = f"{Path(__file__).parent}{os.sep}"


def is_developed_in(folder: Path) -> bool:
    """Whether the tests of a folder are the library's own, which want to see its frames."""
    return folder == _PACKAGES


def hide_frames(error: BaseException) -> None:
    """Let pytest write an error down without our frames.

    It shows no frame whose globals have `__tracebackhide__`.
    """
    for each in _chain(error):
        traceback = each.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            file = frame.f_code.co_filename
            if file.startswith(_OURS) and not file.startswith(_PLUGIN):
                frame.f_globals.setdefault("__tracebackhide__", True)
            traceback = traceback.tb_next


def name_the_marker(error: BaseException) -> None:
    """Say to a test without a marker and a fixture of ours what it lacks, if it found no device."""
    for each in _chain(error):
        if isinstance(each, (DriverNotFoundError, NoDeviceError)):
            each.add_note(_UNMARKED)
            return


def hide_loader(error: BaseException) -> None:
    """Leave out how the loader failed, which the error of a missing driver repeats."""
    for each in _chain(error):
        if isinstance(each, DriverNotFoundError):
            each.__cause__ = None  # which leaves out the context as well


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, its causes, and what is in groups."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += (each.__cause__, each.__context__)
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
