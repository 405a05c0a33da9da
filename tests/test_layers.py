"""The laws of imports: ptx stands alone, two files touch cuda.bindings, layers point down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = sorted([*ROOT.glob("cudadrv/**/*.py"), *ROOT.glob("ptx/**/*.py")])

# Lowest first: a file imports only what stands before it, or in its own group.
CUDADRV_LAYERS = (
    ("version", "errors", "driver", "driver.attributes", "interop", "launch"),
    ("driver._api",),
    ("emulator",),
    ("driver.in_use", "driver.types", "driver.capability", "interop.array_interface"),
    ("interop.capsule", "driver.device", "driver.emulated"),
    ("driver.event", "interop.dlpack", "memory.buffer", "memory.array"),
    ("interop.foreign", "memory.copy_threads", "memory.pinned", "memory.transfer"),
    ("memory.staging",),
    ("memory.copy",),
    ("memory.fill",),
    ("graph", "host_function"),
    ("stream",),
    ("launch.config", "launch.attributes", "launch.arguments", "launch.occupancy"),
    ("launch.code",),
    ("launch.launcher",),
    ("launch.kernel",),
    ("launch.types",),
    ("launch.module",),
    ("driver.context",),
    ("memory", "texture"),
    ("blas",),
    ("runtime", "pool"),
    ("client", "tracing"),
    ("cli",),
    ("__main__", "__init__"),
)
PTX_LAYERS = (
    ("errors", "record", "signature", "isa"),
    ("target", "options", "diagnostics", "_nvrtc"),
    ("",),  # the compiling half, whose files come and go
    ("emulate",),
    ("__init__",),
)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def runtime_imports(path: Path) -> Iterator[str]:
    """The modules a file imports when it runs; what only the type checker reads is left out."""
    package = module_name(path).split(".")[:-1]
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            parts = [*base, *(node.module.split(".") if node.module else [])]
            if node.module:
                yield ".".join(parts)
            else:
                yield from (".".join([*parts, alias.name]) for alias in node.names)


def rank(name: str, layers: tuple[tuple[str, ...], ...]) -> int:
    """The layer of a module without its package's name; the longest name that matches decides."""
    best, length = None, -1
    for number, group in enumerate(layers):
        for entry in group:
            hit = entry == "" or name == entry or name.startswith(entry + ".")
            if hit and len(entry) > length:
                best, length = number, len(entry)
    assert best is not None, f"{name} has no layer: add it to the list"
    return best


def test_ptx_never_imports_cudadrv() -> None:
    for path in ROOT.glob("ptx/**/*.py"):
        found = [name for name in runtime_imports(path) if name.split(".")[0] == "cudadrv"]
        assert not found, f"{module_name(path)} imports {found}"


def test_only_the_seams_import_cuda_bindings() -> None:
    for path in FILES:
        if module_name(path) not in ("cudadrv.driver._api", "ptx._nvrtc"):
            found = [name for name in runtime_imports(path) if name.startswith("cuda.bindings")]
            assert not found, f"{module_name(path)} imports {found}"


# Two of the emulator's public names choose the driver in use; they are imported when asked for.
NAMES_OF_THE_EMULATOR = "cudadrv.emulator.__init__"


def test_imports_point_down() -> None:
    upward = []
    for path in FILES:
        package, _, name = module_name(path).partition(".")
        layers = CUDADRV_LAYERS if package == "cudadrv" else PTX_LAYERS
        for imported in runtime_imports(path):
            root, _, target = imported.partition(".")
            if root != package or not target:
                continue
            if module_name(path) == NAMES_OF_THE_EMULATOR and target == "driver":
                continue
            if rank(target, layers) > rank(name, layers):
                upward.append(f"{module_name(path)} imports {imported}")
    assert not upward


def test_an_upward_import_would_be_seen() -> None:
    assert rank("client.sobol", CUDADRV_LAYERS) > rank("stream", CUDADRV_LAYERS)
    assert "cudadrv.stream" in set(runtime_imports(ROOT / "cudadrv/driver/context.py"))
    assert "cudadrv.stream" not in set(runtime_imports(ROOT / "cudadrv/driver/event.py"))
