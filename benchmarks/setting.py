"""What a group of measurements is given: the driver, a stream, the kernels and the peers."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any, Final

import cudadrv

from .kernels import BLOCK, GRID, Kernels
from .timing import Case, Row

# Module in benchmarks.peers, and what must be installed for it.
PEERS: Final = {
    "core": "cuda.core",
    "cupy_peer": "cupy",
    "torch_peer": "torch",
    "triton_peer": "triton",
    "numba_peer": "numba_cuda",
    "jax_peer": "jax",
    "warp_peer": "warp",
    "pycuda_peer": "pycuda",
}
# Only cuda.core asks no more of a driver than the null driver has.
PEERS_ON_NULL: Final = ("core",)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a group measures.

    Attributes:
        null: whether this is the null driver.
        effort: 1 for real figures; less makes fewer rounds.
        with_peers: whether other libraries are measured.
        context: the first device's primary context.
        stream: a stream of it.
        kernels: the kernels, loaded on it.
    """

    null: bool
    effort: float
    with_peers: bool
    context: cudadrv.Context
    stream: cudadrv.Stream
    kernels: Kernels

    @classmethod
    def make(cls, *, null: bool, effort: float, with_peers: bool) -> Setting:
        """The setting of this process."""
        context = cudadrv.cuda_context_for(0)
        kernels = Kernels(context, null=null)
        return cls(null, effort, with_peers, context, context.new_stream(), kernels)

    def rounds(self, count: int) -> int:
        """How many rounds to make where `count` make good figures."""
        return max(3, int(count * self.effort))

    # What another library has for an array is its own affair.
    def given(self, stream: cudadrv.Stream, what: str, arrays: tuple[Any, ...]) -> Case:
        """A launch of the kernel of five parameters with three arrays, whoever has them."""
        names: dict[str, object] = dict(zip("abc", arrays, strict=True))
        names["launcher"] = self.kernels["k5"].bind(stream, cudadrv.LaunchConfig(GRID, BLOCK))
        return Case(f"cudadrv Launcher, {what}", "launcher(a, b, c, 1.5, 100)", names)

    def settle(self) -> None:
        """Wait for the device."""
        self.context.synchronize()

    def peer_cases(
        self, group: str, case: str, function: str, *args: object
    ) -> tuple[list[Case], list[Row]]:
        """The peers' cases, and a row for each peer that is there but cannot be measured.

        Args:
            group: for the rows.
            case: for the rows.
            function: which function of the peers' modules makes them; not every peer has it.
            args: what it takes beside the setting.
        """
        cases: list[Case] = []
        failed: list[Row] = []
        for name in PEERS_ON_NULL if self.null else PEERS:
            if not self.with_peers or not installed(PEERS[name]):
                continue
            try:
                peer = importlib.import_module(f"benchmarks.peers.{name}")
                cases += getattr(peer, function, _no_cases)(self, *args)
            except Exception as error:
                # A peer that is broken here is a line of the table, whatever is wrong with it.
                failed.append(Row.failed(group, case, PEERS[name], error))
        return cases, failed


def _no_cases(*_: object) -> list[Case]:
    return []


def installed(module: str) -> bool:
    """Whether a module can be found, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False
