"""What the emulator calls a kernel whose name expression the library knows."""

from __future__ import annotations

import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import CudaError

SOURCE = """
namespace deep {
template <typename T, int N> __global__ void stops(T* x) { x[1 << 28] = N; }
template <typename T> __global__ void racy(T* x)
{
    __shared__ T s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}
template <typename T> __global__ void unset(T* x)
{
    __shared__ T s[64];
    x[threadIdx.x] = s[threadIdx.x];
}
template <typename T> __global__ void strange(T* x) {
    asm volatile("alloca.u64 %0, 8;" : "=l"(*(long long*)x));
}
}
"""
STOPS, RACY, UNSET = "deep::stops<int, 3>", "deep::racy<int>", "deep::unset<int>"
STRANGE = "deep::strange<int>"


def launch(expression: str, *, linked: bool = False) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.default_stream
    target = ptx.Target.ltoir(context.target.arch) if linked else context.target
    options = ptx.CompileOptions(target=target)
    image = ptx.compile(SOURCE, options, name_expressions=[expression])
    module = context.link([image]) if linked else context.load_module(image)
    module.kernel(expression).launch(stream, LaunchConfig(1, 64), stream.zeros(64, "i4"))
    stream.synchronize()


@pytest.mark.parametrize("order", ["immediate", "late"])
def test_a_fault_names_the_kernel_as_its_expression_does(order: OrderName) -> None:
    with emulator.session(order=order) as machine:
        with pytest.raises(CudaError) as raised:
            launch(STOPS)
        assert f"in kernel {STOPS}, block (0, 0, 0)" in str(raised.value)
        assert "_Z" not in str(raised.value)
        assert f"in kernel {STOPS}," in str(machine.last_fault)


def test_a_finding_names_the_kernel_as_its_expression_does() -> None:
    with emulator.session(check="race", raise_findings=False) as machine:
        launch(RACY)
    (finding,) = machine.findings
    assert finding.kernel == RACY
    assert str(finding).startswith(f"race: kernel {RACY}, ")
    with emulator.session(check="init"), pytest.raises(CudaError, match=f"in kernel {UNSET},"):
        launch(UNSET)


def test_a_kernel_that_is_not_executed_is_named_as_its_expression_does() -> None:
    with emulator.session(), pytest.raises(CudaError, match=f"kernel {STRANGE}: alloca") as raised:
        launch(STRANGE)
    assert "_Z" not in str(raised.value)


def test_a_linked_kernel_is_named_by_its_expression_too() -> None:
    with emulator.session(), pytest.raises(CudaError, match=f"in kernel {STOPS},"):
        launch(STOPS, linked=True)


def test_a_kernel_that_no_expression_names_has_its_symbol() -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        module = context.compile("__global__ void stops(int* x) { x[1 << 28] = 1; }")
        (name,) = module.kernel_names
        with pytest.raises(CudaError, match="in kernel _Z5stopsPi,"):
            module.kernel(name).launch(stream, LaunchConfig(1, 1), stream.zeros(1, "i4"))
