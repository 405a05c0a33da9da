"""The modules whose mutants are tested, and the tests of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Subject:
    """Files that do one thing.

    Attributes:
        files: what is changed.
        tests: what should notice it, in at most about 20 seconds.
        selection: which of these tests run, as an expression of pytest's `-k`; empty for all.
        own_cache: whether each mutant begins with an empty cache of images.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    selection: str = ""
    own_cache: bool = False


def _in(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.py" for name in names)


SUBJECTS: Final[dict[str, Subject]] = {
    "memory_order": Subject(
        ("cudadrv/memory/order.py",),
        (
            *_in("tests/contract/memory", "test_order", "test_homes", "test_closing_streams"),
            "tests/contract/order",
        ),
    ),
    "handles": Subject(
        ("cudadrv/driver/handle.py",),
        _in(
            "tests/contract/driver", "test_handle", "test_destroying", "test_destruction",
            "test_lost_handles", "test_deferred_release", "test_collections",
            "test_told_failures",
        ),
    ),
    "image_key": Subject(
        ("ptx/cache/key.py",),
        _in("tests/pure/cache", "test_key", "test_image_cache"),
        own_cache=True,
    ),
    "cache_store": Subject(
        ("ptx/cache/store.py",),
        _in(
            "tests/pure/cache", "test_damage", "test_faults", "test_image_cache", "test_places",
            "test_trust", "test_memory",
        ),
        own_cache=True,
    ),
    "launch_packing": Subject(
        ("cudadrv/launch/parameters.py", "cudadrv/launch/code.py"),
        (
            *_in("tests/contract/driver", "test_parameter_blocks", "test_launchers"),
            *_in(
                "tests/contract", "test_launch", "test_arguments", "test_repeated_launches",
                "test_readers", "test_repeated_readers", "test_texture_arguments",
            ),
            "tests/contract/arguments",
        ),
    ),
    "argument_checks": Subject(
        ("ptx/argument_checks.py", "cudadrv/launch/arguments.py"),
        (
            "tests/pure/test_given_values.py",
            "tests/contract/memory/test_order.py",
            "tests/contract/driver/test_parameter_blocks.py",
            *_in(
                "tests/contract", "test_arguments", "test_given_values", "test_host_arguments",
                "test_wrong_objects", "test_texture_arguments", "test_foreign_arrays",
                "test_element_types", "test_peers",
            ),
            "tests/contract/arguments",
        ),
    ),
    "race_rules": Subject(
        _in(
            "ptx/emulate/check", "memory_model", "happens_before", "synchronizes_with",
            "vector_clock", "barrier_clocks", "access_step",
        ),
        _in(
            "tests/emulator/engine/check",
            "test_vector_clock", "test_access_pair", "test_access_step",
            "test_lazy_clock", "test_lazy_shadow_memory", "test_memory_of_accesses",
            "test_sequentially_consistent", "test_other_proxies", "test_synchronizes_with",
            "test_races", "test_happens_before", "test_blocks_that_begin",
        ),
        selection="not 40-256 and not -many and not noted_in_each_order",
    ),
    "arithmetic": Subject(
        (
            "ptx/emulate/ops/integer.py",
            *_in(
                "ptx/emulate/ieee", "arithmetic", "comparison", "conversion", "exact", "formats",
                "half",
            ),
        ),
        (
            "tests/emulator/engine/ops/test_integer.py",
            "tests/emulator/engine/ieee",
            "tests/emulator/engine/ops/test_bits.py",
        ),
    ),
    "barriers": Subject(
        _in(
            "ptx/emulate/exec/sync", "block_barrier", "cluster_barrier", "mbarrier",
            "skipped_barriers", "waiting", "warp_sync",
        ),
        (
            *_in("tests/emulator/engine/ops", "test_barrier", "test_mbarrier", "test_warp"),
            "tests/emulator/engine/check/test_happens_before.py",
            "tests/emulator/engine/exec/sync",
        ),
    ),
    "launch_arguments": Subject(
        _in("cudadrv/launch", "host_arguments", "signatures", "config"),
        (
            *_in(
                "tests/contract", "test_arguments", "test_host_arguments", "test_launch",
                "test_launch_attributes", "test_launch_values", "test_asked_signatures",
                "test_kernel_forms", "test_given_values",
            ),
            "tests/contract/arguments",
            "tests/emulator/test_implied_waits.py",
        ),
    ),
    "foreign_arrays": Subject(
        _in("cudadrv/interop", "dlpack", "elements", "foreign", "ordering", "reader"),
        (
            *_in(
                "tests/contract", "test_foreign_arrays", "test_foreign_streams", "test_exchange",
                "test_interop", "test_views", "test_element_types",
            ),
            "tests/contract/interop",
        ),
    ),
    "check_switches": Subject(
        (
            *_in("cudadrv/sessions", "process", "session"),
            *_in("cudadrv/testing", "choices", "plan"),
        ),
        (
            *_in("tests/emulator", "test_sessions", "test_checks", "test_reports"),
            *_in("tests/emulator/testing", "test_options", "test_findings", "test_places"),
        ),
    ),
    "scatter": Subject(
        _in("cudadrv/pool", "scatter", "tile", "workers"),
        ("tests/contract/pool", "tests/contract/test_scatter.py"),
    ),
}  # fmt: skip
"""The modules with the highest risk, by name."""
