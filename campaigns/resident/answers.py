"""What the driver and ncu say of a kernel's occupancy, and the emulator's calculation of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from cudadrv.emulator import PROFILES
from cudadrv.emulator.occupancy import blocks_per_sm
from cudadrv.emulator.profiles import device_attributes

LIMITS: Final = {
    "launch__occupancy_limit_blocks": "blocks",
    "launch__occupancy_limit_warps": "warps",
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_barriers": "barriers",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a GPU says of one kernel.

    Attributes:
        name: of the kernel.
        block: its threads.
        registers: of a thread.
        shared: bytes of a block, without what the system takes.
        blocks: that a multiprocessor holds, by the driver.
        warps: that a multiprocessor holds, by ncu.
        limits: blocks by each resource, by ncu.
    """

    name: str
    block: int
    registers: int
    shared: int
    blocks: int
    warps: int = 0
    limits: dict[str, int] = field(default_factory=dict)

    def calculated(self, device: str) -> int:
        """The blocks that the emulator calculates, for the emulated device of this name."""
        profile = next(each for each in PROFILES.values() if each.name == device)
        attributes = device_attributes(profile, 0)
        return blocks_per_sm(attributes, self.block, self.registers, self.shared)


def record(short: str, device: str, answers: Sequence[Answer]) -> None:
    """Keep what a GPU said for the tests."""
    rows = ",\n".join(f"  {json.dumps(asdict(each))}" for each in answers)
    path = Path(__file__).with_name(f"answers_{short}.json")
    path.write_text(f'{{"device": {json.dumps(device)},\n"answers": [\n{rows}\n]}}\n')


def recorded() -> list[tuple[str, Answer]]:
    """Every answer that was kept, with the device's name."""
    found = []
    for path in sorted(Path(__file__).parent.glob("answers_*.json")):
        kept = json.loads(path.read_text())
        found += [(kept["device"], Answer(**each)) for each in kept["answers"]]
    return found
