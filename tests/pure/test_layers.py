"""The laws of imports: ptx stands alone, two files touch cuda.bindings, rooms import downward."""

from __future__ import annotations

import ast

import pytest

from cudadrv.driver.driver_api import FUNCTIONS
from tests import rooms
from tests.rooms import ROOMS, Room

SEAMS = {"cudadrv.driver._api", "ptx._nvrtc"}
IMPORTS = (ast.Import, ast.ImportFrom)


def file_of(room: Room) -> str:
    """A file of a room; a made-up one while the room has none."""
    made_up = room.modules[0].rstrip("/")
    return next(
        (module for module in rooms.import_graph() if rooms.room_of(module) == room), made_up
    )


def with_import(importer: str, imported: str) -> rooms.Graph:
    """The graph with one import more."""
    return {
        **rooms.import_graph(),
        importer: rooms.import_graph().get(importer, set()) | {imported},
    }


def test_every_file_stands_in_a_room() -> None:
    assert all(rooms.room_of(module) for module in rooms.files())


def test_imports_point_down_and_go_in_no_circle() -> None:
    assert rooms.violations(rooms.import_graph()) == []


def test_an_upward_import_is_reported() -> None:
    missed = []
    for layers in ROOMS.values():
        for at, room in enumerate(layers):
            importer = file_of(room)
            for imported in map(file_of, layers[:at]):
                planted = {importer: with_import(importer, imported)[importer]}
                if f"{importer} imports {imported}" not in rooms.upward_imports(planted):
                    missed.append((importer, imported))
    assert missed == []


def test_an_import_of_cudadrv_by_ptx_is_reported() -> None:
    planted = with_import("ptx.signature", "cudadrv.version")
    assert "ptx.signature imports cudadrv.version" in rooms.upward_imports(planted)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [("ptx.image_cache", "ptx.emulate.program"), ("ptx.emulate.program", "ptx.image_cache")],
)
def test_compiling_and_emulating_do_not_know_each_other(importer: str, imported: str) -> None:
    assert f"{importer} imports {imported}" in rooms.upward_imports(with_import(importer, imported))


@pytest.mark.parametrize("package", rooms.FACES)
def test_other_folders_import_only_public_and_listed_names_of_an_engine(package: str) -> None:
    assert rooms.names_beyond_the_face(package) == []


@pytest.mark.parametrize(
    ("package", "importer", "name"),
    [
        ("ptx.emulate", "cudadrv.cli.check", "ptx.emulate.model.addresses.Index"),
        ("ptx.emulate", "cudadrv.emulator.launch", "ptx.emulate.exec.launch.Launch"),
        ("cudadrv.emulator", "cudadrv.testing.plan", "cudadrv.emulator.pools.Pool"),
        ("cudadrv.emulator", "cudadrv.driver.device", "cudadrv.emulator.checks.Checks"),
        ("cudadrv.emulator", "cudadrv.cluster.worker", "cudadrv.emulator.hosting"),
    ],
)
def test_another_name_of_an_engine_is_reported(package: str, importer: str, name: str) -> None:
    folder = ".".join(importer.split(".")[:2])
    (found,) = rooms.names_beyond_the_face(package, {importer: name})
    assert found.startswith(f"{folder} imports {name}: ")


def test_a_circle_is_reported() -> None:
    planted = with_import("ptx.emulate.memory.site", "ptx.emulate.memory.pointer_extents")
    circle = next(each for each in rooms.circles(planted) if "ptx.emulate.memory.site" in each)
    assert "ptx.emulate.memory.pointer_extents" in circle


@pytest.mark.parametrize(
    "text",
    [
        "import a.b.c",
        "from a.b import c",
        "from .c import name",
        "from . import c",
        "from ..b import c",
        "if TYPE_CHECKING:\n    from a.b.c import Name",
        "def f():\n    from a.b import c",
        "class C:\n    import a.b.c as other",
        "module = import_module('a.b.c')",
    ],
)
def test_every_form_of_import_counts(text: str) -> None:
    found = list(rooms.names_imported("a.b.d", text, is_package=False))
    assert found[0].removesuffix(".name").removesuffix(".Name") == "a.b.c"


def test_a_relative_import_of_a_package_starts_in_it() -> None:
    assert list(rooms.names_imported("a.b", "from .c import d", is_package=True)) == ["a.b.c.d"]


def test_ptx_never_imports_cudadrv() -> None:
    for module in rooms.files():
        if module.partition(".")[0] == "ptx":
            found = [name for name in rooms.names_of(module) if name.split(".")[0] == "cudadrv"]
            assert not found, f"{module} imports {found}"


def test_only_the_seams_import_cuda_bindings() -> None:
    touching = {
        module
        for module in rooms.files()
        if any(name.startswith("cuda.bindings") for name in rooms.names_of(module))
    }
    assert touching == SEAMS


def test_each_function_of_the_seam_is_called_by_cudadrv() -> None:
    """What only tests call is no part of it; what the emulator has is not called by that."""
    called = {
        node.attr
        for module, path in rooms.files().items()
        if module.startswith("cudadrv.") and not module.startswith("cudadrv.emulator")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    functions = set(FUNCTIONS)
    assert len(functions) > 50
    assert functions - called == set()


def test_the_picture_has_every_room_and_no_arrow_up() -> None:
    downward = {
        module: {
            target
            for target in imported
            if not rooms.upward_imports({module: [target]}) and target in rooms.import_graph()
        }
        for module, imported in rooms.import_graph().items()
    }
    drawn = "".join(rooms.drawings(downward).values())
    dashed = "stroke-dasharray"
    assert dashed not in drawn
    assert all(f">{rooms.room_of(module).name}</text>" in drawn for module in rooms.files())
    upward = rooms.drawings(with_import("ptx.signature", "ptx.image_cache"))
    assert dashed in "".join(upward.values())


def imported_at_once(package: str) -> set[str]:
    """The files of a package that its `__init__` imports."""
    statements = ast.parse(rooms.files()[package].read_text()).body
    text = "\n".join(map(ast.unparse, (s for s in statements if isinstance(s, IMPORTS))))
    names = rooms.names_imported(package, text, is_package=True)
    return {file_of_name(name) for name in names if file_of_name(name).startswith(f"{package}.")}


def file_of_name(name: str) -> str:
    return name if name in rooms.files() else name.rpartition(".")[0]


def test_two_threads_can_import_a_package_and_a_file_of_it_at_once() -> None:
    # The import of a file holds the file's lock while it imports the package. If the package
    # imported that file, two threads would wait for each other. So a package imports none of its
    # files, or the files of other packages import the package before one of these files.
    packages = [name for name, path in rooms.files().items() if path.name == "__init__.py"]
    wrong = []
    for package in packages:
        own = imported_at_once(package)
        if "." not in package:  # programs import files of these, but not these three
            known = {f"cudadrv.{name}" for name in ("lazy_names", "ptx_package", "version")}
            wrong += [(package, own)] * (not own <= known)
            continue
        others = {module for module in rooms.files() if not f"{module}.".startswith(f"{package}.")}
        for module in others if own else ():
            imported = rooms.names_of(module)
            if package not in imported and own & {file_of_name(name) for name in imported}:
                wrong.append((module, own))
    assert wrong == []
