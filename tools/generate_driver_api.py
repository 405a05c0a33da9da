"""Writes the protocol of the driver, `cudadrv/driver/driver_api.py`.

Run it as `python -m tools.generate_driver_api`.

It has the driver functions that cudadrv calls, in the order of the table
(`cudadrv/driver/functions.py`), with the signatures of the emulator's methods. mypy checks it
against cuda.bindings.
"""

from __future__ import annotations

import ast
import re
import runpy
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "cudadrv"
TARGET = ROOT / "driver" / "driver_api.py"

_SPACE = "\0"  # where no line breaks
_LONGEST = 92  # of a part that fits a line
_WRAPPER = textwrap.TextWrapper(
    100,
    initial_indent=" " * 4,
    subsequent_indent=" " * 8,
    break_long_words=False,
    break_on_hyphens=False,
)

_HEAD = '''"""The protocol of the driver: the functions that cudadrv calls, as in cuda.bindings 13.

Made by tools/generate_driver_api.py. Each returns what cuda.bindings returns, a tuple whose first
item is the CUresult; the C declarations are in the CUDA Driver API manual under the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ._api import *


class DriverApi(Protocol):
    """The functions of the driver or of the emulator."""

    # fmt: off
{functions}
    # fmt: on


FUNCTIONS: Final = tuple(name for name in vars(DriverApi) if name.startswith("cu"))
"""Their names."""
'''

# The emulator also accepts what its C callers pass; the binding accepts only its own types.
_WIDER = {
    r"\bLocation\b": "CUmemLocation",
    r"\bPoolProperties\b": "CUmemPoolProps",
    r"^(CU\w+) \| int$": r"\1",
    r"Sequence\[(\w+)\]": r"list[\1] | tuple[\1, ...]",
}


def generated() -> str:
    """Return the text of the protocol."""
    called = set(_called())
    methods = {node.name: node for node in _methods()}
    # By its path, as the package cannot be imported without the protocol.
    table = runpy.run_path(str(ROOT / "driver" / "functions.py"))
    names = dict.fromkeys(form.name for form in table["forms"]())
    functions = [_definition(methods[name]) for name in names if name in called]
    return _HEAD.format(functions="\n".join(functions))


def _called() -> Iterator[str]:
    for path in ROOT.rglob("*.py"):
        if path != TARGET and ROOT / "emulator" not in path.parents:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute):
                    yield node.attr


def _methods() -> Iterator[ast.FunctionDef]:
    for path in (ROOT / "emulator" / "calls").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield node


def _definition(node: ast.FunctionDef) -> str:
    """Return a function of the protocol; its lines break between parameters, if that is enough."""
    given = [f"{each.arg}: {_type(each.annotation)}" for each in node.args.posonlyargs[1:]]
    slash = ", /" if given else ""
    assert node.returns is not None
    *head, last = (f"def {node.name}(self", *given)
    tail = f"{last}{slash}) -> {ast.unparse(node.returns)}: ..."
    # No line may end outside of brackets, as it would after the arrow.
    parts = [each if len(each) > _LONGEST else each.replace(" ", _SPACE) for each in (*head, tail)]
    text = ", ".join(parts).replace(" -> ", f"{_SPACE}->{_SPACE}")
    lines = _WRAPPER.wrap(text)
    return "\n".join(lines).replace(_SPACE, " ")


def _type(annotation: ast.expr | None) -> str:
    assert annotation is not None
    text = ast.unparse(annotation)
    for pattern, narrower in _WIDER.items():
        text = re.sub(pattern, narrower, text)
    return text


if __name__ == "__main__":
    TARGET.write_text(generated())
