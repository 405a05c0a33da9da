"""Memory and streams of other libraries."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .external import (
        ExternalMemory as ExternalMemory,
        ExternalSemaphore as ExternalSemaphore,
    )
    from .reader import (
        Reader as Reader,
        register as register,
    )
else:
    _NAMES = {
        "external": "ExternalMemory ExternalSemaphore",
        "reader": "Reader register",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
