"""`GpuDispatchPolicy`: the sizes from which work is worth the device, after gam's struct."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import ClassVar, Final

from .. import border
from ..errors import ArgumentTypeError, ArgumentValueError

USIZE_MAX: Final = 2**64 - 1


class PirlsFamily(Enum):
    """A response family and link that has device kernels; the values are gam's names."""

    BERNOULLI_LOGIT = "BernoulliLogit"
    BERNOULLI_PROBIT = "BernoulliProbit"
    BERNOULLI_CLOGLOG = "BernoulliCLogLog"
    POISSON_LOG = "PoissonLog"
    GAUSSIAN_IDENTITY = "GaussianIdentity"
    GAMMA_LOG = "GammaLog"


class PirlsCurvature(Enum):
    """The curvature that gives the weights of an iteration."""

    FISHER = "Fisher"
    OBSERVED = "Observed"


@dataclass(frozen=True, slots=True)
class PirlsLoopAdmission:
    """A fit at fixed smoothing that requests the device-resident PIRLS loop.

    Attributes:
        n: rows of the design.
        p: columns of the design.
        family: None where the family has no device kernels.
        curvature: the source of the weights.
        gpu_available: True if a device was found.
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
    """A search over smoothing parameters that requests the device-resident outer loop.

    Attributes:
        n: rows of the design.
        p: columns of the design.
        num_rho: smoothing parameters.
        family: None where the family has no device kernels.
        curvature: the source of the weights.
        gpu_available: True if a device was found.
    """

    n: int
    p: int
    num_rho: int
    family: PirlsFamily | None
    curvature: PirlsCurvature
    gpu_available: bool

    def __post_init__(self) -> None:
        _check("RemlOuterAdmission", self)
        border.integer_fields(self, "num_rho")


def _check(argument_name: str, admission: PirlsLoopAdmission | RemlOuterAdmission) -> None:
    border.integer_fields(admission, "n", "p")
    border.optional(f"{argument_name}: family", admission.family, PirlsFamily)
    border.instance_of(f"{argument_name}: curvature", admission.curvature, PirlsCurvature)


class GpuMixedPrecisionPolicy(Enum):
    """The use of float32 factorizations refined in float64 in place of float64 ones."""

    OFF = "Off"
    NEVER = "Never"
    REFINEMENT = "Refinement"


@dataclass(frozen=True, slots=True)
class GpuDispatchPolicy:
    """The thresholds from which work goes to the device; sizes in rows, columns, flops or bytes.

    The defaults are cautious: they hold until the device was calibrated, and where it cannot be.
    Predicates look at shapes alone and touch no device. They count flops exactly. That decides as
    the saturating arithmetic of Rust does, as no threshold is above its limit.

    Raises:
        ValueError: a threshold is not an integer of 0 to 2**64 - 1.
    """

    REFINEMENT_MIN_P: ClassVar[int] = 64
    """The fewest columns for which a float32 factorization repays its float64 residual check."""
    REFINEMENT_MAX_STEPS: ClassVar[int] = 3
    """Corrections a solve at most; two suffice up to a condition number of about 1e5."""
    REFINEMENT_TOL: ClassVar[float] = 1e-12
    """The relative residual at which a refined solve counts as converged."""
    MATVEC_OFFLOAD_FLOPS_MIN: ClassVar[int] = 10_000_000
    """The flops over a whole iterative solve from which resident frames repay their transfer."""
    MATVEC_OFFLOAD_MIN_CG_ITERS: ClassVar[int] = 8
    """The iterations to reckon with where nobody has measured them."""
    DEVICE_LOOP_MIN_P: ClassVar[int] = 32
    """The fewest columns for which a loop that stays on the device beats the host's."""

    xtwx_n_min: int = 50_000
    xtwx_flops_min: int = 100_000_000
    xtwx_use_fused_below_p: int = 256
    gemm_min_flops: int = 100_000_000
    potrf_min_p: int = 512
    small_dense_batched_potrf_max_p: int = 32
    small_dense_batched_potrf_min_batch: int = 8
    syevd_min_p: int = 256
    sparse_min_nnz: int = 1_000_000
    fused_kernel_min_n: int = 100_000
    keep_design_resident_min_bytes: int = 32 << 20
    prefer_gpu_factorization_min_p: int = 512
    row_kernel_min_n: int = 50_000
    mixed_precision: GpuMixedPrecisionPolicy = GpuMixedPrecisionPolicy.REFINEMENT

    def __post_init__(self) -> None:
        for name in _THRESHOLDS:
            value: object = getattr(self, name)
            try:
                number = border.index_of(value)
            except TypeError:
                number = -1
            if not 0 <= number <= USIZE_MAX:
                raise ArgumentValueError(
                    f"{name} is {border.shown(value)}: use an integer of 0 to 2**64 - 1"
                )
            object.__setattr__(self, name, number)
        if not isinstance(self.mixed_precision, GpuMixedPrecisionPolicy):
            raise ArgumentValueError(
                f"mixed_precision is {border.shown(self.mixed_precision)}: use a "
                "GpuMixedPrecisionPolicy"
            )

    @property
    def dense_reduction_flops_min(self) -> int:
        """The flops from which a dense reduction goes to the device."""
        return min(self.xtwx_flops_min, self.gemm_min_flops)

    def iterative_refinement_should_attempt(self, p: int) -> bool:
        """Return True if a float32 factorization of order `p`, refined, is likely to pay.

        The caller still goes back to float64 where the factorization fails or does not converge.
        """
        if self.mixed_precision is not GpuMixedPrecisionPolicy.REFINEMENT:
            return False
        if type(p) is not int:
            (p,) = _counts(p=p)
        return p >= self.REFINEMENT_MIN_P

    def dense_gemv_target_is_gpu(self, n: int, p: int, resident: bool) -> bool:
        """Return True if an (n, p) matrix times a vector goes to the device, where it may be."""
        if type(n) is not int or type(p) is not int:
            n, p = _counts(n=n, p=p)
        if not resident and (n < 0 or p < 0):
            raise _negative(n, p)
        return resident or 2 * n * p >= self.gemm_min_flops

    def xtwx_target_is_gpu(self, n: int, p: int, materialized: bool) -> bool:
        """Return True if XᵀWX of an (n, p) design, a matrix, goes to the device."""
        if type(n) is not int or type(p) is not int:
            n, p = _counts(n=n, p=p)
        return materialized and n > 0 and p > 0 and self._reduces_on_gpu(2 * n * p * p)

    def xtwy_target_is_gpu(self, n: int, px: int, q: int, materialized: bool) -> bool:
        """Return True if XᵀWY of (n, px) and (n, q) matrices goes to the device."""
        if type(n) is not int or type(px) is not int or type(q) is not int:
            n, px, q = _counts(n=n, px=px, q=q)
        has_all = n > 0 and px > 0 and q > 0
        return materialized and has_all and self._reduces_on_gpu(2 * n * px * q)

    def potrf_target_is_gpu(self, p: int, h_resident: bool) -> bool:
        """Return True if a Cholesky factorization of order `p` goes to the device that holds it."""
        if type(p) is not int:
            (p,) = _counts(p=p)
        return h_resident and p >= self.potrf_min_p

    def dense_hessian_work_target_is_gpu(self, n: int, p: int) -> bool:
        """Return True if the Hessian of an (n, p) design is worth a loop on the device."""
        if type(n) is not int or type(p) is not int:
            n, p = _counts(n=n, p=p)
        return n > 0 and p >= self.DEVICE_LOOP_MIN_P and self._reduces_on_gpu(2 * n * p * p)

    def reduced_schur_matvec_should_offload(self, n: int, k: int, d: int, cg_iters: int) -> bool:
        """Return True if the matrix-vector products of a whole iterative solve go to the device.

        No single product is large; all together repay the one transfer of the row frames, which
        stay on the device.

        Args:
            n: row blocks.
            k: width of the border.
            d: depth of a row's frame.
            cg_iters: iterations expected; `MATVEC_OFFLOAD_MIN_CG_ITERS` where unknown.
        """
        if not type(n) is type(k) is type(d) is type(cg_iters) is int:
            n, k, d, cg_iters = _counts(n=n, k=k, d=d, cg_iters=cg_iters)
        if n <= 0 or d <= 0 or cg_iters <= 0 or k < self.DEVICE_LOOP_MIN_P:
            return False
        return cg_iters * n * d * (2 * k + d) >= self.MATVEC_OFFLOAD_FLOPS_MIN

    def should_use_gpu_pirls_loop(self, adm: PirlsLoopAdmission) -> bool:
        """Return True if a fit at fixed smoothing runs in the device-resident loop.

        The work decides, not the rows alone: few rows of thousands of columns are worth it.
        """
        if type(adm) is not PirlsLoopAdmission:
            border.instance_of("should_use_gpu_pirls_loop: adm", adm, PirlsLoopAdmission)
        return (
            adm.gpu_available
            and adm.family is not None
            and self.dense_hessian_work_target_is_gpu(adm.n, adm.p)
        )

    def should_run_reml_outer_on_device(self, adm: RemlOuterAdmission) -> bool:
        """Return True if the search over smoothing parameters runs on the device as well.

        It needs the conditions of the inner loop, and at least two parameters.
        """
        if type(adm) is not RemlOuterAdmission:
            border.instance_of("should_run_reml_outer_on_device: adm", adm, RemlOuterAdmission)
        return (
            adm.num_rho >= 2
            and adm.gpu_available
            and adm.family is not None
            and self.dense_hessian_work_target_is_gpu(adm.n, adm.p)
        )

    def to_json(self) -> str:
        """Return a JSON object with the 14 fields."""
        values: dict[str, int | str] = {name: getattr(self, name) for name in _THRESHOLDS}
        values["mixed_precision"] = self.mixed_precision.value
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str | bytes) -> GpuDispatchPolicy:
        """Return the policy that `to_json` wrote; fields of other versions are ignored.

        Raises:
            ValueError: it is no JSON object, or a field is missing or out of range.
        """
        try:
            values = json.loads(text)
        except TypeError as error:
            raise ArgumentTypeError(f"a dispatch policy is JSON text: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ArgumentValueError(f"a dispatch policy is a JSON object: {error}") from error
        if not isinstance(values, Mapping):
            raise ArgumentValueError("a dispatch policy is a JSON object")
        missing = [field.name for field in fields(cls) if field.name not in values]
        if missing:
            raise ArgumentValueError(f"the dispatch policy lacks {', '.join(missing)}")
        thresholds = {name: values[name] for name in _THRESHOLDS}
        precision = values["mixed_precision"]
        with contextlib.suppress(ValueError):  # the constructor rejects values that are no members
            precision = GpuMixedPrecisionPolicy(precision)
        return cls(**thresholds, mixed_precision=precision)

    def _reduces_on_gpu(self, flops: int) -> bool:
        return flops >= self.xtwx_flops_min or flops >= self.gemm_min_flops


def _counts(**numbers: int) -> Iterator[int]:
    """Return counts as Python integers, of any size."""
    return (border.integer(name, value) for name, value in numbers.items())


_THRESHOLDS = tuple(
    field.name for field in fields(GpuDispatchPolicy) if field.name != "mixed_precision"
)


def saturating_product(*factors: int) -> int:
    """Return the product of counts, at most 2**64 - 1.

    Clamping once at the end gives the same as clamping at each step. A zero makes both zero, and no
    factor of at least one makes a product smaller.
    """
    return min(math.prod(factors), USIZE_MAX)


def _negative(*counts: int) -> ArgumentValueError:
    return ArgumentValueError(f"counts are 0 or more, not {min(counts)}")
