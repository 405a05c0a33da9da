"""The rooms of cudadrv and ptx, the imports between their files, and pictures of them.

`python -m tests.rooms --write` draws the pictures of the architecture page. `--violations` prints
what breaks the laws of imports, a line each.

An import is counted wherever it stands: in a function, or only for the type checker.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.drawing import Drawing

ROOT = Path(__file__).parent.parent
PACKAGES = ("cudadrv", "ptx")
PICTURES = ROOT / "docs" / "images" / "layers"

Graph = dict[str, set[str]]  # file -> the files it imports, as names of modules


@dataclass(frozen=True, slots=True)
class Room:
    """A room: `modules` are its files and folders; the longest name that matches a file decides.

    A module with a "/" at its end is the folder's `__init__` alone.
    """

    name: str
    modules: tuple[str, ...]


def _rooms(*lines: tuple[str, str]) -> tuple[Room, ...]:
    return tuple(Room(name, tuple(modules.split())) for name, modules in lines)


# Top to bottom: a file imports only files of its own room and of rooms below.
ROOMS: dict[str, tuple[Room, ...]] = {
    "cudadrv": _rooms(
        ("cli", "cudadrv.__main__ cudadrv.cli"),
        ("cudadrv", "cudadrv/"),
        ("debugger", "cudadrv.debugger"),
        ("cluster", "cudadrv.cluster"),
        ("testing", "cudadrv.testing"),
        ("client", "cudadrv.client"),
        ("pool", "cudadrv.pool"),
        ("runtime", "cudadrv.runtime"),
        ("tracing", "cudadrv.tracing"),
        ("blas", "cudadrv.blas"),
        ("texture", "cudadrv.texture cudadrv.opengl"),
        ("tensor map", "cudadrv.tensor_map"),
        ("stream", "cudadrv.stream cudadrv.checkpoint cudadrv.allocators"),
        ("graph", "cudadrv.graph"),
        ("launch", "cudadrv.launch"),
        ("interop", "cudadrv.interop"),
        ("memory/reuse", "cudadrv.memory/ cudadrv.memory.reuse"),
        ("memory", "cudadrv.memory cudadrv.ipc"),
        ("sessions", "cudadrv.emulator/ cudadrv.sessions"),
        ("driver", "cudadrv.driver cudadrv.nvml"),
        ("shared libraries", "cudadrv.emulator.shared_libraries"),
        ("emulator", "cudadrv.emulator"),
        (
            "seam",
            "cudadrv.driver._api cudadrv.driver.driver_api cudadrv.driver.functions "
            "cudadrv.driver.loading cudadrv.driver.driver_log cudadrv.driver.deferred_start",
        ),
        (
            "errors",
            "cudadrv.errors cudadrv.version cudadrv.ptx_package cudadrv.border cudadrv.lazy_names "
            "cudadrv.freezing cudadrv.environment",
        ),
    ),
    "ptx": _rooms(
        ("ptx", "ptx/"),
        (
            "verbs",
            "ptx.compiling ptx.linking ptx.nvvm ptx.image_cache ptx.prewarming ptx.disassembler"
            " ptx.compile_report ptx.source_text",
        ),
        (
            "build",
            "ptx.nvrtc_build ptx.linker ptx.assembler ptx.kernel_types ptx.precompiled_headers"
            " ptx.fatbin",
        ),
        ("cache", "ptx.cache ptx.headers"),
        ("image", "ptx.image"),
        ("emulate", "ptx.emulate/ ptx.emulate.program ptx.emulate.watchers"),
        ("emulate/check", "ptx.emulate.check"),
        ("emulate/debug", "ptx.emulate.debug"),
        ("emulate/count", "ptx.emulate.count"),
        ("emulate/history", "ptx.emulate.history"),
        ("emulate/requirements", "ptx.emulate.requirements"),
        ("emulate/ops", "ptx.emulate.ops"),
        ("emulate/codegen", "ptx.emulate.codegen"),
        ("emulate/exec", "ptx.emulate.exec"),
        ("emulate/texture", "ptx.emulate.texture"),
        ("emulate/access", "ptx.emulate.access"),
        ("emulate/threads", "ptx.emulate.threads"),
        ("emulate/findings", "ptx.emulate.check.findings"),
        ("emulate/kernel facts", "ptx.emulate.kernel_facts ptx.emulate.observer"),
        ("emulate/memory", "ptx.emulate.memory"),
        ("emulate/model", "ptx.emulate.model"),
        ("emulate/ieee", "ptx.emulate.ieee"),
        ("isa", "ptx.isa"),
        (
            "values",
            "ptx.argument_checks ptx.base_errors ptx.options ptx.target ptx.signature"
            " ptx.diagnostics ptx.errors ptx._nvrtc ptx.visible_text"
            " ptx.cubin_mark ptx.latch ptx.read_only ptx.shown_path ptx.standard_streams"
            " ptx.ordinary_files",
        ),
    ),
}
# Rooms of these two kinds do not know each other, whichever stands above.
_COMPILING = frozenset({"verbs", "build", "cache", "image"})
_EMULATING = frozenset(room.name for room in ROOMS["ptx"] if room.name.startswith("emulate"))

# What each folder imports of an engine beyond the public names of its package. Everything else of
# the engine is its own: to import another name, add it here, or move code to the engine's side.
FACES: dict[str, dict[str, tuple[str, ...]]] = {
    "ptx.emulate": {
        "cudadrv.debugger": (
            "check.findings: demangled",
            "debug.debug_info: DebugInfo",
            "debug.expression: Conditions Evaluator ExpressionError Place Result parsed",
            "debug.frames: Frame StoppedLaunch",
            "debug.quick_loops: QuickLoops",
            "debug.stops: ANY NEVER Breakpoint CodePoint Orders Plan Searched Stop StopHandler "
            "Stops Thread Watchpoint lane_at",
            "model.addresses: Index",
            "model.geometry: WARP",
            "threads.fibre: Fibre",
            "watchers: process_watchers",
        ),
        "cudadrv.driver": ("check.findings: Found",),
        "cudadrv.emulator": (
            "check.accessed_bytes: AccessedBytes LaunchAccesses",
            "check.findings: Access Finding Findings Found KernelFault MissingOrder Place",
            "count.counts: AtomicTraffic Branches Counts Executed GlobalTraffic Line SharedTraffic",
            "count.instruction_class: InstructionClass",
            "count.launch_counts: LaunchCounts",
            "exec.collection: collection_paused",
            "exec.order.ordered_launch: Turns",
            "memory.device_memory: MappedPiece Reservation WrittenBytes map_shared",
            "memory.mapped_memory: MappedHostMemory PeerMemory",
            "model.geometry: GridCall",
            "model.grid_dependency: GridDependency",
            "model.tensor_map: TensorLayout",
            "watchers: LAUNCH_CHECKS",
        ),
        "cudadrv.errors": ("check.findings: Found",),
        "cudadrv.sessions": ("check.findings: Found",),
        "cudadrv.testing": (
            "check.findings: demangled",
            "check.race_check: GUESS SAME_VALUE",
            "codegen.analysis.control_flow: ControlFlow InsertionPoint",
            "codegen.table: find_operation",
            "count.warp_rows: traffic_of",
            "history.access_log: AccessLog LoggedAccess",
            "history.value_chain: ChainStep ValueChain",
            "history.value_trace: ValueTrace",
            "model.geometry: Dim3 WARP",
        ),
    },
    "cudadrv.emulator": {
        "cudadrv.cli": (
            "checks: Checks",
            "command_events: Event",
            "environment: reject_wrong_variables",
            "hosting: still_queued",
            "shared_libraries.early_files: early_folder",
            "shared_libraries.early_libraries: FOLDER start_at_first_call",
            "shared_libraries.library_files: library_folder nvrtc_folder private_folders",
            "shared_libraries.native_library: native_library",
            "shared_libraries.nvrtc_files: SEARCH_PATH nvrtc_file",
            "timeline.schedule: Schedule",
        ),
        "cudadrv.debugger": ("hosting: work_of",),
        "cudadrv.driver": (
            "command_events: Event",
            "hosting: report_after_calls",
        ),
        "cudadrv.sessions": (
            "call_site: user_call_site",
            "command_events: Event",
            "emulator: NEWEST_DRIVER",
            "hosting: clear_faults is_broken keep_no_faults note_kernels still_queued",
            "profiles: given_devices",
            "shared_libraries.libcuda: Libcuda",
            "shared_libraries.libnvidia_ml: LibnvidiaMl",
            "shared_libraries.libnvjitlink: LibnvJitLink",
            "shared_libraries.libnvrtc: LibNvrtc",
            "shared_libraries.library_files: early_folder_here LIBCUDA LIBNVIDIA_ML library_folder",
            "shared_libraries.lock_wait: lock_functions",
            "shared_libraries.runtime_module: RuntimeModule",
            "shared_libraries.shared_object: is_loaded",
            "timeline.schedule: OrderName",
        ),
        "cudadrv.testing": (
            "call_site: user_call_site",
            "checks: Checks",
            "environment: emulated_limits reject_wrong_variables",
            "emulator: NEWEST_DRIVER",
            "hosting: log_operations still_queued",
            "occupancy: OccupancyLimit occupancy_limits",
            "profiles: MAX_TOTAL_MEMORY given_devices",
            "timeline.operation_log: LoggedOperation",
            "timeline.schedule: OrderName Schedule",
        ),
    },
}


@cache
def files() -> dict[str, Path]:
    """Every file of both packages by the name of its module."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        for path in sorted(ROOT.glob(f"{package}/**/*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def names_imported(module: str, source: str, *, is_package: bool) -> Iterator[str]:
    """The full name of each module, and of each name in a module, that a text imports."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and _last_name(node.func).endswith("import_module"):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value


@cache
def names_of(module: str) -> tuple[str, ...]:
    """The same of a file of the packages."""
    path = files()[module]
    is_package = path.name == "__init__.py"
    return tuple(names_imported(module, path.read_text(), is_package=is_package))


def _last_name(called: ast.expr) -> str:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


@cache
def import_graph() -> Graph:
    """Which file imports which, in both packages."""
    known = files()
    graph: Graph = {}
    for module in known:
        graph[module] = set()
        for name in names_of(module):
            target = name if name in known else name.rpartition(".")[0]
            if target in known and target != module:
                graph[module].add(target)
    return graph


@cache  # by module: the tables do not change
def room_of(module: str) -> Room:
    """The room that a file stands in.

    Raises:
        LookupError: the tables name none.
    """
    best: tuple[int, Room] | None = None
    for room in ROOMS[module.partition(".")[0]]:
        for each in room.modules:
            bare = each.removesuffix("/")
            hit = module == bare or (bare == each and module.startswith(bare + "."))
            if hit and (best is None or len(bare) > best[0]):
                best = len(bare), room
    if best is None:
        raise LookupError(f"{module} stands in no room: add it to the tables of tests/rooms.py")
    return best[1]


def is_allowed(importer: Room, imported: Room, package: str) -> bool:
    """Whether files of one room of a package may import those of another."""
    order = ROOMS[package]
    kinds = {importer.name, imported.name}
    if package == "ptx" and kinds & _COMPILING and kinds & _EMULATING:
        return False
    return order.index(importer) <= order.index(imported)


def upward_imports(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The imports of rooms above, and those of ptx that leave ptx, as "a imports b"."""
    found = []
    for module, imported in graph.items():
        package = module.partition(".")[0]
        for target in imported:
            other = target.partition(".")[0]
            allowed = (
                is_allowed(room_of(module), room_of(target), package)
                if other == package
                else package == "cudadrv"
            )
            if not allowed:
                found.append(f"{module} imports {target}")
    return sorted(found)


def names_beyond_the_face(package: str, more: Mapping[str, str] = {}) -> list[str]:
    """The names of a package that other folders import, and that are neither public nor listed.

    Those that are listed and not imported follow. `more` are further imports, of a name by a file.
    """
    public = set(names_of(package))
    public |= {f"{package}.{name.rpartition('.')[2]}" for name in public}
    imported: dict[str, set[str]] = {}
    for module in files():
        if module != package and not module.startswith(f"{package}."):
            folder = ".".join(module.split(".")[:2])
            names = {*names_of(module), *([more[module]] if module in more else [])}
            imported.setdefault(folder, set()).update(
                name for name in names - public if name.startswith(f"{package}.")
            )
    listed = {
        folder: {
            f"{package}.{file}.{name}"
            for file, names in (line.split(": ") for line in lines)
            for name in names.split()
        }
        for folder, lines in FACES[package].items()
    }
    return [
        *(
            f"{folder} imports {name}: add it to FACES in tests/rooms.py, or move code"
            for folder, names in imported.items()
            for name in sorted(names - listed.get(folder, set()))
        ),
        *(
            f"{folder} does not import {name}: remove it from FACES in tests/rooms.py"
            for folder, names in listed.items()
            for name in sorted(names - imported.get(folder, set()))
        ),
    ]


def circles(graph: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """The files that import each other in a circle; by Tarjan."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in graph.get(module, ()):
            if target not in index:
                visit(target)
            if target in stack:
                low[module] = min(low[module], low[target])
        if low[module] == index[module]:
            start = stack.index(module)
            found.append(tuple(sorted(stack[start:])))
            del stack[start:]

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return sorted(each for each in found if len(each) > 1)


def violations(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """What breaks the laws of imports between files of the two packages, a line each."""
    return [*upward_imports(graph), *(f"circle: {', '.join(each)}" for each in circles(graph))]


def drawings(graph: Mapping[str, Iterable[str]]) -> dict[Path, str]:
    """A file for each package: its rooms from top to bottom."""
    return {PICTURES / f"{package}.svg": _drawing(package, graph) for package in PACKAGES}


def _drawing(package: str, graph: Mapping[str, Iterable[str]]) -> str:
    """Rooms below those that import them; an arrow that a longer way down implies is left out."""
    below, up = _arrows(package, graph)
    height: dict[str, int] = {}
    for name, targets in reversed(below.items()):  # those below come first
        height[name] = max((height[target] + 1 for target in targets), default=0)
    rows: dict[int, list[str]] = {}
    for name in below:
        rows.setdefault(max(height.values()) - height[name], []).append(name)
    place: dict[str, tuple[float, float]] = {}
    width = min(160.0, 700 / max(map(len, rows.values())) - 10)
    for row, names in sorted(rows.items()):
        names.sort(key=lambda name: _mean(place[a][0] for a in place if name in below[a]))
        for column, name in enumerate(names):
            place[name] = 720 * (column + 0.5) / len(names), 20 + 62 * row
    drawing = Drawing(720, 62 * len(rows) + 10, f"The layers of {package} from top to bottom")
    for name, targets in below.items():
        for target in targets:
            drawing.line((place[name][0], place[name][1] + 32), place[target])
    for a, b in sorted(up):
        drawing.line(place[a], (place[b][0], place[b][1] + 32), dashed=True)
    for name, (x, y) in place.items():
        drawing.box(x - width / 2, y, width, 32, name)
    return drawing.svg()


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 360.0


def _arrows(
    package: str, graph: Mapping[str, Iterable[str]]
) -> tuple[dict[str, list[str]], set[tuple[str, str]]]:
    """The rooms that each one imports but by another one, from top to bottom; and those above."""
    order = [room.name for room in ROOMS[package]]
    down: dict[str, set[str]] = {}
    up: set[tuple[str, str]] = set()
    for module, imported in graph.items():
        for target in imported:
            if not (module.startswith(package) and target.startswith(package)):
                continue
            a, b = room_of(module).name, room_of(target).name
            if order.index(a) < order.index(b):
                down.setdefault(a, set()).add(b)
            elif a != b:
                up.add((a, b))
    used = [name for name in order if name in down or any(name in each for each in down.values())]
    reached: dict[str, set[str]] = {}
    direct: dict[str, list[str]] = {}
    for name in reversed(used):
        targets = down.get(name, set())
        implied = set[str]().union(*(reached[each] for each in targets))
        reached[name] = targets | implied
        direct[name] = [each for each in order if each in targets - implied]
    return {name: direct[name] for name in used}, up


def main() -> None:
    """Draw the pictures, or print the violations."""
    parser = argparse.ArgumentParser(prog="python -m tests.rooms", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true")
    what.add_argument("--violations", action="store_true")
    graph = import_graph()
    if parser.parse_args().violations:
        print("\n".join(violations(graph)))
        return
    PICTURES.mkdir(exist_ok=True)
    for path, text in drawings(graph).items():
        path.write_text(text)


if __name__ == "__main__":
    main()
