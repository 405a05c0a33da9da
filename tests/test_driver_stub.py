"""What stubtest does not see of stubs/cuda/bindings/driver.pyi: members of the enumerations."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from cuda.bindings import driver

STUB = Path(__file__).parent.parent / "stubs/cuda/bindings/driver.pyi"
TREE = ast.parse(STUB.read_text())
ENUMS = {
    node.name: {
        item.targets[0].id: ast.literal_eval(item.value)
        for item in node.body
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)
    }
    for node in TREE.body
    if isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] == ["IntEnum"]
}


@pytest.mark.parametrize("name", ENUMS)
def test_members_have_the_values_of_the_installed_binding(name: str) -> None:
    members = {key: int(value) for key, value in getattr(driver, name).__members__.items()}
    stub = ENUMS[name]
    # The stub is of the newest binding: an older one has fewer members, none of other value.
    newer = {key for key in stub if key not in members}
    assert {key: value for key, value in stub.items() if key not in newer} == members
    assert not newer or driver.CUDA_VERSION < 13040


def test_the_stub_has_the_results_that_errors_are_made_of() -> None:
    from cudadrv.errors import CudaError

    for name, value in ENUMS["CUresult"].items():
        if value:
            cls = CudaError.for_code(value)
            assert cls.result == value
            assert cls("doing").name == name
