"""The texts that explain the emulator name files that exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[3] / "ptx" / "emulate"


@pytest.mark.parametrize("module", ["ptx.emulate", "ptx.emulate.ops", "ptx.emulate.codegen.table"])
def test_every_file_that_a_text_names_is_there(module: str) -> None:
    text = import_module(module).__doc__ or ""
    for name in re.findall(r"`([\w/]+\.py)`", text):
        assert (HOUSE / name).is_file(), f"{module} names {name}"
    for name in re.findall(r"`((?:exec|codegen|memory|model|texture|ops)\.[\w.]+)`", text):
        path = HOUSE.joinpath(*name.split("."))
        found = any(
            each.with_suffix(".py").is_file() for each in (path, path.parent, path.parent.parent)
        )
        assert found, f"{module} names {name}"
