"""The check "leak" of a whole program: what a module reaches is no leak, and all else is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import cudadrv
from tests.patience import SECONDS

BEGIN: Final = """
import atexit, collections, contextvars, ctypes, enum, functools, itertools, sys, threading, types
import weakref
import cudadrv, package.part
context = cudadrv.cuda_context_for(0)
source = 'extern "C" __global__ void k() {}'

def made():
    stream = context.new_stream()
    return [stream, stream.record(), stream.zeros(64, "f4"), context.new_graph(),
            context.compile(source).kernel("k")]
"""
HELD: Final = """
class Key: pass
class Slots: __slots__ = ("x",)
class Lazy:
    y = made()
    @functools.cached_property
    def x(self): return made()
@functools.cache
def cached(): return made()
@functools.lru_cache(maxsize=1)
def recent(n): return made()
def default(x=made(), *, y=made()): return x
def closure():
    x = made()
    return lambda: x
def steps():
    x = made()
    yield 1
    yield x
async def later(x): return x

globals()["a"] = {"b": [made()]}
cached(), recent(1)
f, g, lazy, slots, key = closure(), steps(), Lazy(), Slots(), Key()
next(g)
lazy.x
slots.x = made()
variable = contextvars.ContextVar("variable")
variable.set(made())
local = threading.local()
local.x = made()
weak = weakref.WeakKeyDictionary({key: made()})
weakref.finalize(key, len, made())
atexit.register(len, made())
package.part.kept = made()
module = types.ModuleType("module")
module.x = made()
sys.modules["module"] = module
del module
kept = [functools.partial(len, made()), made()[0].close, types.MappingProxyType({1: made()}),
        collections.deque(made()), itertools.repeat(made()), later(made())]
sys.excepthook = lambda *_, x=made(): x
ring = made()
ring.append(ring)
del ring  # the collection before the check frees it
import package.gone
package.gone.x = made()
del sys.modules["package.gone"], package.gone
"""
LOST: Final = """
import package.gone
package.gone.x = made()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(package.gone))
del sys.modules["package.gone"], package.gone
"""


@pytest.mark.slow
@pytest.mark.parametrize(("text", "status"), [(HELD, 0), (LOST, 66)])
def test_only_what_no_module_reaches_is_a_leak(tmp_path: Path, text: str, status: int) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name in ("__init__", "part", "gone"):
        (package / f"{name}.py").write_text("")
    (tmp_path / "script.py").write_text(BEGIN + text)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "cudadrv", "check", "--checks=leak", "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(cudadrv.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == status, done.stderr
    for noun in ("stream", "event", "256 bytes of device memory", "graph", "module"):
        assert (f"leak: {noun}" in done.stderr or f"leak: a {noun}" in done.stderr) == bool(status)
