"""From which size on the device is worth it: thresholds measured once, kept, and asked."""

from __future__ import annotations

from dataclasses import replace

from cudadrv import GpuRuntime
from cudadrv.runtime import (
    GpuDispatchPolicy,
    GpuMixedPrecisionPolicy,
    PirlsCurvature,
    PirlsFamily,
    PirlsLoopAdmission,
    PolicyOrigin,
)


def main() -> None:
    runtime = GpuRuntime.current()
    if runtime is None:
        policy = GpuDispatchPolicy()
        print("no device: the default thresholds")
    else:
        # The first read measures the device against the CPU, or finds that it was measured.
        policy = runtime.policy
        calibration = runtime.calibration
        print(f"thresholds: {calibration.origin.value}")
        if calibration.origin is PolicyOrigin.DEFAULT:
            print(f"  because {calibration.error}")

    for n in (64, 256, 1024, 4096):
        where = "device" if 2 * n**3 >= policy.gemm_min_flops else "CPU"
        print(f"  a product of order {n} runs on the {where}")
    admission = PirlsLoopAdmission(
        n=2000,
        p=2048,
        family=PirlsFamily.POISSON_LOG,
        curvature=PirlsCurvature.FISHER,
        gpu_available=runtime is not None,
    )
    print(f"  a fit of 2000 rows and 2048 columns: {policy.should_use_gpu_pirls_loop(admission)}")
    print(f"  matvecs over a solve: {policy.reduced_schur_matvec_should_offload(2000, 2048, 8, 8)}")

    cautious = replace(policy, mixed_precision=GpuMixedPrecisionPolicy.OFF)
    assert not cautious.iterative_refinement_should_attempt(4096)
    assert GpuDispatchPolicy.from_json(cautious.to_json()) == cautious


if __name__ == "__main__":
    main()
