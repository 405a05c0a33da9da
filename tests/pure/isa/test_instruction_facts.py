"""The facts of instructions."""

from __future__ import annotations

import pytest

from ptx.isa.instruction_facts import (
    ASYNC,
    CONSTANT,
    GENERIC,
    TEXTURE,
    InstructionFacts,
    InstructionKind as Kind,
    facts_of,
)


def facts(text: str) -> InstructionFacts:
    opcode, *modifiers = text.split(".")
    return facts_of(opcode, tuple(modifiers))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ld.global.f32", Kind.LOAD),
        ("ldu.global.f32", Kind.LOAD),
        ("red.add.u32", Kind.REDUCTION),
        ("cp.async.ca.shared.global", Kind.COPY),
        ("bar.sync", Kind.BARRIER),
        ("bar.warp.sync", Kind.WARP_BARRIER),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16", Kind.LOAD_MATRIX),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", Kind.MATRIX),
        ("nothing.of.ptx", Kind.OTHER),
    ],
)
def test_an_opcode_with_its_first_modifier_has_a_kind(text: str, kind: Kind) -> None:
    assert facts(text).kind is kind


@pytest.mark.parametrize(
    ("text", "space", "reaches_cluster"),
    [
        ("ld.global.f32", "global", False),
        ("ld.shared::cta.f32", "shared", False),
        ("ld.shared::cluster.f32", "shared", True),
        ("ld.param::entry.u64", "param", False),
        ("ld.f32", GENERIC, False),
        ("cp.async.bulk.shared::cluster.global", "shared", True),
    ],
)
def test_the_space_is_the_first_named_one(text: str, space: str, reaches_cluster: bool) -> None:
    found = facts(text)
    assert (found.space, found.reaches_cluster) == (space, reaches_cluster)


@pytest.mark.parametrize(
    ("text", "is_strong", "scope"),
    [
        ("ld.global.u32", False, "gpu"),
        ("ld.volatile.global.u32", True, "sys"),
        ("ld.acquire.cta.global.u32", True, "cta"),
        ("st.relaxed.gpu.global.u32", True, "gpu"),
        ("atom.acq_rel.cluster.add.u32", True, "cluster"),
    ],
)
def test_strong_accesses_have_their_scope(text: str, is_strong: bool, scope: str) -> None:
    assert (facts(text).is_strong, facts(text).scope) == (is_strong, scope)


@pytest.mark.parametrize(
    ("text", "publishes"),
    [
        ("membar.gl", True),
        ("membar.cta", False),
        ("fence.sc.gpu", True),
        ("fence.acquire.gpu", False),
        ("atom.release.add.u32", True),  # without a scope it is .gpu
        ("st.release.cluster.u32", False),
        ("st.global.u32", False),
    ],
)
def test_releases_of_all_blocks_publish_stores(text: str, publishes: bool) -> None:
    assert facts(text).publishes is publishes


@pytest.mark.parametrize(("text", "vector"), [("ld.global.v4.f32", 4), ("ld.global.f32", 1)])
def test_a_vector_has_its_elements(text: str, vector: int) -> None:
    assert facts(text).vector == vector


@pytest.mark.parametrize(
    ("text", "proxy", "is_asynchronous"),
    [
        ("ld.global.f32", GENERIC, False),
        ("ld.global.nc.f32", TEXTURE, False),
        ("ld.const.f32", CONSTANT, False),
        ("cp.async.ca.shared.global", GENERIC, True),
        ("st.async.shared::cluster.u32", GENERIC, True),
        ("cp.async.bulk.shared::cluster.global", ASYNC, True),
        ("tcgen05.mma.cta_group::1.kind::f16", ASYNC, True),
        ("tcgen05.alloc.cta_group::1", GENERIC, False),
    ],
)
def test_asynchronous_work_has_its_proxy(text: str, proxy: str, is_asynchronous: bool) -> None:
    assert (facts(text).proxy, facts(text).is_asynchronous) == (proxy, is_asynchronous)


@pytest.mark.parametrize(
    ("text", "ignores"),
    [
        ("add.f32", True),
        ("min.xorsign.abs.f32", False),
        ("copysign.f32", False),
        ("cvt.rn.f16.f32", True),
        ("cvt.f64.f32", False),
        ("set.lt.u32.f32", True),
        ("mov.f32", False),
        ("add.f64", False),
    ],
)
def test_arithmetic_ignores_the_payload_of_nans(text: str, ignores: bool) -> None:
    assert facts(text).ignores_nan_payload is ignores
