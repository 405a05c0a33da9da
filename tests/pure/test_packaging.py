"""What is published beside the wheel: recipe of conda, hooks of PyInstaller, bill of materials."""

from __future__ import annotations

import importlib.util
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import cudadrv
from cudadrv.freezing import compiler_files, data_files, hidden_imports, hook_folders
from tools.bill_of_materials import bill, write

ROOT = Path(cudadrv.__file__).parents[1]
METADATA = """\
Metadata-Version: 2.4
Name: Some_Package
Version: 1.2
Summary: Does something
License-Expression: MIT
Requires-Dist: numpy>=1.26
Requires-Dist: rich>=13.7; extra == 'cli'
Requires-Dist: numpy<3; extra == 'old'
Requires-Dist: tool.name[more]>=1; sys_platform != 'darwin'
Requires-Dist: some-package[cli]; extra == 'all'
"""


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return found


def test_the_recipe_has_the_versions_and_commands_of_the_project() -> None:
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    table = project()
    requirements = [*table["project"]["dependencies"], *table["build-system"]["requires"]]
    for requirement in requirements:
        name, versions = re.findall(r"^([\w-]+)(.*)$", requirement)[0]
        found = re.search(rf"^    - {name} (.*)$", recipe, re.MULTILINE)
        assert found is not None, name
        assert found[1] == versions, name
    assert f'version: "{cudadrv.__version__}"' in recipe
    assert f'python_min: "{table["project"]["requires-python"].removeprefix(">=")}"' in recipe
    (command,) = table["project"]["scripts"].items()
    assert f"- {' = '.join(command)}\n" in recipe
    assert f"license: {table['project']['license']}\n" in recipe
    assert f"homepage: {table['project']['urls']['Source']}\n" in recipe


def test_hooks_name_every_module_that_can_be_imported_and_all_data() -> None:
    for package in ("cudadrv", "ptx"):
        names = hidden_imports(package)
        assert len(names) > 100
        assert len(set(names)) == len(names)
        assert not [name for name in names if importlib.util.find_spec(name) is None]
        assert package in names
    assert {"ptx.emulate.ops.floating_point", "cudadrv.cli.profile"} <= {
        *hidden_imports("ptx"),
        *hidden_imports("cudadrv"),
    }
    assert not [name for name in hidden_imports("cudadrv") if name.startswith("cudadrv.testing")]
    data = {Path(path).name: folder for path, folder in data_files("cudadrv")}
    assert data["selftest.cu"] == "cudadrv/cli"
    assert data["nvcc"] == "cudadrv/cli/toolkit/bin"
    assert not [name for name in data if name.endswith((".py", ".pyc"))]
    files = {Path(path).name.partition(".")[0]: folder for path, folder in compiler_files()}
    assert files == {} or {"libnvrtc", "libnvrtc-builtins"} <= set(files)
    assert set(files.values()) <= {"."}
    (folder,) = hook_folders()
    assert {path.name for path in Path(folder).glob("hook-*.py")} == {
        "hook-cudadrv.py",
        "hook-ptx.py",
    }


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "some_package-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_package-1.2.dist-info/METADATA", METADATA)
    return path


def test_a_bill_of_materials_has_each_required_package_once_with_its_versions(wheel: Path) -> None:
    found = bill(wheel)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    own = found["metadata"]["component"]
    assert own["purl"] == "pkg:pypi/some-package@1.2"
    assert own["licenses"] == [{"expression": "MIT"}]
    components = {
        each["name"]: (each["scope"], [each["value"] for each in each["properties"]])
        for each in found["components"]
    }
    assert components == {
        "numpy": ("required", ["numpy>=1.26", "numpy<3; extra == 'old'"]),
        "rich": ("optional", ["rich>=13.7; extra == 'cli'"]),
        "tool-name": ("required", ["tool.name[more]>=1; sys_platform != 'darwin'"]),
    }
    first, *others = found["dependencies"]
    assert first["ref"] == own["bom-ref"]
    assert first["dependsOn"] == [each["ref"] for each in others]


def test_equal_wheels_have_equal_bills(wheel: Path) -> None:
    path = write(wheel)
    text = path.read_text()
    assert path.name == "some_package-1.2.cdx.json"
    assert write(wheel).read_text() == text
    other = METADATA.replace("1.26", "2.0")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some_package-1.2.dist-info/METADATA", other)
    assert bill(wheel)["serialNumber"] not in text
