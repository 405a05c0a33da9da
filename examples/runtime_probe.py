"""Is there a GPU? Three answers, and what a package makes of each; then a backend's set-up."""

from __future__ import annotations

from typing import assert_never

from cudadrv import GpuPolicy, GpuRuntime, LaunchConfig, emulator
from cudadrv.errors import GpuError, RequiredDeviceUnavailable
from cudadrv.runtime import (
    CudaBackendContext,
    CudaBackendParts,
    GpuAbsent,
    GpuAvailable,
    GpuBroken,
    probe_backend_with_compile,
)

SOURCE = """
extern "C" __global__ void axpy(double a, const double* x, double* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def describe() -> str:
    outcome = GpuRuntime.availability()
    if isinstance(outcome, GpuAvailable):
        runtime = outcome.runtime
        lines = [
            f"  device {info.ordinal}: {info.name}, score {info.score():.0f}, "
            f"plan with {runtime.memory_budget_for(info.ordinal) >> 20} MiB"
            for info in runtime.devices
        ]
        return "\n".join(["available", *lines])
    if isinstance(outcome, GpuAbsent):
        return f"absent, {outcome.reason.value}: {outcome.detail}"
    if isinstance(outcome, GpuBroken):
        return f"broken: {outcome.error}"
    assert_never(outcome)


def build(parts: CudaBackendParts) -> CudaBackendContext:
    """What a backend does once a process: compile its kernels on the device that was chosen."""
    backend = CudaBackendContext.from_parts(parts)
    backend.module.get_or_compile(backend.ctx, "axpy", SOURCE)
    return backend


def run_backend() -> None:
    backend = probe_backend_with_compile("axpy", build)
    module, stream, arena = backend.module.get(), backend.stream, backend.arena
    assert module is not None
    (size, x), (_, y) = (arena.alloc(stream, 1000, "axpy") for _ in range(2))
    stream.fill(x, 1.0)
    stream.fill(y, 2.0)
    module.kernel("axpy").launch(stream, LaunchConfig.for_elements(1000), 3.0, x, y, 1000)
    assert stream.to_host(y)[:1000].tolist() == [5.0] * 1000
    arena.release(size, x)
    arena.release(size, y)
    print(f"axpy ran on device {backend.ctx.ordinal}")


def main() -> None:
    print(describe())
    if GpuRuntime.resolve(GpuPolicy.AUTO) is not None:
        run_backend()
    assert GpuRuntime.resolve(GpuPolicy.OFF) is None
    # Too little work to be worth a look at the driver.
    assert GpuRuntime.current_for_flops(1000) is None

    # A machine whose driver fails is not one without a GPU.
    with emulator.session() as machine, machine.fail("cuDeviceGetCount", with_=999):
        print(describe())
        try:
            GpuRuntime.resolve(GpuPolicy.REQUIRED)
        except RequiredDeviceUnavailable:
            raise AssertionError("a failure was taken for absence") from None
        except GpuError as error:
            print(f"required: {type(error).__name__}")


if __name__ == "__main__":
    main()
