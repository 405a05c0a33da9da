"""PTX as text: lexer, parser, module model and kernel signatures.

`parse(text)` reads the module-level directives at once; a function's body is parsed when
`PtxModule.body(name)` is first asked for it. `signatures_of(text)` reads kernel parameters only.
"""

from __future__ import annotations

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
