"""What a model fit says of itself when it asks to run on the device, after gam's structs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .. import border


class PirlsFamily(Enum):
    """A response family and link that has device kernels; the values are gam's names."""

    BERNOULLI_LOGIT = "BernoulliLogit"
    BERNOULLI_PROBIT = "BernoulliProbit"
    BERNOULLI_CLOGLOG = "BernoulliCLogLog"
    POISSON_LOG = "PoissonLog"
    GAUSSIAN_IDENTITY = "GaussianIdentity"
    GAMMA_LOG = "GammaLog"


class PirlsCurvature(Enum):
    """Which curvature the weights of an iteration come from."""

    FISHER = "Fisher"
    OBSERVED = "Observed"


@dataclass(frozen=True, slots=True)
class PirlsLoopAdmission:
    """A fit at fixed smoothing that asks for the device-resident PIRLS loop.

    Attributes:
        n: rows of the design.
        p: columns of the design.
        family: None where the family has no device kernels.
        curvature: what the weights come from.
        gpu_available: whether a device was found.
    """

    n: int
    p: int
    family: PirlsFamily | None
    curvature: PirlsCurvature
    gpu_available: bool

    def __post_init__(self) -> None:
        _check("PirlsLoopAdmission", self)


@dataclass(frozen=True, slots=True)
class RemlOuterAdmission:
    """A search over smoothing parameters that asks for the device-resident outer loop.

    Attributes:
        n: rows of the design.
        p: columns of the design.
        num_rho: smoothing parameters.
        family: None where the family has no device kernels.
        curvature: what the weights come from.
        gpu_available: whether a device was found.
    """

    n: int
    p: int
    num_rho: int
    family: PirlsFamily | None
    curvature: PirlsCurvature
    gpu_available: bool

    def __post_init__(self) -> None:
        _check("RemlOuterAdmission", self)
        border.integer("RemlOuterAdmission: num_rho", self.num_rho)


def _check(what: str, given: PirlsLoopAdmission | RemlOuterAdmission) -> None:
    border.integer(f"{what}: n", given.n)
    border.integer(f"{what}: p", given.p)
    border.optional(f"{what}: family", given.family, PirlsFamily)
    border.instance(f"{what}: curvature", given.curvature, PirlsCurvature)
