"""Every part of a launch reaches the kernel of a case, its findings and their replay."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import find

from cudadrv import Event, LaunchConfig, cuda_context_for
from cudadrv.errors import ArgumentValueError
from cudadrv.launch import AccessWindow, LaunchAttributes
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import Example, KernelCase, VerifyOptions, verify, verify_kernel
from cudadrv.testing.verify.replay import SavedFinding, saved_findings
from ptx import KernelSignature

QUICK: Final = VerifyOptions(examples=3, database=None, explain=False)
# A value of each field that is not the default one; a new field needs a line.
CONFIG: Final[dict[str, Any]] = {
    "grid": (4, 2, 1),
    "block": (8, 2, 1),
    "shared_bytes": 64,
    "cluster": (2, 1, 1),
    "cooperative": True,
    "programmatic": True,
    "attributes": LaunchAttributes(priority=-2),
}
ATTRIBUTES: Final[dict[str, Any]] = {
    "priority": -1, "preferred_cluster": (4, 1, 1), "memory_domain": "remote",
    "shared_carveout": 50, "access_window": AccessWindow(4096, 64, 0.5, "normal", "normal"),
    "nvlink_centric": True, "cluster_size_mode": "allow_non_portable",
    "shared_memory_mode": "require_portable",
}  # fmt: skip
REJECTED: Final = {"completion_event", "device_updatable"}
BASE: Final = LaunchConfig((2, 2, 1), (4, 1, 1))
SIZES: Final = """extern "C" __global__ void sizes(unsigned* y) {
    unsigned blocks; asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
    if (threadIdx.x == 0) y[blockIdx.x] = blocks;
}"""


def configs() -> list[LaunchConfig]:
    """Configurations that differ from `BASE` in one field or attribute each, and one in all."""
    one = [replace(BASE, **{name: value}) for name, value in CONFIG.items()]
    one += [
        replace(BASE, attributes=LaunchAttributes(**{name: value}))
        for name, value in ATTRIBUTES.items()
    ]
    return [*one, replace(BASE, **{**CONFIG, "attributes": LaunchAttributes(**ATTRIBUTES)})]


def case_of(launch: LaunchConfig | st.LaunchConfigs, blocks: int = 2) -> KernelCase:
    return KernelCase(
        SIZES,
        arguments={"y": st.arrays(np.uint32, blocks)},
        launch=launch,
        reference=lambda y: {"y": blocks},
    )


def test_each_field_of_a_launch_has_a_value_here() -> None:
    assert set(CONFIG) == {field.name for field in fields(LaunchConfig)}
    assert set(ATTRIBUTES) | REJECTED == {field.name for field in fields(LaunchAttributes)}


def test_a_case_draws_the_launch_that_it_was_given() -> None:
    drawn = [find(case_of(config).launch.strategy(), lambda _: True) for config in configs()]
    assert drawn == configs()


def test_launch_configs_accepts_each_field_and_draws_it() -> None:
    taken = inspect.signature(st.launch_configs).parameters
    assert set(CONFIG) - {"grid"} <= set(taken)  # which follows from threads, or is `blocks`
    given = {name: value for name, value in CONFIG.items() if name != "grid"}
    launch = st.launch_configs(blocks=CONFIG["grid"], **given)
    assert find(launch.strategy(), lambda _: True) == LaunchConfig(**CONFIG)


def test_a_saved_example_has_the_whole_launch() -> None:
    examples = [Example({}, config) for config in configs()]
    read = [Example.from_json(json.loads(json.dumps(example.to_json()))) for example in examples]
    assert read == examples


def test_a_finding_of_an_older_version_has_default_values() -> None:
    saved = json.loads(json.dumps(Example({}, BASE).to_json()))
    del saved["launch"]["programmatic"], saved["launch"]["attributes"]
    assert Example.from_json(saved) == Example({}, BASE)


def test_a_shown_example_names_each_part_of_the_launch() -> None:
    shown = [str(Example({}, config)) for config in (BASE, *configs())]
    assert len(set(shown)) == len(shown)
    assert shown[1 + list(CONFIG).index("cluster")] == (
        "launch: 4 blocks (2, 2, 1) of 4 threads, clusters of 2 blocks, order immediate, "
        "default stream"
    )


@pytest.mark.slow
def test_a_kernel_runs_with_the_clusters_of_its_case() -> None:
    assert verify(case_of(LaunchConfig(2, 32, cluster=2)), QUICK).is_verified
    assert verify(case_of(st.launch_configs(blocks=2, block=32, cluster=2)), QUICK).is_verified
    found = verify(case_of(LaunchConfig(2, 32)), QUICK)
    assert [finding.check for finding in found.findings] == ["values"]


def test_verify_kernel_accepts_one_launch() -> None:
    verdict = verify_kernel(
        SIZES,
        lambda y: {"y": 2},
        {"y": st.arrays(np.uint32, 2)},
        LaunchConfig(2, 32, cluster=2),
        QUICK,
    )
    assert verdict.is_verified


@pytest.mark.slow
def test_a_replay_runs_with_the_clusters_of_the_finding() -> None:
    case = case_of(LaunchConfig(2, 32, cluster=2), blocks=3)  # the reference expects 3
    (saved,) = saved_findings(case, verify(case, QUICK))
    again = SavedFinding.from_json(json.loads(json.dumps(saved.to_json())))
    assert [fault.text for fault in again.faults()] == [saved.finding.text]
    assert "is 2, the reference has 3" in saved.finding.text


def test_the_grid_that_follows_from_threads_has_whole_clusters() -> None:
    for loops in (False, True):
        launch = st.launch_configs((50, 7), block=[1, (16, 4)], cluster=(4, 2), loops=loops)
        found = find(launch.strategy(), lambda config: config.block == (16, 4, 1))
        assert found.grid[:2] == (4, 2)
        config = find(launch.strategy(), lambda config: config.threads == 1)
        assert config.grid[:2] == ((4, 2) if loops else (52, 8))


def test_a_block_that_the_kernel_does_not_allow_is_drawn_as_given() -> None:
    # So the driver rejects it, as it does in the user's program.
    required = KernelSignature("k", (), 0, 0, None, (48, 2, 1))
    strategy = case_of(LaunchConfig(2, 32)).launch.strategy(required)
    assert find(strategy, lambda _: True) == LaunchConfig(2, 32)


def test_a_completion_event_is_rejected() -> None:
    with Event(cuda_context_for(0), timing=False) as event:
        attributes = LaunchAttributes(completion_event=event)
        with pytest.raises(ArgumentValueError, match="make the event in program="):
            case_of(LaunchConfig(1, 1, attributes=attributes))


def test_a_launch_that_only_a_graph_can_have_is_rejected() -> None:
    for requested in (False, True):
        attributes = LaunchAttributes(device_updatable=requested)
        with pytest.raises(ArgumentValueError, match="device_updatable, .*\n  make the graph in"):
            case_of(LaunchConfig(1, 1, attributes=attributes))
