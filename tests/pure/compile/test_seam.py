"""The seam to NVRTC and nvJitLink: imported late, with stubs that say what the modules have."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Never

import pytest
from cuda.bindings import nvjitlink, nvrtc

import ptx
from ptx import _nvrtc

ROOT = Path(ptx.__file__).parents[1]


def test_importing_ptx_imports_no_binding_and_touches_no_library() -> None:
    script = (
        "import sys, ptx\n"
        "late = ('cuda.bindings', 'cuda.pathfinder', 'numpy', 'ptx.isa', 'ptx.nvrtc_build')\n"
        "print([m for m in late if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"


def test_every_public_name_is_there() -> None:
    assert all(hasattr(ptx, name) for name in dir(ptx))
    assert {"compile", "ImageCache", "Diagnostic", "parse"} <= set(dir(ptx))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ptx.nothing  # type: ignore[attr-defined]  # noqa: B018  # what is tested


def stub_members(module: str, enum: str) -> dict[str, int]:
    tree = ast.parse((ROOT / "stubs/cuda/bindings" / f"{module}.pyi").read_text())
    (found,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == enum]
    return {
        target.id: ast.literal_eval(node.value)
        for node in found.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@pytest.mark.parametrize(
    ("module", "enum"),
    [("nvrtc", "nvrtcResult"), ("nvjitlink", "Result"), ("nvjitlink", "InputType")],
)
def test_enum_members_of_the_stub_have_the_values_of_the_module(module: str, enum: str) -> None:
    if not (ROOT / "stubs").is_dir():
        pytest.skip("the stubs are not installed with the package")
    real = getattr({"nvrtc": nvrtc, "nvjitlink": nvjitlink}[module], enum)
    members = {member.name: int(member) for member in real}
    stub = stub_members(module, enum)
    # An older binding lacks the newest members; a newer one may have more.
    shared = {name: value for name, value in stub.items() if name in members}
    assert shared == {name: members[name] for name in shared}
    assert len(shared) >= 0.75 * len(stub)
    if nvrtc.nvrtcVersion()[1:] == (13, 4):
        assert stub.keys() <= members.keys()


class OtherNvrtc:
    """An NVRTC newer than its binding: one of its functions returns a result that is not known."""

    def __init__(self, call: str, error: Exception) -> None:
        self._call, self._error = call, error

    def __getattr__(self, name: str) -> object:
        return self._failing() if name == self._call else getattr(nvrtc, name)

    def _failing(self) -> Callable[..., Never]:
        def fail(*_: object) -> Never:
            raise self._error

        fail.__name__ = self._call
        return fail


@pytest.mark.parametrize(
    "call",
    [
        "nvrtcVersion",
        "nvrtcGetSupportedArchs",
        "nvrtcCreateProgram",
        "nvrtcAddNameExpression",
        "nvrtcCompileProgram",
        "nvrtcGetLoweredName",
        "nvrtcGetProgramLogSize",
        "nvrtcGetProgramLog",
        "nvrtcGetPTXSize",
        "nvrtcGetPTX",
        "nvrtcDestroyProgram",
    ],
)
# What bindings of CUDA 13 and 12.9 raise.
@pytest.mark.parametrize(
    "error", [ValueError("98 is not a valid nvrtcResult"), KeyError(98)], ids=["13", "12"]
)
def test_a_result_that_the_binding_does_not_know_is_an_nvrtc_error(
    call: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (_nvrtc.api, _nvrtc.version, _nvrtc.supported_archs):
        monkeypatch.setattr(_nvrtc, each.__name__, each.__wrapped__)
    other = OtherNvrtc(call, error)
    monkeypatch.setattr(_nvrtc, "api", lambda: other)
    with pytest.raises(ptx.NvrtcError, match=f"^{call} failed: .* update cuda-python") as caught:
        _nvrtc.version()
        _nvrtc.supported_archs()
        with _nvrtc.NvrtcProgram("template<int> __global__ void k() {}", "a.cu", ()) as program:
            program.add_name_expression("k<1>")
            program.compile(())
            program.lowered_name("k<1>")
            program.log()
            program.ptx()
    assert (caught.value.call, caught.value.code) == (call, 98)
