"""Reads by other ways than ordinary loads, of what the same launch has written."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ptx
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.threads.limits import Limits

from ..kernel_runner import KernelRunner
from ..ops.tensor_device import Device, arrive, load, noise

SOURCE = """
#define KERNEL extern "C" __global__ void
__constant__ int table[64];
KERNEL own(int* a, int* o) {
  int t = threadIdx.x, found;
  a[t] = t;
  asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(found) : "l"(a + t) : "memory");
  o[t] = found;
}
KERNEL others(int* a, int* o) {
  int t = threadIdx.x;
  a[t] = t;
  __syncthreads();
  o[t] = __ldg(a + 63 - t);
}
KERNEL combined(int* a, int* o) {
  int t = threadIdx.x;
  atomicAdd(a + t % 4, t);
  __syncthreads();
  o[t] = __ldg(a + t % 8);
}
KERNEL constant(int* a, int* o) {
  int t = threadIdx.x;
  a[t] = t;
  __syncthreads();
  o[t] = table[63 - t];
}
KERNEL ordinary(int* a, int* o) {
  int t = threadIdx.x;
  a[t] = t;
  __syncthreads();
  o[t] = a[63 - t];
}
KERNEL elsewhere(int* a, int* o) {
  int t = threadIdx.x;
  o[t] = __ldg(a + 63 - t);
  __syncthreads();
  o[64 + t] = __ldg(a + 128 + t) + table[t];
}
KERNEL before(int* a, int* o) {
  int t = threadIdx.x;
  o[t] = __ldg(a + 63 - t);
  __syncthreads();
  a[t] = t;
}
KERNEL unordered(int* a, int* o) { int t = threadIdx.x; a[t] = t; o[t] = __ldg(a + 63 - t); }
"""


@functools.cache
def compiled() -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    text = ptx.compile(SOURCE, options, name="proxies.cu").ptx
    assert text is not None
    return text


def found(kernel: str) -> list[Finding]:
    runner = KernelRunner(compiled(), 1 << 20)
    array = runner.put(np.zeros(256, np.int32))
    out = runner.put(np.zeros(256, np.int32))
    findings = Findings()
    symbol = runner.program.globals["table"][0]
    given = symbol if kernel == "constant" else array
    runner.launch(kernel, 1, 64, given, out, limits=Limits(checks={"race"}, findings=findings))
    return findings.found


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("own", "the read-only path"),
        ("others", "the read-only path"),
        ("combined", "the read-only path"),
        ("constant", "constant memory shows no writes of the same launch"),
    ],
)
def test_a_read_only_load_of_what_the_launch_wrote_is_reported(kernel: str, words: str) -> None:
    (finding,) = found(kernel)
    assert (finding.check, finding.kind) == ("race", "proxy fence missing")
    assert words in finding.missing
    assert not finding.benign
    assert [place.what for place in finding.places][1] == "read"
    assert all(place.line is not None for place in finding.places)


@pytest.mark.parametrize("kernel", ["ordinary", "elsewhere", "before"])
def test_other_loads_are_not_reported(kernel: str) -> None:
    assert found(kernel) == []


def test_a_write_that_nothing_orders_is_a_plain_race() -> None:
    assert {each.kind for each in found("unordered")} == {""}


ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
REPLACE = "tensormap.replace.tile.global_dim.global.b1024.b32 [%rd1], 1, 6;"


@pytest.mark.parametrize(
    ("fences", "is_right"),
    [
        (RELEASE + ACQUIRE, True),
        (RELEASE, False),
        (ACQUIRE, False),
        ("", False),
        ("fence.proxy.async;", False),
        ("membar.gl;", False),
    ],
)
def test_a_tensor_map_that_the_kernel_changed_needs_its_fences(fences: str, is_right: bool) -> None:
    findings = Findings()
    body = f"{REPLACE} {fences} {arrive(64)} {load((0, 0))}"
    Device(body, noise((8, 16), "f2"), (2, 16)).launched(
        16, limits=Limits(checks={"race"}, findings=findings)
    )
    kinds = [each.kind for each in findings.found]
    assert kinds == ([] if is_right else ["proxy fence missing"])


def test_a_tensor_map_that_another_thread_changed_is_fenced_by_both() -> None:
    for release, acquire in ((RELEASE, ACQUIRE), ("", ACQUIRE), (RELEASE, "")):
        findings = Findings()
        body = f"""@!%p1 bra A; {REPLACE} {release} A: bar.sync 0; setp.eq.u32 %p3, %r1, 33;
            @!%p3 bra E; {acquire} {arrive(64)} {load((0, 0))} E:"""
        device = Device(body, noise((8, 16), "f2"), (2, 16))
        device.launched(16, 1, 64, limits=Limits(checks={"race"}, findings=findings))
        assert bool(findings.found) == (not release or not acquire)
