"""What kernels take where no compiler of ours said it: PTX tells it, or the driver is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.driver._api import driver
from cudadrv.errors import ArgumentError
from tests.noted_calls import failed_calls

TEXT = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry put(.param .u64 out, .param .f32 value, .param .u8 one)
{
    .reg .b64 %p<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %p1, [out];
    cvta.to.global.u64 %p2, %p1;
    ld.param.f32 %f1, [value];
    st.global.f32 [%p2], %f1;
    ret;
}
.visible .entry nothing() { ret; }
"""
FORMS: dict[str, Callable[[Path], object]] = {
    "str": lambda path: TEXT,
    "bytes": lambda path: TEXT.encode(),
    "ended": lambda path: TEXT.encode() + b"\0",
    "bytearray": lambda path: bytearray(TEXT.encode()),
    "memoryview": lambda path: memoryview(TEXT.encode()),
    "path": lambda path: path,
    "image": lambda path: ptx.Image(ptx.Target.ptx("compute_75"), TEXT.encode()),
}


@pytest.mark.parametrize("form", FORMS)
def test_ptx_itself_reports_what_its_kernels_take(
    context: cudadrv.Context, stream: cudadrv.Stream, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "put.ptx"
    path.write_text(TEXT, encoding="utf-8")
    out = stream.zeros(1, "f4")
    with failed_calls() as failed:
        module = context.load_module(FORMS[form](path))  # type: ignore[arg-type]  # an image
        kernel = module.kernel("put")
        kernel.launch(stream, LaunchConfig(1, 1), out, 2.5, 1)
        assert module.kernel("nothing").signature.params == ()
    assert failed == []
    assert [param.ptx_type for param in kernel.signature.params] == ["u64", "f32", "u8"]
    assert stream.to_host(out).tolist() == [2.5]
    with pytest.raises(ArgumentError, match="argument 1"):
        kernel.launch(stream, LaunchConfig(1, 1), out, "2.5", 1)
    module.close()


def test_the_driver_reports_what_the_kernels_of_bytes_take(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = 'extern "C" __global__ void put(float* out, float a, char b) { out[0] = a + b; }'
    image = ptx.compile(source, ptx.CompileOptions(target=context.target))
    out = stream.zeros(1, "f4")
    with failed_calls() as failed:
        kernel = context.load_module(image.data).kernel("put")
        kernel.launch(stream, LaunchConfig(1, 1), out, 2.5, 1)
    assert stream.to_host(out).tolist() == [3.5]
    of_text, of_bytes = image.signatures["put"].params, kernel.signature.params
    assert [(each.offset, each.nbytes) for each in of_bytes] == [
        (each.offset, each.nbytes) for each in of_text
    ]
    # A driver before CUDA 13.2, or its binding, has no other way than to ask for one too many.
    bound = (driver.CUDA_VERSION // 1000, driver.CUDA_VERSION % 1000 // 10)
    may_be_asked = min(bound, cudadrv.driver_version()) >= (13, 2)
    is_binary = image.kind is not ptx.ImageKind.PTX
    assert failed == ([("cuFuncGetParamInfo", 1)] if is_binary and not may_be_asked else [])


@pytest.mark.parametrize("form", ["str", "bytes"])
def test_the_driver_reports_unknown_ptx(context: cudadrv.Context, form: str) -> None:
    text = TEXT + ".frobnicate 3;\n"
    with pytest.raises(cudadrv.CudaError, match=f"loading {len(text.encode())} bytes"):
        context.load_module(text if form == "str" else text.encode())
