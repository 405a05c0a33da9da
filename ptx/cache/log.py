"""What the cache tells of its decisions, to who listens."""

from __future__ import annotations

import sys
from typing import Final

DEBUG: Final = 10  # logging's levels
INFO: Final = 20


def log(level: int, message: str, *values: object) -> None:
    """Log as "ptx.image_cache", without being the one to import `logging`.

    Where nobody has imported it, nobody can have asked for records.
    """
    if logging := sys.modules.get("logging"):
        logging.getLogger("ptx.image_cache").log(level, message, *values)
