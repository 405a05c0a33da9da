from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import cudadrv
import ptx

ROOT = Path(__file__).parents[2]
SUBMODULES = (
    "allocators", "blas", "checkpoint", "client", "cluster", "driver", "emulator", "errors",
    "graph", "interop", "ipc", "launch", "memory", "nvml", "opengl", "pool", "runtime", "stream",
    "tensor_map", "testing", "texture", "tracing",
)  # fmt: skip


@pytest.mark.parametrize("package", [cudadrv, ptx], ids=["cudadrv", "ptx"])
def test_every_public_name_is_there_and_listed(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]  # there at run time alone
    assert len(names) == len(set(names)) > 30
    for name in names:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        _ = package.absent  # type: ignore[attr-defined]  # what is tested


def test_names_of_one_application_are_not_in_the_root() -> None:
    assert not [name for name in dir(cudadrv) if name.startswith(("Pirls", "Reml", "Sobol"))]
    for package, name in (("runtime", "PirlsLoopAdmission"), ("client", "SobolDvCache")):
        assert name in dir(importlib.import_module(f"cudadrv.{package}"))
        with pytest.raises(AttributeError, match=name):
            getattr(cudadrv, name)


def moved() -> dict[str, str]:
    """Return the submodule of each name that is deprecated in the root."""
    table: dict[str, str] = vars(cudadrv)["_MOVED"]
    return {name: module for module, names in table.items() for name in names.split()}


def test_dir_shows_the_names_of_daily_use_and_the_submodules() -> None:
    shown = {name for name in dir(cudadrv) if name not in SUBMODULES}
    assert shown == set(importlib.import_module("cudadrv").__all__)
    assert shown >= {"Context", "Stream", "DeviceArray", "Kernel", "LaunchConfig", "CudadrvError"}
    assert 35 <= len(shown) <= 45
    assert shown.isdisjoint(moved())
    assert set(SUBMODULES) <= set(dir(cudadrv))


def test_each_moved_name_warns_in_the_root_and_not_in_its_submodule() -> None:
    wrong: list[tuple[str, object]] = []
    for name, module in moved().items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            own = getattr(importlib.import_module(f"cudadrv.{module}"), name)
            direct = len(caught)
            if getattr(cudadrv, name) is not own or direct:
                wrong.append((name, direct))
            exec(f"from cudadrv import {name}", {})
        said = {
            f"cudadrv.{name} is deprecated and goes with 1.0: use cudadrv.{module}.{name}",
        }
        if {str(each.message) for each in caught} != said:
            wrong.append((name, [str(each.message) for each in caught]))
        if {each.category for each in caught} != {DeprecationWarning}:
            wrong.append((name, [each.category for each in caught]))
    assert wrong == []
    assert len(moved()) == 117


@pytest.mark.parametrize("use", ["cudadrv.Texture", "from cudadrv import Texture"])
def test_the_warning_names_the_line_of_the_user(use: str) -> None:
    with pytest.warns(DeprecationWarning, match="use cudadrv.texture.Texture") as caught:
        exec(compile(f"\n{use}", "user.py", "exec"), {"cudadrv": cudadrv})
    assert {(each.filename, each.lineno) for each in caught} == {("user.py", 2)}


def test_the_project_itself_uses_no_moved_name() -> None:
    names = "|".join(moved())
    imports = re.compile(rf"from cudadrv import (?:\([^)]*\b|[\w, ]*\b)({names})\b")
    dotted = re.compile(rf"(?<![\w./])cudadrv\.({names})\b")
    own = {Path(__file__), ROOT / "CHANGELOG.md"}
    folders = ("benchmarks", "campaigns", "cudadrv", "docs", "examples", "tests", "tools")
    files = [ROOT / "README.md", *(path for each in folders for path in (ROOT / each).rglob("*"))]
    wrong = [
        f"{path.relative_to(ROOT)}: {match[1]}"
        for path in files
        if path.suffix in (".py", ".md", ".txt") and path not in own
        for pattern in (imports, dotted)
        for match in pattern.finditer(path.read_text())
    ]
    assert wrong == []


def test_every_submodule_lists_its_names() -> None:
    wrong = []
    for submodule in SUBMODULES:
        module = importlib.import_module(f"cudadrv.{submodule}")
        names: list[str] = getattr(module, "__all__", [])
        wrong += [f"{submodule}.{name}" for name in names if not hasattr(module, name)]
        wrong += [f"{submodule}.{name} is not in dir" for name in {*names} - {*dir(module)}]
    assert wrong == []


def read_by_type_checkers(package: ModuleType) -> set[tuple[str | None, str]]:
    """Return module and name of each import that a package makes for type checkers alone."""
    assert package.__file__ is not None
    (block,) = (
        node
        for node in ast.parse(Path(package.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.name == alias.asname for node in imports for alias in node.names)
    return {(node.module, alias.name) for node in imports for alias in node.names}


@pytest.mark.parametrize("name", [
    "cudadrv", "cudadrv.cluster", "cudadrv.driver", "cudadrv.graph", "cudadrv.interop",
    "cudadrv.launch", "cudadrv.memory", "cudadrv.pool", "cudadrv.runtime", "cudadrv.texture",
])  # fmt: skip
def test_type_checkers_read_the_names_that_are_imported_at_first_use(name: str) -> None:
    package = importlib.import_module(name)
    tables = [vars(package)["_NAMES"], vars(package).get("_MOVED", {})]
    imported = {
        (module, each)
        for table in tables
        for module, names in table.items()
        for each in names.split()
    }
    if package is cudadrv:
        imported |= {(None, submodule) for submodule in SUBMODULES}
    assert read_by_type_checkers(package) == imported


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_public_packages_are_there_after_a_plain_import() -> None:
    # A process each, as an import of a package by anything else makes its name an attribute.
    code = (
        "import os, sys, cudadrv\n"
        "for name in sys.argv[1:]:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        module = getattr(cudadrv, name)\n"
        "        os._exit(module is not sys.modules[f'cudadrv.{name}'])\n"
        "    if os.waitpid(child, 0)[1]:\n"
        "        print(name)\n"
        "print(cudadrv.interop.register.__name__)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, *SUBMODULES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["register"], done.stderr


@pytest.mark.parametrize("package", ["cudadrv", "cudadrv.errors", "cudadrv.memory", "ptx"])
def test_a_star_import_brings_the_public_names_and_no_others(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    assert names.keys() - {"__builtins__"} == set(sys.modules[package].__all__)
    assert {name for name, value in names.items() if isinstance(value, ModuleType)} == set()


def test_importing_loads_no_driver_and_nothing_that_a_start_may_not_need() -> None:
    code = "import sys, cudadrv; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "cudadrv.version" in loaded
    heavy = (
        "blas", "cli", "client", "cluster", "driver", "emulator", "launch", "memory", "pool",
        "runtime", "stream", "tensor_map", "texture", "tracing",
    )  # fmt: skip
    rooms = {".".join(module.split(".")[:2]) for module in loaded}
    assert not rooms & {f"cudadrv.{room}" for room in heavy}
    assert not loaded & {
        "dask",
        "distributed",
        "rich",
        "scipy",
        "ptx.emulate",
        "ptx.isa",
        "ptx.nvrtc_build",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_importing_loads_no_library_of_cuda() -> None:
    code = "import cudadrv; print(open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("libcuda.so", "libnvrtc", "libnvJitLink"):
        assert name not in done.stdout


def test_importing_opens_nothing_of_the_cache(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(f'{event} {args}'))\n"
        "import cudadrv\n"
        "print(*opened, sep='\\n')"
    )
    folder = tmp_path / "images"
    environment = {**os.environ, "CUDADRV_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert "open" in done.stdout
    assert str(folder) not in done.stdout
    assert not folder.exists()


def _methods() -> Iterator[tuple[str, str, Callable[..., object]]]:
    """Each function of each class of both packages: name, first parameter to show, function."""
    for package in (cudadrv, ptx):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith(("__main__", "sitecustomize")):
                continue
            for kind in vars(importlib.import_module(found.name)).values():
                if inspect.isclass(kind) and kind.__module__ == found.name:
                    yield from _methods_of(kind)


def _methods_of(kind: type) -> Iterator[tuple[str, str, Callable[..., object]]]:
    own = tuple(f"{package.__name__}." for package in (cudadrv, ptx))
    for name, value in vars(kind).items():
        first = "self"
        if isinstance(value, classmethod) or name == "__new__":
            value, first = getattr(value, "__func__", value), "cls"
        elif isinstance(value, property):
            value = value.fget
        if inspect.isfunction(value) and f"{value.__module__}.".startswith(own):
            yield f"{kind.__module__}.{kind.__qualname__}.{name}", first, value


@pytest.mark.slow
def test_signatures_of_methods_begin_with_self_and_hide_its_type() -> None:
    methods = list(_methods())
    assert len(methods) > 3000
    wrong = [
        f"{name}{inspect.signature(function)}"
        for name, first, function in methods
        for parameter in [next(iter(inspect.signature(function).parameters.values()), None)]
        if parameter is None or parameter.name != first or parameter.annotation != parameter.empty
    ]
    assert not wrong, "\n".join(wrong)
