"""Conditions: numbers that kernels set, by which conditional nodes choose what runs."""

from __future__ import annotations

from ..driver._api import CUgraphConditionalHandle
from ..driver.handle import Uncopied
from .graph_core import GraphCore


class GraphCondition(Uncopied):
    """A number that a kernel sets, for one conditional node; made by `Graph.new_condition`.

    It is an argument of kernels, as an ``unsigned long long``; device code declares
    ``extern "C" __device__ void cudaGraphSetConditional(unsigned long long, unsigned int);`` and
    gives it the number.

    Attributes:
        graph: the graph that the node is to be in.
        handle: the CUgraphConditionalHandle.
    """

    __slots__ = ("graph", "handle")

    def __init__(self, graph: GraphCore, handle: CUgraphConditionalHandle) -> None:
        self.graph: GraphCore = graph
        self.handle: CUgraphConditionalHandle = handle

    def __repr__(self) -> str:
        return f"<GraphCondition {int(self.handle):#x} of {self.graph!r}>"

    def __index__(self) -> int:
        return int(self.handle)
