"""NVVM IR as a source of modules, where libNVVM is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig

HEAD: Final = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
!nvvmir.version = !{!9}
!9 = !{i32 2, i32 0}
"""
KERNEL: Final = f"""{HEAD}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @change(float)

define void @each(float* %p, float %by) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = sext i32 %t to i64
  %a = getelementptr float, float* %p, i64 %i
  %x = load float, float* %a
  %y = call float @change(float %x)
  %z = fmul float %y, %by
  store float %z, float* %a
  ret void
}}
!nvvm.annotations = !{{!0}}
!0 = !{{void (float*, float)* @each, !"kernel", i32 1}}
"""
DOUBLE: Final = f"""{HEAD}
define float @change(float %x) {{
  %y = fmul float %x, 2.0
  ret float %y
}}
"""
EXPONENT: Final = f"""{HEAD}
declare float @__nv_exp2f(float)
define float @change(float %x) {{
  %y = call float @__nv_exp2f(float %x)
  ret float %y
}}
"""


@pytest.fixture(autouse=True)
def libnvvm() -> None:
    try:
        ptx.compile_nvvm(HEAD, cache=False)
    except ptx.NvvmNotFoundError:
        pytest.skip("needs libNVVM")


def results(stream: cudadrv.Stream, module: cudadrv.Module) -> list[float]:
    x = stream.to_device(np.arange(4, dtype=np.float32))
    module.kernel("each").launch(stream, LaunchConfig(1, 4), x, 0.5)
    return [float(value) for value in stream.to_host(x)]


def test_modules_of_nvvm_ir_become_one(stream: cudadrv.Stream, tmp_path: Path) -> None:
    file = tmp_path / "double.ll"
    file.write_text(DOUBLE)
    module = stream.context.compile_nvvm([KERNEL, file])
    assert results(stream, module) == [0.0, 1.0, 2.0, 3.0]
    signature = module.kernel("each").signature
    assert signature is not None
    assert [param.ptx_type for param in signature.params] == ["u64", "f32"]


def test_functions_of_mathematics_come_from_libdevice(stream: cudadrv.Stream) -> None:
    try:
        module = stream.context.compile_nvvm([KERNEL, EXPONENT])
    except ptx.NvvmNotFoundError:
        pytest.skip("needs libdevice beside libNVVM")
    assert results(stream, module) == [0.5, 1.0, 2.0, 4.0]


def test_nvvm_ir_is_linked_with_other_code(stream: cudadrv.Stream) -> None:
    context = stream.context
    target = context.target.as_kind(ptx.ImageKind.PTX)
    kernel = ptx.compile_nvvm(KERNEL, ptx.NvvmOptions(target=target))
    source = 'extern "C" __device__ float change(float x) { return x + 1; }'
    options = ptx.CompileOptions(target=context.target, extra=("--relocatable-device-code=true",))
    module = context.link([kernel, ptx.compile(source, options)])
    assert results(stream, module) == [0.5, 1.0, 1.5, 2.0]
    with pytest.raises(ptx.LinkError, match="change"):
        context.compile_nvvm(KERNEL)


def test_what_is_wrong_is_reported_by_the_log(context: cudadrv.Context) -> None:
    wrong = KERNEL.replace("fmul float %y, %by", "fmul float %y, %absent")
    with pytest.raises(ptx.NvvmError, match="absent") as caught:
        context.compile_nvvm(wrong, name="mine.ll")
    assert "mine.ll" in caught.value.log
    arch = f"-arch={context.target.virtual}"
    assert caught.value.options == (arch,)
    with pytest.raises(ptx.NvvmError, match="-no-such.* is an unsupported option"):
        context.compile_nvvm(DOUBLE, ptx.NvvmOptions(extra=("-no-such",)))
    with pytest.raises(ValueError, match="at least one module"):
        context.compile_nvvm([])
    with pytest.raises(ValueError, match="libNVVM makes PTX: link that"):
        ptx.NvvmOptions(target=ptx.Target.cubin("sm_90"))
    with pytest.raises(TypeError, match="compile_nvvm: ir"):
        context.compile_nvvm([3])  # type: ignore[list-item]  # what is tested


def test_what_ends_libnvvm_is_reported_before_it_gets_there(context: cudadrv.Context) -> None:
    with pytest.raises(ptx.NvvmError, match="end the process at 'mine.ll': line 1: the data"):
        context.compile_nvvm('target datalayout="x"', name="mine.ll")
    later = ptx.NvvmOptions(target=ptx.Target.ptx("compute_100"))
    with pytest.raises(ptx.NvvmError, match="it has no data layout"):
        ptx.compile_nvvm(HEAD.replace("target datalayout", "; target datalayout"), later)
    with pytest.raises(ptx.NvvmError, match="the annotation .* is none"):
        ptx.compile_nvvm(KERNEL.replace('!"kernel"', "i32 1"))
    # What comes behind may leave the layout to the first one.
    bare = DOUBLE.replace("target datalayout", "; target datalayout")
    image = ptx.compile_nvvm([KERNEL, bare])
    assert image.ptx is not None
    assert "mul" in image.ptx


def test_code_that_only_the_driver_can_read_is_compiled(context: cudadrv.Context) -> None:
    image = ptx.compile_nvvm(HEAD + 'module asm ".frobnicate"')
    assert "parameter types are not known" in image.log


def test_compiled_ir_is_stored(tmp_path: Path) -> None:
    options = ptx.NvvmOptions(target=ptx.Target.ptx("compute_90"))
    found = [
        ptx.compile_nvvm([KERNEL, DOUBLE], options, cache=ptx.ImageCache(tmp_path))
        for _ in range(2)
    ]
    assert [image.origin for image in found] == [ptx.ImageOrigin.COMPILED, ptx.ImageOrigin.DISK]
    assert found[0] == found[1]
    other = ptx.NvvmOptions(target=options.target, ftz=True)
    image = ptx.compile_nvvm([KERNEL, DOUBLE], other, cache=ptx.ImageCache(tmp_path))
    assert image.origin is ptx.ImageOrigin.COMPILED
    assert "mul.ftz.f32" in (image.ptx or "")
