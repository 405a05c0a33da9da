from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cudadrv.emulator
from cudadrv.emulator.calls.call import DriverCalls
from cudadrv.emulator.emulator import Emulator
from tests.rows import all_rows

ROOM = Path(cudadrv.emulator.__file__).parent
BELOW = (
    "cudadrv.emulator",
    "cudadrv.errors",
    "cudadrv.border",
    "cudadrv.environment",
    "cudadrv.driver._api",
    "cudadrv.driver.driver_api",
    "cudadrv.driver.deferred_start",
    "cudadrv.driver.functions",
)


def imported(path: Path) -> set[str]:
    """The modules of cudadrv that a file imports, also for the type checker alone."""
    package = ["cudadrv", "emulator", *path.relative_to(ROOM).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {".".join([*base, name]) for name in names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cudadrv"):
            found.add(node.module or "")
    return found


@all_rows
@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda p: p.stem)
def test_the_emulator_imports_nothing_of_cudadrv_but_errors_and_the_seam(path: Path) -> None:
    above = {name for name in imported(path) if not name.startswith(BELOW)}
    if path == ROOM / "__init__.py":
        sessions = {"cudadrv.sessions.session", "cudadrv.sessions.stand_in"}
        assert above == {"cudadrv.lazy_names", *sessions}
    else:
        assert not above


def test_the_public_names_are_there() -> None:
    for name in cudadrv.emulator.__all__:  # type: ignore[attr-defined]  # there at run time alone
        assert getattr(cudadrv.emulator, name) is not None
        assert name in dir(cudadrv.emulator)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        _ = cudadrv.emulator.absent  # type: ignore[attr-defined]  # what is tested


@pytest.mark.slow
def test_a_context_loads_no_compiler_no_operation_and_no_parser() -> None:
    code = """
import sys
import numpy  # NumPy 1 loads hashlib
before = set(sys.modules)
import cudadrv
from cudadrv import emulator
with emulator.session():
    cudadrv.cuda_context_for(0)
    print(*set(sys.modules) - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "cudadrv.stream" in loaded
    assert not loaded & {
        "cudadrv.launch",
        "hashlib",
        "ptx.emulate.codegen",
        "ptx.emulate.count",
        "ptx.emulate.exec.launch",
        "ptx.emulate.ops",
        "ptx.emulate.program",
        "ptx.emulate.requirements",
        "ptx.image_cache",
        "ptx.options",
        "ptx.isa.model",
        "ptx.isa.module",
    }


@pytest.mark.slow
def test_a_plain_launch_loads_no_race_checks_no_counters_and_no_matrix_or_texture_operations() -> (
    None
):
    code = """
import sys
import cudadrv
from cudadrv import emulator
with emulator.session(order="immediate", check=()):
    context = cudadrv.cuda_context_for(0)
    kernel = context.compile('extern "C" __global__ void f(int* x) { *x = 3; }').kernel("f")
    stream = context.new_stream()
    x = stream.empty(1, "int32")
    kernel.launch(stream, cudadrv.LaunchConfig(1, 1), x)
    assert stream.to_host(x)[0] == 3
    print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "ptx.emulate.exec.launch" in loaded
    assert not loaded & {
        "ptx.emulate.ops.tcgen05",
        "ptx.emulate.ops.texture",
        "ptx.emulate.ops.wgmma",
        "ptx.emulate.check.chunk_races",
        "ptx.emulate.check.race_check",
        "ptx.emulate.count.chunk_counts",
    }


@pytest.mark.slow
def test_threads_may_load_the_first_modules_of_a_process_at_once() -> None:
    code = """
import threading
from cudadrv import emulator
from cudadrv.driver._api import CUdevice
text = b'.version 8.0\\n.target sm_90\\n.address_size 64\\n.visible .entry k() { ret; }\\0'
results = []
with emulator.session(devices=4) as driver:
    driver.cuInit(0)
    begin = threading.Barrier(8)
    def load(device):
        driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(CUdevice(device))[1])
        begin.wait()
        code, module = driver.cuModuleLoadData(text)
        results.append((int(code), int(driver.cuModuleGetFunction(module, b'k')[0])))
    threads = [threading.Thread(target=load, args=(number % 4,)) for number in range(8)]
    for each in threads: each.start()
    for each in threads: each.join()
print(results == [(0, 0)] * 8)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True", done.stderr


def test_each_chapter_of_the_driver_stands_on_one_base() -> None:
    assert {chapter.__bases__ for chapter in Emulator.__bases__} == {(DriverCalls,)}


def test_no_driver_function_is_in_two_chapters() -> None:
    functions = [
        name for chapter in Emulator.__bases__ for name in vars(chapter) if name.startswith("cu")
    ]
    assert len(functions) == len(set(functions)) > 200
