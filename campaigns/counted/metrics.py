"""What is compared: numbers of the emulator with the metrics of Nsight Compute that mean them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cudadrv.emulator import Counts, InstructionClass as Of


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of a launch.

    Attributes:
        metrics: those whose sum it should be equal to.
        is_same: whether PTX and the machine code mean the same by it (docs/counters.md).
    """

    name: str
    read: Callable[[Counts], int]
    metrics: tuple[str, ...]
    is_same: bool = True


def _threads(name: str, kind: Of, metric: str) -> Quantity:
    return Quantity(
        name,
        lambda counts: counts.of(kind).threads,
        (f"smsp__sass_thread_inst_executed_op_{metric}_pred_on.sum",),
    )


def _group(name: str, prefix: str, metric: str) -> Quantity:
    kinds = [each for each in Of if each.value.startswith(prefix)]
    return Quantity(
        f"threads: {name}",
        lambda counts: counts.of(*kinds).threads,
        (f"smsp__sass_thread_inst_executed_op_{metric}_pred_on.sum",),
        is_same=False,
    )


def _warps(name: str, kinds: tuple[Of, ...], *metrics: str) -> Quantity:
    return Quantity(
        f"warps: {name}",
        lambda counts: counts.of(*kinds).warps,
        tuple(f"smsp__inst_executed_op_{metric}.sum" for metric in metrics),
    )


_MEMORY: Final = tuple(
    each
    for each in Of
    if each.value.partition(".")[0] in ("load", "store", "atomic", "reduction")
    and each is not Of.LOAD_PARAM
)
_L1: Final = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_BANKS: Final = "l1tex__data_{}_pipe_lsu_mem_shared_op_{}.sum"
_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
QUANTITIES: Final = (
    Quantity("global load requests", lambda c: c.global_loads.requests,
             (_L1.format("requests", "ld"),)),
    Quantity("global load sectors", lambda c: c.global_loads.sectors,
             (_L1.format("sectors", "ld"),)),
    Quantity("global store requests", lambda c: c.global_stores.requests,
             (_L1.format("requests", "st"),)),
    Quantity("global store sectors", lambda c: c.global_stores.sectors,
             (_L1.format("sectors", "st"),)),
    Quantity("global atomic requests", lambda c: c.global_atomics.requests,
             (_L1.format("requests", "atom"), _L1.format("requests", "red"))),
    Quantity("global atomic turns", lambda c: c.global_atomics.turns,
             (_L1.format("sectors", "atom"), _L1.format("sectors", "red"))),
    Quantity("shared load wavefronts", lambda c: c.shared_loads.wavefronts,
             (_WAVEFRONTS.format("ld"),)),
    Quantity("shared load conflicts", lambda c: c.shared_loads.conflicts,
             (_BANKS.format("bank_conflicts", "ld"),)),
    Quantity("shared store wavefronts", lambda c: c.shared_stores.wavefronts,
             (_WAVEFRONTS.format("st"),)),
    Quantity("shared store conflicts", lambda c: c.shared_stores.conflicts,
             (_BANKS.format("bank_conflicts", "st"),)),
    Quantity("shared atomic turns", lambda c: c.shared_atomics.turns,
             (_WAVEFRONTS.format("atom"),)),
    _warps("global loads", (Of.LOAD_GLOBAL,), "global_ld"),
    _warps("global stores", (Of.STORE_GLOBAL,), "global_st"),
    _warps("shared loads", (Of.LOAD_SHARED,), "shared_ld"),
    _warps("shared stores", (Of.STORE_SHARED,), "shared_st"),
    _warps("shared atomics", (Of.ATOMIC_SHARED,), "shared_atom"),
    _threads("fadd", Of.FP32_ADD, "fadd"),
    _threads("fmul", Of.FP32_MUL, "fmul"),
    _threads("ffma", Of.FP32_FMA, "ffma"),
    _threads("dadd", Of.FP64_ADD, "dadd"),
    _threads("dmul", Of.FP64_MUL, "dmul"),
    _threads("dfma", Of.FP64_FMA, "dfma"),
    _threads("hadd", Of.FP16_ADD, "hadd"),
    _threads("hmul", Of.FP16_MUL, "hmul"),
    _threads("hfma", Of.FP16_FMA, "hfma"),
    Quantity("branches", lambda c: c.branches.executed, ("smsp__sass_branch_targets.sum",),
             is_same=False),
    Quantity("divergent branches", lambda c: c.branches.divergent,
             ("smsp__sass_branch_targets_threads_divergent.sum",)),
    Quantity("warps: all", lambda c: c.executed.warps, ("smsp__inst_executed.sum",),
             is_same=False),
    Quantity("threads: all", lambda c: c.executed.threads,
             ("smsp__thread_inst_executed_pred_on.sum",), is_same=False),
    _group("integer", "integer", "integer"),
    _group("bit", "bit", "bit"),
    _group("conversion", "conversion", "conversion"),
    _group("control", "control", "control"),
    _group("warp", "warp", "inter_thread_communication"),
    _group("fp16", "fp16", "fp16"),
    _group("fp32", "fp32", "fp32"),
    _group("fp64", "fp64", "fp64"),
    Quantity("threads: memory", lambda c: c.of(*_MEMORY).threads,
             ("smsp__sass_thread_inst_executed_op_memory_pred_on.sum",), is_same=False),
)  # fmt: skip
# Only printed, as they say why numbers differ.
FURTHER: Final = (
    "smsp__sass_branch_targets_threads_uniform.sum",
    "smsp__sass_inst_executed_op_branch.sum",
    "smsp__inst_executed_op_branch.sum",
    "smsp__inst_executed_op_generic_ld.sum",
    "smsp__inst_executed_op_local_ld.sum",
    "smsp__inst_executed_op_ldsm.sum",
    "smsp__inst_executed_pipe_xu.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__sass_thread_inst_executed_op_misc_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_uniform_pred_on.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_ideal.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "smsp__inst_executed_op_ldgsts.sum",
    "smsp__inst_executed_op_shared_atom_dot_cas.sum",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
)
