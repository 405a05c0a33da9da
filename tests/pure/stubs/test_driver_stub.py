"""What stubtest does not see of the stubs: members of the enumerations, fields, results."""

from __future__ import annotations

import ast
from importlib.metadata import version

import pytest
from cuda.bindings import driver

from tests.rows import all_rows

from . import DRIVER, WRITTEN_FOR

ENUMS = {
    node.name: {
        item.targets[0].id: ast.literal_eval(item.value)
        for item in node.body
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)
    }
    for node in DRIVER.body
    if isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] == ["IntEnum"]
}
# What counts the other members or gathers them is another number in each version.
GROWING = {
    "CU_COREDUMP_LIGHTWEIGHT_FLAGS",
    "CU_DEVICE_ATTRIBUTE_MAX",
    "CU_FUNC_ATTRIBUTE_MAX",
    "CU_JIT_NUM_OPTIONS",
    "CU_LIMIT_MAX",
}


def members_of(enum: type) -> dict[str, int]:
    members: dict[str, int] = vars(enum).get("__members__") or vars(enum).get("_member_map_", {})
    return {name: int(value) for name, value in members.items()}


@all_rows
@pytest.mark.parametrize("name", ENUMS)
def test_members_have_the_values_of_the_installed_binding(name: str) -> None:
    if not hasattr(driver, name):
        assert version("cuda-bindings") != WRITTEN_FOR
        pytest.skip(f"cuda-bindings {version('cuda-bindings')} has no {name}")
    members, stub = members_of(getattr(driver, name)), ENUMS[name]
    if version("cuda-bindings") == WRITTEN_FOR:
        assert stub == members
    # The stub is of the newest binding of its major: an older one has fewer members.
    kept = {key: value for key, value in members.items() if key not in GROWING}
    assert {key: stub.get(key) for key in kept} == kept


def test_the_stub_has_the_results_that_errors_are_made_of() -> None:
    from cudadrv.errors import CudaError

    for name, value in ENUMS["CUresult"].items():
        if value:
            cls = CudaError.for_code(value)
            assert cls.result == value
            assert cls("doing").name == name
