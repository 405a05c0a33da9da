from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cudadrv.runtime import (
    GpuDispatchPolicy,
    GpuMixedPrecisionPolicy,
    PirlsCurvature,
    PirlsFamily,
    PirlsLoopAdmission,
    RemlOuterAdmission,
)

DEFAULT = GpuDispatchPolicy()
USIZE_MAX = 18_446_744_073_709_551_615


def test_the_defaults_are_gams() -> None:
    assert json.loads(DEFAULT.to_json()) == {
        "xtwx_n_min": 50_000,
        "xtwx_flops_min": 100_000_000,
        "xtwx_use_fused_below_p": 256,
        "gemm_min_flops": 100_000_000,
        "potrf_min_p": 512,
        "small_dense_batched_potrf_max_p": 32,
        "small_dense_batched_potrf_min_batch": 8,
        "syevd_min_p": 256,
        "sparse_min_nnz": 1_000_000,
        "fused_kernel_min_n": 100_000,
        "keep_design_resident_min_bytes": 33_554_432,
        "prefer_gpu_factorization_min_p": 512,
        "row_kernel_min_n": 50_000,
        "mixed_precision": "Refinement",
    }


def test_the_six_constants_are_gams() -> None:
    assert GpuDispatchPolicy.REFINEMENT_MIN_P == 64
    assert GpuDispatchPolicy.REFINEMENT_MAX_STEPS == 3
    assert GpuDispatchPolicy.REFINEMENT_TOL == 1e-12
    assert GpuDispatchPolicy.MATVEC_OFFLOAD_FLOPS_MIN == 10_000_000
    assert GpuDispatchPolicy.MATVEC_OFFLOAD_MIN_CG_ITERS == 8
    assert GpuDispatchPolicy.DEVICE_LOOP_MIN_P == 32


def test_refinement_starts_at_64_columns_and_never_when_turned_off() -> None:
    assert not DEFAULT.iterative_refinement_should_attempt(63)
    assert DEFAULT.iterative_refinement_should_attempt(64)
    for mode in (GpuMixedPrecisionPolicy.OFF, GpuMixedPrecisionPolicy.NEVER):
        policy = replace(DEFAULT, mixed_precision=mode)
        assert not policy.iterative_refinement_should_attempt(1 << 20)


def test_a_product_with_a_vector_goes_where_the_matrix_is_or_from_enough_flops_on() -> None:
    assert DEFAULT.dense_gemv_target_is_gpu(1, 1, True)
    assert DEFAULT.dense_gemv_target_is_gpu(50_000, 1000, False)
    assert not DEFAULT.dense_gemv_target_is_gpu(49_999, 1000, False)


@pytest.mark.parametrize(
    ("n", "p", "materialized", "expected"),
    [
        (5000, 100, True, True),
        (4999, 100, True, False),
        (5000, 100, False, False),
        (0, 100, True, False),
        (5000, 0, True, False),
        (2000, 2048, True, True),
    ],
)
def test_xtwx_goes_to_the_device_by_its_flops(
    n: int, p: int, materialized: bool, expected: bool
) -> None:
    assert DEFAULT.xtwx_target_is_gpu(n, p, materialized) is expected
    assert DEFAULT.xtwy_target_is_gpu(n, p, p, materialized) is expected


def test_xtwy_needs_all_three_extents() -> None:
    assert DEFAULT.xtwy_target_is_gpu(5000, 200, 50, True)
    assert not DEFAULT.xtwy_target_is_gpu(5000, 199, 50, True)
    assert not DEFAULT.xtwy_target_is_gpu(1 << 40, 1 << 20, 0, True)


def test_the_lower_of_two_thresholds_rules_dense_reductions() -> None:
    policy = replace(DEFAULT, xtwx_flops_min=10_000, gemm_min_flops=500)
    assert policy.dense_reduction_flops_min == 500
    assert policy.xtwx_target_is_gpu(10, 5, True)
    assert not policy.xtwx_target_is_gpu(9, 5, True)
    assert replace(DEFAULT, xtwx_flops_min=7).dense_reduction_flops_min == 7


def test_a_factorization_goes_to_the_device_that_holds_its_matrix() -> None:
    assert DEFAULT.potrf_target_is_gpu(512, True)
    assert not DEFAULT.potrf_target_is_gpu(511, True)
    assert not DEFAULT.potrf_target_is_gpu(4096, False)


def test_a_hessian_needs_rows_32_columns_and_the_flops() -> None:
    assert DEFAULT.dense_hessian_work_target_is_gpu(2000, 2048)
    assert DEFAULT.dense_hessian_work_target_is_gpu(48_829, 32)
    assert not DEFAULT.dense_hessian_work_target_is_gpu(48_828, 32)
    assert not DEFAULT.dense_hessian_work_target_is_gpu(1 << 40, 31)
    assert not DEFAULT.dense_hessian_work_target_is_gpu(0, 2048)


@pytest.mark.parametrize("shape", [(2000, 2048, 8, 8), (2000, 2048, 8, 1), (200, 32, 4, 1000)])
def test_enough_work_over_a_solve_is_offloaded(shape: tuple[int, int, int, int]) -> None:
    assert DEFAULT.reduced_schur_matvec_should_offload(*shape)


@pytest.mark.parametrize(
    "shape", [(30, 8, 2, 8), (300, 8, 4, 16), (1_000_000, 31, 64, 64), (200, 32, 4, 1)]
)
def test_too_little_work_or_too_narrow_a_border_stays(shape: tuple[int, int, int, int]) -> None:
    assert not DEFAULT.reduced_schur_matvec_should_offload(*shape)


@pytest.mark.parametrize("zero", range(4))
def test_a_solve_of_nothing_stays(zero: int) -> None:
    shape = [2000, 2048, 8, 8]
    shape[zero] = 0
    assert not DEFAULT.reduced_schur_matvec_should_offload(*shape)


def test_offload_stands_exactly_at_ten_million_flops() -> None:
    # 2·d·k + d² = 2·1·32 + 1 = 65 flops a block; 10,000,000 / 65 = 153,846.15…
    assert DEFAULT.reduced_schur_matvec_should_offload(153_847, 32, 1, 1)
    assert not DEFAULT.reduced_schur_matvec_should_offload(153_846, 32, 1, 1)


def test_flops_saturate_and_do_not_wrap() -> None:
    # 2·2^32·2^16·2^16 is 2^65: wrapped it would be 0.
    assert DEFAULT.xtwx_target_is_gpu(1 << 32, 1 << 16, True)
    most = replace(DEFAULT, xtwx_flops_min=USIZE_MAX, gemm_min_flops=USIZE_MAX)
    assert most.xtwx_target_is_gpu(1 << 32, 1 << 16, True)
    assert most.dense_gemv_target_is_gpu(1 << 63, 1, False)
    assert not most.dense_gemv_target_is_gpu((1 << 63) - 1, 1, False)
    assert most.reduced_schur_matvec_should_offload(*[USIZE_MAX] * 4)


def test_a_negative_count_is_rejected_where_it_could_pass_for_work() -> None:
    with pytest.raises(ValueError, match="counts are 0 or more, not -50000"):
        DEFAULT.dense_gemv_target_is_gpu(-50_000, -1000, False)


FAMILIES = list(PirlsFamily)


def inner(
    n: int = 2000,
    p: int = 2048,
    family: PirlsFamily | None = PirlsFamily.BERNOULLI_LOGIT,
    gpu_available: bool = True,
) -> PirlsLoopAdmission:
    return PirlsLoopAdmission(n, p, family, PirlsCurvature.FISHER, gpu_available)


def outer(adm: PirlsLoopAdmission, num_rho: int) -> RemlOuterAdmission:
    return RemlOuterAdmission(
        adm.n, adm.p, num_rho, adm.family, PirlsCurvature.OBSERVED, adm.gpu_available
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_few_rows_of_many_columns_are_admitted_for_every_family(family: PirlsFamily) -> None:
    adm = inner(family=family)
    assert DEFAULT.should_use_gpu_pirls_loop(adm)
    assert DEFAULT.should_run_reml_outer_on_device(outer(adm, 2))


@pytest.mark.parametrize(
    "adm",
    [inner(gpu_available=False), inner(family=None), inner(n=100, p=40), inner(p=31, n=10**9)],
)
def test_without_device_family_or_work_neither_loop_is_admitted(adm: PirlsLoopAdmission) -> None:
    assert not DEFAULT.should_use_gpu_pirls_loop(adm)
    assert not DEFAULT.should_run_reml_outer_on_device(outer(adm, 5))


def test_the_outer_loop_needs_two_smoothing_parameters() -> None:
    assert not DEFAULT.should_run_reml_outer_on_device(outer(inner(), 1))
    assert DEFAULT.should_run_reml_outer_on_device(outer(inner(), 2))


def test_families_and_curvatures_are_gams() -> None:
    assert [family.value for family in PirlsFamily] == [
        "BernoulliLogit",
        "BernoulliProbit",
        "BernoulliCLogLog",
        "PoissonLog",
        "GaussianIdentity",
        "GammaLog",
    ]
    assert [curvature.value for curvature in PirlsCurvature] == ["Fisher", "Observed"]


sizes = st.integers(0, USIZE_MAX)


@pytest.mark.slow
@given(
    st.builds(
        GpuDispatchPolicy, *[sizes] * 13, mixed_precision=st.sampled_from(GpuMixedPrecisionPolicy)
    )
)
def test_a_policy_comes_back_from_json_as_it_was(policy: GpuDispatchPolicy) -> None:
    assert GpuDispatchPolicy.from_json(policy.to_json()) == policy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"potrf_min_p": -1}, "potrf_min_p is -1"),
        ({"potrf_min_p": 1 << 64}, "potrf_min_p is 18446744073709551616"),
        ({"potrf_min_p": 1.5}, "potrf_min_p is 1.5"),
        ({"potrf_min_p": True}, "potrf_min_p is True"),
        ({"potrf_min_p": "9"}, "potrf_min_p is '9'"),
        ({"mixed_precision": "Sometimes"}, "Sometimes"),
    ],
)
def test_json_that_is_no_policy_is_rejected(change: dict[str, object], message: str) -> None:
    text = json.dumps({**json.loads(DEFAULT.to_json()), **change})
    with pytest.raises(ValueError, match=message):
        GpuDispatchPolicy.from_json(text)


def test_missing_fields_are_named_and_unknown_ones_passed_over() -> None:
    values = json.loads(DEFAULT.to_json())
    assert GpuDispatchPolicy.from_json(json.dumps({**values, "later": 1})) == DEFAULT
    del values["syevd_min_p"]
    with pytest.raises(ValueError, match="lacks syevd_min_p"):
        GpuDispatchPolicy.from_json(json.dumps(values))
    with pytest.raises(ValueError, match="a JSON object"):
        GpuDispatchPolicy.from_json("[]")


def product_in_rust(*factors: int, bits: int = 64) -> int:
    """The product in unsigned arithmetic that saturates at each step."""
    result = 1
    for factor in factors:
        result = min(result * factor, 2**bits - 1)
    return result


def sum_in_rust(*terms: int, bits: int) -> int:
    result = 0
    for term in terms:
        result = min(result + term, 2**bits - 1)
    return result


class Reference:
    """The predicates as gam writes them."""

    def __init__(self, policy: GpuDispatchPolicy) -> None:
        self.policy = policy
        self.reduction = min(policy.xtwx_flops_min, policy.gemm_min_flops)

    def dense_gemv_target_is_gpu(self, n: int, p: int, resident: bool) -> bool:
        return resident or product_in_rust(2, n, p) >= self.policy.gemm_min_flops

    def xtwx_target_is_gpu(self, n: int, p: int, materialized: bool) -> bool:
        return materialized and n > 0 and p > 0 and product_in_rust(2, n, p, p) >= self.reduction

    def xtwy_target_is_gpu(self, n: int, px: int, q: int, materialized: bool) -> bool:
        flops = product_in_rust(2, n, px, q)
        return materialized and 0 not in (n, px, q) and flops >= self.reduction

    def potrf_target_is_gpu(self, p: int, h_resident: bool) -> bool:
        return h_resident and p >= self.policy.potrf_min_p

    def dense_hessian_work_target_is_gpu(self, n: int, p: int) -> bool:
        return n > 0 and p >= 32 and product_in_rust(2, n, p, p) >= self.reduction

    def iterative_refinement_should_attempt(self, p: int) -> bool:
        return self.policy.mixed_precision is GpuMixedPrecisionPolicy.REFINEMENT and p >= 64

    def reduced_schur_matvec_should_offload(self, n: int, k: int, d: int, cg_iters: int) -> bool:
        if 0 in (n, k, d, cg_iters) or k < 32:
            return False
        block = sum_in_rust(
            product_in_rust(2, d, k, bits=128), product_in_rust(d, d, bits=128), bits=128
        )
        return product_in_rust(cg_iters, n, block, bits=128) >= 10_000_000


def test_the_predicates_decide_as_saturating_arithmetic_does() -> None:
    edges = [0, 1, 31, 32, 64, 511, 512, 7071, 7072, 1 << 16, 1 << 32, 1 << 63, USIZE_MAX]
    kinds: dict[str, list[list[int] | list[bool]]] = {
        "dense_gemv_target_is_gpu": [edges, edges, [False, True]],
        "xtwx_target_is_gpu": [edges, edges, [False, True]],
        "xtwy_target_is_gpu": [edges, edges, edges, [False, True]],
        "potrf_target_is_gpu": [edges, [False, True]],
        "dense_hessian_work_target_is_gpu": [edges, edges],
        "iterative_refinement_should_attempt": [edges],
        "reduced_schur_matvec_should_offload": [edges[::2], edges[::2], edges[1::2], edges[::3]],
    }
    policies = [
        replace(DEFAULT, xtwx_flops_min=first, gemm_min_flops=second, potrf_min_p=first)
        for first in (0, 1, 100_000_000, USIZE_MAX)
        for second in (0, 100_000_000, USIZE_MAX)
    ]
    policies.append(replace(DEFAULT, mixed_precision=GpuMixedPrecisionPolicy.NEVER))
    wrong = [
        (name, policy, arguments)
        for policy in policies
        for name, values in kinds.items()
        for arguments in itertools.product(*values)
        if getattr(policy, name)(*arguments) is not getattr(Reference(policy), name)(*arguments)
    ]
    assert wrong == []


def test_counts_of_other_integer_types_decide_as_pythons() -> None:
    for n, p in ((5000, 100), (4999, 100)):
        make: Any  # the predicates take all integers, and are typed for Python's
        for make in (np.int64, np.uint64, np.int32):
            found = [
                DEFAULT.xtwx_target_is_gpu(make(n), p, True),
                DEFAULT.xtwx_target_is_gpu(n, make(p), True),
                DEFAULT.xtwy_target_is_gpu(make(n), make(p), make(p), True),
                DEFAULT.dense_gemv_target_is_gpu(make(n), make(p * p), False),
                DEFAULT.reduced_schur_matvec_should_offload(make(n), make(p), make(10), make(1)),
            ]
            assert found == [n == 5000] * 4 + [True]
