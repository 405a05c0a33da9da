"""Each variable of the environment with a number in it, beside an oracle of the accepted texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

import cudadrv
import ptx
from cudadrv import CudaClient, emulator, environment
from cudadrv.driver import driver_selection
from cudadrv.emulator.environment import emulated_limits
from cudadrv.memory.driver_pool import release_threshold
from ptx.cache.folder import cache_settings

PAGE: Final = Path(__file__).parents[2] / "docs" / "environment.md"
MIB: Final = 1 << 20
TEXTS: Final = (
    "", " ", "0", "1", "2", "7", " 64 ", "0012", "+512", "-1", "--1", "1.5", ".5", "1.", "1e3",
    "0x10", "1_000", "1,000", "512MB", "1 2", "\N{ARABIC-INDIC DIGIT THREE}", "\N{SUPERSCRIPT TWO}",
    "\N{FULLWIDTH DIGIT ONE}", "lots", "nan", "inf", "True", "99999999999999999999", "9" * 5000,
)  # fmt: skip
# Documented variables without a number, or with CUDA's own rules.
OTHERS: Final = {
    "CUDA_VISIBLE_DEVICES", "CUDADRV_EMULATOR_COMPUTE_CAPABILITY", "CUDADRV_EMULATOR_TRACE",
    "CUDADRV_EMULATOR_FAULT", "CUDADRV_CHECK", "CUDADRV_CHECK_SUPPRESSIONS", "CUDADRV_PYTHON",
    "CUDADRV_NO_STAND_IN", "CUDADRV_CACHE_DIR", "CUDADRV_HEADERS", "CUDADRV_EMULATE_EVENTS",
    "CUDADRV_EMULATE_LIBRARIES", "CUDADRV_DEVICE_DEBUG", "CUDADRV_DEBUG_ADDRESS",
}  # fmt: skip


def _threshold() -> object:
    with emulator.session():
        return release_threshold(CudaClient(0).device)


def _cap() -> object:
    with emulator.session():
        return CudaClient(0).allocator.statistics().cap_bytes


def _keeps_blocks() -> object:
    with emulator.session():
        return driver_selection.current().keeps_blocks


class Variable:
    """A variable: the text before the number, what it sets, and the values that it accepts."""

    def __init__(
        self,
        read: Callable[[], object],
        default: object,
        least: int,
        most: int | None,
        value: Callable[[int], object] = int,
        *,
        prefix: str = "",
        fractions: bool = False,
    ) -> None:
        self.read, self.default, self.value = read, default, value
        self.least, self.most, self.prefix, self.fractions = least, most, prefix, fractions

    def expected(self, text: str) -> object:
        """What the variable sets, or "rejected"."""
        text = text.rstrip() if self.prefix else text.strip()
        if not text:
            return self.default
        if self.fractions and re.fullmatch(r"[0-9]{1,9}\.[0-9]+", text):
            return int(float(text) * MIB)
        if not re.fullmatch("[0-9]{1,4300}", text):
            return "rejected"
        number = int(text)
        accepted = self.least <= number and (self.most is None or number <= self.most)
        return self.value(number) if accepted else "rejected"


VARIABLES: Final[Mapping[str, Variable]] = {
    "CUDADRV_DRIVER": Variable(
        environment.emulated_devices, 1, 1, 2**63 - 1, prefix="emulator:"
    ),
    "CUDADRV_EMULATOR_ORDER": Variable(
        lambda: emulator.Emulator().order, "rejected", 0, None, lambda n: f"random:{n}",
        prefix="random:",
    ),
    "CUDADRV_EMULATOR_STEPS": Variable(
        lambda: emulated_limits().max_steps, 2_000_000, 1, 2**63 - 1
    ),
    "CUDADRV_EMULATOR_THREADS": Variable(
        lambda: emulated_limits().threads, 0, 1, 2**63 - 1
    ),
    "CUDADRV_EMULATOR_LOCK_SECONDS": Variable(
        environment.lock_wait_seconds, 300, 1, 2**63 - 1
    ),
    "CUDADRV_CACHE_MAX_MB": Variable(
        lambda: cache_settings()[1], 512 * MIB, 0, 2**43 - 2, lambda n: n * MIB, fractions=True
    ),
    "CUDADRV_POOL_RELEASE_THRESHOLD_MB": Variable(
        _threshold, 512 * MIB, 0, 2**44 - 1, lambda n: n * MIB
    ),
    "CUDADRV_FREE_LIST_CAP_MB": Variable(_cap, 1024 * MIB, 0, 2**44 - 1, lambda n: n * MIB),
    "CUDADRV_KEEP_BLOCKS": Variable(_keeps_blocks, False, 0, 1, bool),
}  # fmt: skip


def _outcome(read: Callable[[], object]) -> object:
    """What a variable sets; "rejected" after an error or a warning with the variable's name."""
    with pytest.MonkeyPatch.context() as patch:
        warned: list[str] = []
        patch.setattr("warnings.warn", lambda text, *_, **__: warned.append(str(text)))
        try:
            found = read()
        except (cudadrv.CudadrvError, ptx.PtxError) as error:
            return "rejected" if "CUDADRV_" in str(error) else error
    return "rejected" if warned else found


def test_each_documented_variable_has_a_row() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert documented == VARIABLES.keys() | OTHERS


def test_numbers_in_variables_are_digits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = []
    for name, variable in VARIABLES.items():
        for text in TEXTS:
            if name == "CUDADRV_KEEP_BLOCKS" and text == "0012":
                continue  # one of two words, no number
            with monkeypatch.context() as patch:
                patch.setenv(name, variable.prefix + text)
                found, expected = _outcome(variable.read), variable.expected(text)
            if found != expected:
                wrong.append(f"{name}={variable.prefix + text[:30]!r}: {found}, not {expected}")
    assert not wrong, "\n".join(wrong)
