"""Instructions that name a cluster's memory, in launches with and without clusters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig

from .test_faults import run

_HEAD: Final = """
.visible .entry {name}(.param .u64 O) {directive}
{{
.reg .pred p, w; .reg .b32 s, b, r, c, z<4>; .reg .b64 o, l; .reg .b16 h;
.shared .align 16 .b64 bar; .shared .align 128 .b8 box[256];
ld.param.u64 o, [O]; mov.u32 s, box; mov.u32 b, bar;
mov.u32 z0, 5; mov.u32 z1, 6; mov.u32 z2, 7; mov.u32 z3, 8;
mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
st.shared.v4.b32 [box], {{z0, z1, z2, z3}}; st.shared.v4.b32 [box+128], {{z0, z0, z0, z0}};
st.global.v4.b32 [o+16], {{z0, z1, z2, z3}}; fence.proxy.async;
mov.u32 c, %cluster_ctarank; mapa.shared::cluster.u32 s, s, c; mapa.shared::cluster.u32 b, b, c;
{text}
st.global.b32 [o], r; barrier.cluster.arrive; barrier.cluster.wait; ret;
}}
"""
_WAIT: Final = (
    "mov.u32 c, 0; mov.u32 r, 77777; W_{name}: add.u32 c, c, 1; setp.gt.u32 w, c, 4000; "
    "@w bra E_{name}; mbarrier.try_wait.parity.shared.b64 w, [bar], 0; @!w bra W_{name}; "
    "ld.shared.b32 r, [box+128]; E_{name}:"
)
_BYTES: Final = "mbarrier::complete_tx::bytes"
_BETWEEN_BLOCKS: Final = {
    "store": (16, 6, f"st.async.weak.shared::cluster.{_BYTES}.v4.b32 [s+128],{{z1,z2,z3,z0}},[b];"),
    "sum": (4, 11, f"red.async.relaxed.cluster.shared::cluster.{_BYTES}.add.u32 [s+128], z1, [b];"),
    "bits": (4, 13, f"red.async.relaxed.cluster.shared::cluster.{_BYTES}.xor.b32 [s+128],z3,[b];"),
    "sums": (
        16,
        10,
        f"cp.reduce.async.bulk.shared::cluster.shared::cta.{_BYTES}.add.u32 "
        "[s+128], [box], 16, [b];",
    ),
    "copy": (16, 5, f"cp.async.bulk.shared::cluster.shared::cta.{_BYTES} [s+128],[box],16,[b];"),
}
"""Of each instruction the bytes, the result and the text."""
_OTHERS: Final = {
    "load": (16, 5, f"cp.async.bulk.shared::cluster.global.{_BYTES} [s+128], [o+16], 16, [b];"),
    "multicast": (
        16,
        5,
        "mov.u32 r, 1; shl.b32 r, r, c; cvt.u16.u32 h, r; cp.async.bulk.shared::cluster."
        f"global.{_BYTES}.multicast::cluster [s+128], [o+16], 16, [b], h;",
    ),
    "arrive": (0, 5, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [b];"),
    "read": (None, 5, "ld.shared::cluster.b32 r, [s];"),
    "write": (None, 8, "st.shared::cluster.b32 [s], z3; ld.shared.b32 r, [box];"),
    "atomic": (None, 13, "atom.shared::cluster.add.u32 r, [s], z3; ld.shared.b32 r, [box];"),
}
_REGISTERS: Final = (
    "mov.pred w, %is_explicit_cluster; selp.u32 r, 1, 0, w; mov.u32 c, %cluster_nctarank; "
    "mad.lo.u32 r, c, 10, r; mov.u32 c, %nclusterid.x; mad.lo.u32 r, c, 100, r; "
    "mov.u32 c, %cluster_nctaid.x; mad.lo.u32 r, c, 1000, r;"
)
_DIRECTIVE: Final = ".reqnctapercluster 1, 1, 1"


def _text(name: str, directive: str) -> str:
    if name == "registers":
        return _HEAD.format(name=name, directive=directive, text=_REGISTERS)
    nbytes, _, text = (_BETWEEN_BLOCKS | _OTHERS)[name]
    if nbytes is not None:
        wait = _WAIT.format(name=name)
        begin = f"mbarrier.arrive.expect_tx.shared.b64 l, [bar], {nbytes};" if nbytes else ""
        text = f"{begin} {text} {wait}"
    return _HEAD.format(name=name, directive=directive, text=text)


@cache
def _image(directive: str) -> ptx.Image:
    names = (*_BETWEEN_BLOCKS, *_OTHERS, "registers")
    head = ".version 8.1\n.target sm_90\n.address_size 64\n"
    return ptx.Image.from_ptx(head + "".join(_text(name, directive) for name in names))


def _needs_clusters(context: cudadrv.Context) -> None:
    if context.device.compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")


def launched(name: str, directive: str, blocks: int) -> int:
    """The result of an instruction, in a launch with clusters of so many blocks; 0: without."""
    context = cudadrv.cuda_context_for(0)
    stream = context.default_stream
    found = stream.zeros(8, np.uint32)
    config = LaunchConfig(max(1, blocks), 1, cluster=blocks) if blocks else LaunchConfig(1, 1)
    with context.load_module(_image(directive)) as module:
        module.kernel(name).launch(stream, config, found)
        return int(stream.to_host(found)[0])


CODE: Final = """
from contextlib import nullcontext
import cudadrv.emulator
from tests.contract.test_without_clusters import launched

for name in sys.argv[1].split():
    # An emulated device goes with its session, a GPU's context with the process.
    with cudadrv.emulator.session() if cuda_context_for(0).device.is_emulated else nullcontext():
        try:
            print(name, launched(name, "", 0))
        except CudaError as error:
            print(name, type(error).__name__, error.code, error.sticky)
"""


def test_a_copy_between_blocks_without_clusters_is_an_illegal_instruction(
    context: cudadrv.Context,
) -> None:
    _needs_clusters(context)
    names = list(_BETWEEN_BLOCKS)
    groups = [" ".join(names)] if context.device.is_emulated else names
    with ThreadPoolExecutor(4) as pool:
        lines = "".join(pool.map(lambda group: run(CODE, group), groups)).splitlines()
    assert lines == [f"{name} IllegalInstructionError 715 True" for name in names]


@pytest.mark.parametrize(("directive", "blocks"), [(_DIRECTIVE, 0), (_DIRECTIVE, 1), ("", 1)])
def test_a_copy_between_blocks_runs_in_clusters_of_one_block(
    context: cudadrv.Context, directive: str, blocks: int
) -> None:
    _needs_clusters(context)
    found = {name: launched(name, directive, blocks) for name in _BETWEEN_BLOCKS}
    assert found == {name: result for name, (_, result, _) in _BETWEEN_BLOCKS.items()}


def test_accesses_of_the_clusters_memory_run_without_clusters_and_in_them(
    context: cudadrv.Context,
) -> None:
    _needs_clusters(context)
    for directive, blocks in (("", 0), (_DIRECTIVE, 0), ("", 1), ("", 2)):
        found = {name: launched(name, directive, blocks) for name in _OTHERS}
        assert found == {name: result for name, (_, result, _) in _OTHERS.items()}


def test_a_cluster_of_one_block_is_explicit_where_the_launch_or_the_kernel_names_it(
    context: cudadrv.Context,
) -> None:
    _needs_clusters(context)
    found = {
        (directive, blocks): launched("registers", directive, blocks)
        for directive, blocks in (("", 0), (_DIRECTIVE, 0), (_DIRECTIVE, 1), ("", 1), ("", 2))
    }
    assert found == {
        ("", 0): 1110, (_DIRECTIVE, 0): 1111, (_DIRECTIVE, 1): 1111, ("", 1): 1111, ("", 2): 2121,
    }  # fmt: skip
