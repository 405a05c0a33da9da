"""Tests use the public names of the product, but where a layer below them is their subject."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = ("cudadrv", "ptx", "benchmarks", "campaigns", "tools")
# Rows of a file, the names that it may use, and the layer that is its subject.
TABLE: Final = Path(__file__).with_name("private_names.txt")
# The two files that import cuda.bindings. Their own names are those of the driver and of NVRTC.
SEAMS: Final = {"_api", "_nvrtc"}
PATCHES: Final = {"setattr", "delattr"}
PRIVATE: Final = re.compile(r"\b_[A-Za-z]\w*")
# Other files need no parser.
SUSPICIOUS: Final = re.compile(
    r"import .*\b_[A-Za-z]|^ +_\w+,$|attr\(|^ *[a-z_]+\.\w+ = ", re.MULTILINE
)
ATTRIBUTE: Final = re.compile(r"(?<!self)\.(_[A-Za-z]\w*)")
# Of Python's named tuples, protocols and structures of C.
OF_PYTHON: Final = {"_replace", "_is_protocol", "_fields_"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def private_names_of_the_product() -> set[str]:
    files = [path for package in PRODUCT for path in (ROOT / package).rglob("*.py")]
    names = {name for path in files for name in PRIVATE.findall(path.read_text())}
    return names - SEAMS - OF_PYTHON


def imported(nodes: list[ast.AST]) -> dict[str, str]:
    """Return the package of each name that a file imports."""
    packages = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                packages[alias.asname or top] = top
        elif isinstance(node, ast.ImportFrom):
            top = "tests" if node.level else (node.module or "").partition(".")[0]
            for alias in node.names:
                packages[alias.asname or alias.name] = top
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = ast.unparse(node.value)
            if call.startswith("pytest.importorskip("):
                packages[ast.unparse(node.targets[0])] = call.split("'")[1]
    return packages


def root_of(node: ast.expr) -> str:
    """Return the name that an expression of attributes, calls and items begins with."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""
    return node.id


def private_uses(tree: ast.AST, known: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines at which a test uses a private name of the product, or patches the product.

    The name of a patch begins with "patch ". An object whose type is not known counts as the
    product's: a test does not patch its own.
    """
    nodes = list(ast.walk(tree))
    packages = imported(nodes)

    def is_of_others(expression: ast.expr) -> bool:
        root = root_of(expression)
        package = packages.get(root)
        return root in {"self", "cls", "super"} or (package is not None and package not in PRODUCT)

    for node in nodes:
        if isinstance(node, ast.ImportFrom) and not node.level:
            if (node.module or "").partition(".")[0] in PRODUCT:
                for alias in node.names:
                    if is_private(alias.name) and alias.name not in SEAMS:
                        yield node.lineno, alias.name
        elif isinstance(node, ast.Attribute):
            if node.attr in known and not is_of_others(node.value):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call):
            if node.args and not is_of_others(node.args[0]):
                yield from ((node.lineno, name) for name in private_names_of_a_call(node, known))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and is_changed(target, packages):
                    yield node.lineno, f"patch {target.attr}"


def is_changed(target: ast.Attribute, packages: dict[str, str]) -> bool:
    """Return whether an assignment changes a module or class of the product, or a driver."""
    return bool(re.match("cu[A-Z]", target.attr)) or packages.get(root_of(target)) in PRODUCT


def private_names_of_a_call(node: ast.Call, known: set[str]) -> Iterator[str]:
    """Yield what a call of `getattr` reads, and what `monkeypatch.setattr` or `delattr` changes."""
    target, *rest = map(ast.unparse, node.args[:2])
    name = rest[0].strip("'") if rest else ""
    if isinstance(node.func, ast.Name) and node.func.id in {"getattr", "setattr", "hasattr"}:
        if name in known and rest[0].startswith("'"):
            yield name
    elif isinstance(node.func, ast.Attribute) and node.func.attr in PATCHES:
        if not target.startswith("'"):
            yield f"patch {name}"
        elif target.strip("'").partition(".")[0] not in sys.stdlib_module_names:
            yield f"patch {target.rpartition('.')[2]}".strip("'")


def allowed_names() -> dict[str, set[str]]:
    rows = [row.split(" | ") for row in TABLE.read_text().splitlines()]
    table = {file: set(names.split(", ")) for file, names, reason in rows if reason}
    assert len(table) == len(rows), "a file has two rows"
    assert list(table) == sorted(table)
    return table


def test_tests_use_public_names_but_where_a_layer_below_is_their_subject() -> None:
    known, table = private_names_of_the_product(), allowed_names()
    wrong, unneeded = [], []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        file = path.relative_to(ROOT / "tests").as_posix()
        allowed = table.pop(file, set())
        text = path.read_text()
        is_suspicious = SUSPICIOUS.search(text) or not known.isdisjoint(ATTRIBUTE.findall(text))
        uses = list(private_uses(ast.parse(text), known)) if is_suspicious else []
        wrong += [f"tests/{file}:{line}: {name}" for line, name in uses if name not in allowed]
        unneeded += [f"{file}: {name}" for name in allowed - {name for _, name in uses}]
    unneeded += table
    assert not wrong, "\n".join(["use public names, or list these with a reason:", *wrong])
    assert not unneeded, "\n".join([f"remove from {TABLE.name}:", *unneeded])


CASES: Final = """
import cudadrv, os, torch
from cudadrv.driver import handle
from cudadrv.driver._api import CUresult
from cudadrv.driver.handle import _live
from .helpers import own
machine._streams
handle._live["_live"].clear()
context.stream()._handle.raw
getattr(context, "_handle")
os._handle, torch._C._handle, self._handle, own._handle, machine.streams, cudadrv.driver._api.x
monkeypatch.setattr(handle, "report", None)
monkeypatch.setattr(machine, function, None)
monkeypatch.setattr("cudadrv.cli.x.y", None)
monkeypatch.delattr(machine, "cuInit")
monkeypatch.setattr("sys.stderr", None)
monkeypatch.setattr(os, "open", None)
machine.cuInit = handle.report = own.x = print
torch = pytest.importorskip("torch.cuda")
"""


def test_the_search_finds_each_form_of_a_private_use() -> None:
    found = private_uses(ast.parse(CASES), {"_streams", "_live", "_handle", "_C"})
    assert sorted(found) == [
        (5, "_live"), (7, "_streams"), (8, "_live"), (9, "_handle"), (10, "_handle"),
        (12, "patch report"), (13, "patch function"), (14, "patch y"), (15, "patch cuInit"),
        (18, "patch cuInit"), (18, "patch report"),
    ]  # fmt: skip
