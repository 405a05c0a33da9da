"""The code of launches, generated for the kinds of their arguments.

Its checks are those that packing makes anyway, that memory is of the launch's context, and that
numbers are numbers. Only a refusal leads to the slow path, which finds the words for it. Handles
are not read: whoever closes a stream or a module takes the code of its launchers away
(`Launcher.stop`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Final, TypeAlias

from .arguments import Kind

_LAUNCHER: Final = """
def launcher({defaults}*rest):
    if True:
        {launch}
"""
_KERNEL_LAUNCH: Final = """
def launch(stream, config, {defaults}*rest):
    if stream is own_stream and config is own_config:
        {launch}
    else:
        elsewhere(stream, config, {names}*rest)
"""
# Names that end in a number belong to one version of the code: a thread that still runs a former
# version finds its own.
_LAUNCH: Final = """
try:{collect}
    block = {conditions} and pop_{version}()
    if block:
        pack_{version}(block[0], 0{values})
except REFUSALS:
    return slowly({names}*rest)
if block:{order}
    code = block[1]()[0]
    push_{version}(block)
    if code:
        fail(code)
else:
    slowly({names}*rest)
"""
# The type that most numbers have, which is seen faster, and all types that are packed as they are.
_NUMBERS: Final = {
    "whole": ("int", "WHOLE"),
    "signed": ("int", "WHOLE"),
    "real": ("float", "REALS"),
    "float": ("float", "REALS"),
}

LaunchCode: TypeAlias = tuple[CodeType, CodeType]
"""The code of a launcher and of `Kernel.launch`; their globals are given by who runs them."""


@lru_cache(maxsize=256)
def launch_code(kinds: tuple[Kind, ...], version: int) -> LaunchCode:
    """The code for arguments of these kinds.

    It takes from its globals: slowly, fail, elsewhere, own_stream, own_config, context, REFUSALS,
    int, float, WHOLE, REALS, the convert of each argument by its number, pack, pop and push of its
    version, and, where other libraries' memory is among the kinds, interface_address and
    order_after.
    """
    names = "".join(f"a{i}, " for i in range(len(kinds)))
    values, conditions = _reading(kinds)
    foreign = "foreign" in kinds
    launch = _LAUNCH.strip().format(
        version=version,
        values=values,
        conditions=" and ".join(conditions),
        names=names,
        # A launch waits once for each stream that its memory comes from.
        collect="\n    producers = []" if foreign else "",
        order="\n    if producers:\n        order_after(own_stream, producers)" * foreign,
    )
    fields = {"defaults": names.replace(",", "=MISSING,"), "names": names}
    scope: dict[str, FunctionType] = {}
    for template in (_LAUNCHER, _KERNEL_LAUNCH):
        text = template.format(launch=launch.replace("\n", "\n        "), **fields)
        # The text holds only names made here; the defaults are given by who runs the code.
        exec(compile(text, "<cudadrv launcher>", "exec"), {"MISSING": None}, scope)
    return scope["launcher"].__code__, scope["launch"].__code__


def _reading(kinds: Sequence[Kind]) -> tuple[str, list[str]]:
    """The values to pack, as text that follows an argument, and what must hold beside."""
    values, conditions = "", ["not rest"]
    for i, kind in enumerate(kinds):
        if kind == "memory":
            values += f", a{i}.ptr"
            conditions.append(f"a{i}.context is context")
        elif kind == "view":
            values += f", a{i}.kernel_handle"
            conditions.append(f"a{i}.context is context")
        elif kind == "foreign":
            values += f", interface_address(a{i}, own_stream, producers)"
        elif kind == "converted":
            values += f", convert{i}(a{i}, own_stream)"
        else:
            values += f", a{i}"
            usual, known = _NUMBERS[kind]
            conditions.append(f"(a{i}.__class__ is {usual} or a{i}.__class__ in {known})")
    return values, conditions
