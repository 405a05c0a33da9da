"""Pointers to device functions that outlive the kernel which made them."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import CudaError

from .conftest import compile_module

SOURCE = r"""
typedef int (*Function)(int);
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ Function table;
extern "C" __global__ void set() { table = twice; }
extern "C" __global__ void use(int* out) { out[threadIdx.x] = table(threadIdx.x + 21); }
extern "C" __global__ void given(int* out, Function f) { out[threadIdx.x] = f(threadIdx.x); }

struct Container {
    __device__ Container() {}
    __device__ virtual ~Container() {}
    __device__ virtual void push(int e) = 0;
    __device__ virtual int pop() = 0;
};
struct Stack : Container {
    int* data; int top;
    __device__ Stack() { data = new int[32]; top = 0; }
    __device__ ~Stack() override { delete[] data; }
    __device__ void push(int e) override { data[top++] = e; }
    __device__ int pop() override { return data[--top]; }
};
__device__ Container* container;
extern "C" __global__ void make() { container = new Stack(); }
extern "C" __global__ void fill(int n) { for (int i = 0; i < n; i++) container->push(i * i); }
extern "C" __global__ void take(int* out, int n) {
    for (int i = 0; i < n; i++) out[i] = container->pop();
}
extern "C" __global__ void unmake() { delete container; }
"""
ONE = LaunchConfig(1, 1)


@pytest.fixture(scope="module")
def own(context: cudadrv.Context) -> cudadrv.Module:
    return compile_module(context, SOURCE)


def test_a_pointer_in_a_variable_is_called_by_another_kernel(
    stream: cudadrv.Stream, own: cudadrv.Module
) -> None:
    own.kernel("set").launch(stream, ONE)
    out = stream.zeros(4, "i4")
    own.kernel("use").launch(stream, LaunchConfig(1, 4), out)
    assert stream.to_host(out).tolist() == [42, 44, 46, 48]


def test_a_pointer_that_the_host_read_is_an_argument(
    stream: cudadrv.Stream, own: cudadrv.Module
) -> None:
    own.kernel("set").launch(stream, ONE)
    pointer = int(stream.to_host(own.global_array("table", 1, "u8"))[0])
    out = stream.zeros(4, "i4")
    own.kernel("given").launch(stream, LaunchConfig(1, 4), out, pointer)
    assert stream.to_host(out).tolist() == [0, 2, 4, 6]


def test_an_object_with_virtual_functions_lives_from_kernel_to_kernel(
    stream: cudadrv.Stream, own: cudadrv.Module
) -> None:
    own.kernel("make").launch(stream, ONE)
    own.kernel("fill").launch(stream, ONE, 8)
    out = stream.zeros(8, "i4")
    own.kernel("take").launch(stream, ONE, out, 8)
    own.kernel("unmake").launch(stream, ONE)
    assert np.array_equal(stream.to_host(out), np.arange(8)[::-1] ** 2)


def test_a_function_that_nothing_defines_is_named(context: cudadrv.Context) -> None:
    text = """
.version 7.8
.target sm_75
.address_size 64
.extern .func triple();
.visible .entry k() { call triple; ret; }
"""
    with pytest.raises(CudaError) as caught:
        context.load_module(text).kernel("k")
    said = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "triple" in said
    assert "lacks the feature" not in said
