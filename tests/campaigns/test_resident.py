"""The calculation of occupancy, against what GPUs and ncu said."""

from __future__ import annotations

import pytest

import cudadrv
from campaigns.resident.answers import Answer, recorded
from campaigns.resident.resident_kernels import KERNELS, loaded
from cudadrv import emulator
from tests.rows import all_rows

RECORDED = recorded()


@pytest.mark.parametrize(
    ("registers", "block", "shared", "blocks"),
    [
        (28, 1024, 0, 2),  # 64 warps
        (40, 256, 0, 6),  # pieces of 1,280 registers a warp: 51 warps
        (33, 96, 0, 16),  # warps are taken by fours: 48 of 51
        (16, 32, 0, 32),  # no more blocks
        (16, 64, 16 << 10, 13),  # each takes 1 KiB more of 228
    ],
)
def test_blocks_are_limited_by_what_is_used_up_first(
    registers: int, block: int, shared: int, blocks: int
) -> None:
    assert Answer("k", block, registers, shared, blocks).calculated("NVIDIA H200") == blocks


def test_the_emulated_driver_returns_what_is_calculated_with_its_registers() -> None:
    with emulator.session(devices=[emulator.H200]):
        module = loaded(cudadrv.cuda_context_for(0))
        for each in KERNELS:
            kernel = module.kernel(each.name)
            shared = kernel.attributes.static_shared_bytes + each.dynamic
            answer = Answer(each.name, each.block, kernel.attributes.registers, shared, 0)
            found = kernel.max_active_blocks(each.block, each.dynamic)
            assert found == answer.calculated("NVIDIA H200"), each.name


@pytest.mark.parametrize(
    ("values", "registers"), [(24, 40), (40, 64), (64, 80), (100, 128), (150, 190), (220, 255)]
)
def test_estimated_registers_are_near_those_of_the_machine_code(
    values: int, registers: int
) -> None:  # those of the cubins that NVRTC 13.5 makes for sm_90
    with emulator.session(devices=[emulator.H200]):
        kernel = loaded(cudadrv.cuda_context_for(0)).kernel(f"resident_{values}_256_0_0")
        assert 0.8 * registers <= kernel.attributes.registers <= 1.1 * registers


@all_rows
@pytest.mark.parametrize(("device", "answer"), RECORDED, ids=[each.name for _, each in RECORDED])
def test_the_calculation_is_what_the_driver_and_ncu_reported(device: str, answer: Answer) -> None:
    blocks = answer.calculated(device)
    assert blocks == answer.blocks == min(answer.limits.values())
    assert blocks * -(-answer.block // 32) == answer.warps
