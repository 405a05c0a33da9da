"""PTX as text: lexer, parser, module model and kernel signatures.

`parse(text)` reads the module-level directives at once; a function's body is parsed on the first
`PtxModule.body(name)`. `signatures_of(text)` reads kernel parameters only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptx.isa.errors import PtxSyntaxError
    from ptx.isa.module import PtxModule, parse
    from ptx.isa.signature import signatures_of
    from ptx.signature import KernelParam, KernelSignature

__all__ = [
    "KernelParam",
    "KernelSignature",
    "PtxModule",
    "PtxSyntaxError",
    "parse",
    "signatures_of",
]

if not TYPE_CHECKING:  # type checkers know which names exist
    # This file imports none of the package's: see `tests/pure/test_layers.py`.
    _AT_FIRST_USE = {
        "ptx.isa.errors": "PtxSyntaxError",
        "ptx.isa.module": "PtxModule parse",
        "ptx.isa.signature": "signatures_of",
        "ptx.signature": "KernelParam KernelSignature",
    }

    def __getattr__(name: str) -> object:
        for module, names in _AT_FIRST_USE.items():
            if name in names.split():
                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
