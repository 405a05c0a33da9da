"""`Choices`: the options of a test run, from the command line, ini values and the environment."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

import pytest

from .. import border
from ..environment import RULED, emulated_devices
from ..errors import ArgumentValueError, CudadrvError
from ..version import VERSION

if TYPE_CHECKING:
    from ..emulator import EmulatedDevice

Mode = Literal["auto", "gpu", "emulator", "both"]
_MODES: Final[tuple[str, ...]] = get_args(Mode)
_LEAKS: Final = ("fail", "allow")
Budget = Literal["off", "check", "update"]
_BUDGETS: Final[tuple[str, ...]] = get_args(Budget)

# The variables of the same options. Options are written there for the run, so that
# sessions of a test's own and the processes that it starts follow them.
DRIVER: Final = "CUDADRV_DRIVER"
ORDER: Final = "CUDADRV_EMULATOR_ORDER"
CHECK: Final = "CUDADRV_CHECK"
VARIABLES: Final = (DRIVER, ORDER, CHECK)

NEW_SEED: Final = "new"
_SEEDS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of a run.

    Attributes:
        mode: where tests run; "auto" is the GPU if there is one, else the emulator.
        requires_gpu: True if a skip without a GPU is a failure.
        profile: the emulated device, a name of `cudadrv.emulator.PROFILES`; "" is the small one.
        leaks_fail: True if a test that leaks on its device fails.
        devices: the number of emulated devices of a test that does not choose it.
        seeds: the number of seeds of the order "random" for a test on the emulator; 0 for one run
            in the order of the run.
        budget: whether the counts of kernels are checked or stored (docs/counters.md).
        environment: variables that the options set for the run.
    """

    mode: Mode
    requires_gpu: bool
    profile: str
    leaks_fail: bool
    devices: int
    seeds: int
    budget: Budget
    environment: dict[str, str]

    @property
    def is_given(self) -> bool:
        """True if any option was given."""
        differs = self.mode != "auto" or self.requires_gpu or self.profile or self.environment
        return bool(differs or self.seeds or self.budget != "off") or any(
            os.environ.get(name) for name in VARIABLES
        )


def add_options(parser: pytest.Parser) -> None:
    """Add the options of the command line and of ini files."""
    group = parser.getgroup("cudadrv", f"CUDA, by cudadrv {VERSION}")
    group.addoption(
        "--cuda",
        choices=_MODES,
        help="where tests that need CUDA run; auto, the default: what CUDADRV_DRIVER says, else "
        "the GPU if there is one, else the emulator; both: each test on both",
    )
    group.addoption(
        "--cuda-order",
        metavar="ORDER",
        help="when the emulator's work runs: immediate, late, random or random:SEED",
    )
    group.addoption(
        "--cuda-seed",
        metavar="N",
        help='the seed of --cuda-order=random; "new" chooses one',
    )
    group.addoption(
        "--cuda-seeds",
        metavar="N",
        help="run each test on the emulator N times, with the seeds 0 to N-1 of the order random",
    )
    group.addoption(
        "--cuda-check",
        metavar="NAMES",
        help="what the emulator checks of kernels, such as race,init",
    )
    group.addoption("--cuda-profile", metavar="NAME", help="the device to emulate, such as H100")
    group.addoption(
        "--cuda-leaks",
        choices=_LEAKS,
        help="whether a test that leaves memory, streams, events or modules behind fails (default)",
    )
    group.addoption(
        "--cuda-budget",
        choices=_BUDGETS,
        help="compare the counts of tests with the mark cuda_budget with the budget.json beside "
        "them, or store them there; off is the default",
    )
    group.addoption(
        "--cuda-require-gpu",
        action="store_true",
        help="a test that finds no GPU, or too few, fails instead of being skipped or emulated",
    )
    for name in (
        "cuda", "cuda_order", "cuda_seed", "cuda_seeds", "cuda_check", "cuda_profile", "cuda_leaks",
        "cuda_budget",
    ):  # fmt: skip
        parser.addini(name, f"as --{name.replace('_', '-')}", default="")


def read_choices(config: pytest.Config) -> Choices:
    """Read the options of a run: the command line, then the environment, then the ini file.

    Raises:
        pytest.UsageError: options contradict each other, or have a wrong value.
    """
    requires_gpu = bool(config.getoption("--cuda-require-gpu"))
    mode = _mode(config)
    if requires_gpu and mode == "emulator":
        raise pytest.UsageError("--cuda-require-gpu: the tests run on the emulator alone")
    _reject_wrong_variables()
    environment: dict[str, str] = {}
    if mode in ("gpu", "emulator") and _kind(os.environ.get(DRIVER, "")) != mode:
        environment[DRIVER] = "cuda" if mode == "gpu" else mode
    order = _order(config)
    if order is not None:
        environment[ORDER] = order
    check = _option(config, "cuda_check", CHECK)
    if check is not None:
        _reject_unless(_is_check, check)
        environment[CHECK] = check
    profile = _option(config, "cuda_profile") or ""
    if profile:
        _reject_unless(profile_named, profile)
    leaks = _one_of("cuda_leaks", _option(config, "cuda_leaks") or "fail", _LEAKS)
    budget = _one_of("cuda_budget", _option(config, "cuda_budget") or "off", _BUDGETS)
    return Choices(
        mode=mode,
        requires_gpu=requires_gpu,
        profile=profile,
        leaks_fail=leaks == "fail",
        devices=emulated_devices(environment.get(DRIVER)) or 1,
        seeds=_seeds(config),
        budget=cast(Budget, budget),  # the names are those of the literal
        environment=environment,
    )


def _reject_wrong_variables() -> None:
    """Reject values of the environment at once: a run without GPU tests would not read them."""
    if any(os.environ[name].strip() for name in RULED & os.environ.keys()):
        from ..emulator.environment import reject_wrong_variables  # which loads the emulator

        try:
            reject_wrong_variables()
        except CudadrvError as error:
            raise pytest.UsageError(str(error)) from None


def _option(config: pytest.Config, name: str, variable: str = "") -> str | None:
    """Return the value of an option, else of the ini file; None if a variable replaces that."""
    value = config.getoption(name)
    if value is None and not os.environ.get(variable):
        value = config.getini(name) or None
    return None if value is None else str(value)


def _mode(config: pytest.Config) -> Mode:
    mode = config.getoption("cuda")
    kind = _kind(os.environ.get(DRIVER, ""))
    if mode in (None, "auto"):
        mode = kind or (mode or config.getini("cuda") or "auto")
    # The names are those of the literal.
    return cast(Mode, _one_of("cuda", str(mode), _MODES))


def _kind(driver: str) -> str:
    """Return the mode that a value of CUDADRV_DRIVER selects; "" if it selects none."""
    name = driver.strip().partition(":")[0]
    return {"cuda": "gpu", "emulator": "emulator"}.get(name, "")


def _order(config: pytest.Config) -> str | None:
    """Return the new value of CUDADRV_EMULATOR_ORDER; None to leave it."""
    order = _option(config, "cuda_order", ORDER)
    seed = _option(config, "cuda_seed", ORDER)
    if seed is not None:
        name = (order or os.environ.get(ORDER, "")).strip().partition(":")[0]
        if name != "random":
            raise pytest.UsageError("--cuda-seed goes with --cuda-order=random")
        if seed == NEW_SEED:
            seed = str(random.SystemRandom().randrange(_SEEDS))
        if border.integer_of_text(seed, most=None) is None:
            raise pytest.UsageError(f'--cuda-seed={seed}: give a number from 0, or "{NEW_SEED}"')
        order = f"random:{seed}"
    if order is not None:
        _reject_unless(_is_order, order)
        order = (
            "random:0" if order == "random" else order
        )  # in the emulator's form, which is reported
    return order


def _seeds(config: pytest.Config) -> int:
    """Return the number of seeds for each test; a given order or seed makes it one run."""
    order, seed = config.getoption("cuda_order"), config.getoption("cuda_seed")
    seeds = config.getoption("cuda_seeds")
    if seeds is None and order is None and seed is None:
        seeds = _option(config, "cuda_seeds", ORDER)
    if seeds is None:
        return 0
    count = border.integer_of_text(seeds, 1)
    if count is None:
        raise pytest.UsageError(f"--cuda-seeds={seeds}: give how many seeds, from 1")
    if seed is not None:
        raise pytest.UsageError(f"--cuda-seeds={seeds}: give it without --cuda-seed")
    if order not in (None, "random"):
        raise pytest.UsageError(f"--cuda-seeds goes with --cuda-order=random, not {order}")
    return count


def _one_of(name: str, value: str, names: tuple[str, ...]) -> str:
    if value not in names:
        raise pytest.UsageError(f"{name} is {value!r}: use one of {', '.join(names)}")
    return value


def _is_order(order: str) -> None:
    from ..emulator.timeline.schedule import Schedule  # which loads the emulator

    Schedule.read(order)


def _is_check(names: str) -> None:
    from ..emulator.checks import Checks  # which loads the emulator

    Checks.read(names)


def profile_named(name: object) -> EmulatedDevice:
    """Return a profile of `cudadrv.emulator.PROFILES`.

    Raises:
        ArgumentValueError: there is none of this name.
    """
    from ..emulator import PROFILES  # which loads the emulator

    profile = PROFILES.get(name) if isinstance(name, str) else None
    if profile is None:
        known = ", ".join(PROFILES)
        raise ArgumentValueError(f"{border.shown(name)} is not a profile: use one of {known}")
    return profile


def _reject_unless(check: Callable[[str], object], value: str) -> None:
    try:
        check(value)
    except CudadrvError as error:
        raise pytest.UsageError(str(error)) from None
