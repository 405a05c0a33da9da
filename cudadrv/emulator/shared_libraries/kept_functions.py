"""Functions of LTO-IR that only PTX calls: a kernel that takes their addresses keeps them.

nvJitLink makes PTX of the LTO-IR alone here, and would optimise them away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import ptx

_KEEPER: Final = "cudadrv_keeps_functions"
_ENTRY: Final = re.compile(rf"^\.visible \.entry {_KEEPER}\(.*?^}}$", re.MULTILINE | re.DOTALL)
_OF_THE_SYSTEM: Final = frozenset({"vprintf", "malloc", "free", "__assertfail"})


def wanted_of(linked: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The functions that texts of PTX declare, and neither they nor the linked text define."""
    modules = [ptx.parse(each) for each in (linked, *texts)]
    defined = {
        name
        for module in modules
        for name, function in module.functions.items()
        if function.span is not None
    }
    declared = {name for module in modules[1:] for name in module.functions}
    return tuple(sorted(declared - defined - _OF_THE_SYSTEM))


def keeper_of(names: Sequence[str], arch: str) -> tuple[bytes, str]:
    """LTO-IR of a kernel that takes the functions' addresses, and its name.

    What it says of their parameters does not matter: the linker takes their definitions.
    """
    lines = [f'extern "C" __device__ void {name}();' for name in names]
    lines.append(f'extern "C" __global__ void {_KEEPER}(void** kept) {{')
    lines += [f"    kept[{at}] = (void*)&{name};" for at, name in enumerate(names)]
    options = ptx.CompileOptions(target=ptx.Target.ltoir(arch.replace("compute", "sm")))
    return ptx.compile("\n".join([*lines, "}"]), options, name=_KEEPER).data, _KEEPER


def without_keeper(text: str) -> str:
    """The linked text without that kernel."""
    return _ENTRY.sub("", text)
