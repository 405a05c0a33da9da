"""Kernels of the gallery are right for sizes, values and launches that their pictures do not have.

Mutants of these kernels survived the examples' own comparisons: guards of sizes that the blocks do
not fill, and the third axis of bodies in a plane.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase, Tolerance, VerifyOptions, verify
from examples import heat, histogram, n_body, several_gpus

OPTIONS = VerifyOptions(examples=10, database=None, checks=("race", "init", "bounds", "sync"))
Floats = npt.NDArray[np.float32]


def check(case: KernelCase) -> None:
    verify(case, OPTIONS).raise_findings()


@pytest.mark.slow
def test_heat_spreads_over_a_plate_of_any_size() -> None:
    width, height = st.sizes(1, 40), st.sizes(1, 20)

    def reference(now: Floats) -> dict[str, Floats]:
        return {"next": heat.by_numpy(now, 1) if min(now.shape) > 2 else now}

    check(
        KernelCase(
            heat.SOURCE,
            launch=st.launch_configs(threads=(width, height)),
            reference=reference,
            arguments={
                "now": st.arrays(np.float32, (height, width)),
                "next": st.unwritten(np.float32, (height, width)),
                "width": width,
                "height": height,
            },
        )
    )


@pytest.mark.slow
def test_a_histogram_counts_an_image_of_any_size() -> None:
    n = st.sizes(1, 3000)

    def reference(image: npt.NDArray[np.uint8], bins: npt.NDArray[np.uint32]) -> dict[str, object]:
        return {"bins": bins + np.bincount(image, minlength=256)}

    check(
        KernelCase(
            histogram.SOURCE,
            launch=st.launch_configs(blocks=st.sizes(1, 4), block=256),
            arguments={
                "image": st.arrays(np.uint8, n, "finite"),
                "bins": st.arrays(np.uint32, 256, (0, 9)),
                "n": n,
            },
            reference=reference,
        )
    )


@pytest.mark.slow
def test_bodies_move_along_three_axes() -> None:
    blocks, block = st.sizes(1, 3), st.sizes(1, 64)
    n = blocks * block

    def reference(now: Floats, speed: Floats, dt: np.float32) -> dict[str, object]:
        place, v = now[:, :3].astype(float), speed[:, :3].astype(float)
        away = place[None] - place[:, None]
        pull = now[:, 3] / ((away**2).sum(axis=2) + np.float32(0.01)) ** 1.5
        v = v + dt * (pull[:, :, None] * away).sum(axis=1)
        new = place + dt * v
        return {
            "speed": np.column_stack([v, speed[:, 3]]),
            "next": np.column_stack([new, now[:, 3]]),
        }

    check(
        KernelCase(
            n_body.SOURCE,
            launch=st.launch_configs(blocks=blocks, block=block),
            reference=reference,
            arguments={
                "now": st.arrays(np.float32, (n, 4), (-1, 1)),
                "next": st.unwritten(np.float32, (n, 4)),
                "speed": st.arrays(np.float32, (n, 4), (-1, 1)),
                "n": n,
                "dt": np.float32(0.01),
            },
            tolerance=Tolerance(relative=1e-3, absolute=1e-2),
        )
    )


@pytest.mark.slow
def test_points_of_the_mandelbrot_set_stop_at_their_limit() -> None:
    width, height = st.sizes(1, 40), st.sizes(1, 12)

    def reference(
        rows: npt.NDArray[np.float64], steps: npt.NDArray[np.int32], limit: int
    ) -> dict[str, object]:
        a = -2.2 + 3.2 * np.arange(steps.shape[1]) / steps.shape[1]
        outside = a**2 + rows[:, None] ** 2 > 4
        return {"steps": np.where(outside, min(limit, 1), limit)}

    check(
        KernelCase(
            several_gpus.SOURCE,
            launch=st.launch_configs(threads=(width, height)),
            arguments={
                "rows": st.arrays(np.float64, height, (1.0, 1.9)),
                "steps": st.unwritten(np.int32, (height, width)),
                "width": width,
                "height": height,
                "limit": st.sizes(0, 2),
            },
            reference=reference,
        )
    )
