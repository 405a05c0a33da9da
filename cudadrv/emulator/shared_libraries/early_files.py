"""The files of the libraries that a Python process of `emulate` loads at its start.

Each function of them starts the emulator, at its first call.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

from .library_files import STATEMENT, sources_key, written_folder
from .nvrtc_files import MAJORS, replacing_name


def early_images() -> Mapping[str, bytes]:
    """Return the content of each library, by its name."""
    # A command whose files are there saves half a second.
    from .libnvjitlink import linker_image, linker_name
    from .libnvrtc import replacing_image

    linkers = {linker_name(major): linker_image(major, STATEMENT) for major in MAJORS}
    return linkers | {
        name: replacing_image(name, STATEMENT) for name in map(replacing_name, MAJORS)
    }


def early_folder() -> Path | None:
    """Return the folder with the libraries, which is made if it is missing.

    None if there is no place for it, or no call can start an emulator on this processor.

    Raises:
        DriverSelectionError: the emulator replaces no libraries on this system.
    """
    if platform.machine() != "x86_64":
        return None
    return written_folder(f"early-{sources_key()}", early_images, {})
