"""`GraphKernels`: the kernels that a replay of an executable graph launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, SupportsInt

from ..driver._api import CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUgraphNodeType
from ..driver.driver_api import DriverApi

_KERNEL: Final = CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
_CHILD: Final = CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH

FOLLOWED: Final = frozenset(
    {
        "cuGraphExecDestroy", "cuGraphExecNodeSetParams", "cuGraphExecUpdate",
        "cuGraphInstantiateWithParams", "cuGraphNodeSetEnabled",
    }
)  # fmt: skip
"""The driver's functions that make, change or destroy executables."""


class GraphKernels:
    """The kernels of executables, read from the driver when an executable is made or changed.

    Those in bodies of conditional nodes are left out, as the driver does not return the bodies.

    """

    def __init__(self) -> None:
        self._names: dict[int, dict[int, str]] = {}  # of the nodes of each executable
        self._disabled: dict[int, frozenset[int]] = {}

    def of(self, executable: CUgraphExec) -> tuple[tuple[str, int], ...]:
        """Return each kernel with its launches in a replay, in the graph's order.

        It is empty of an executable that was made before the trace.
        """
        number = int(executable)
        disabled = self._disabled.get(number, frozenset())
        names = self._names.get(number, {}).items()
        return tuple(Counter(name for node, name in names if node not in disabled).items())

    # The functions of the driver have no signature in common.
    def follow(
        self, function: str, args: tuple[Any, ...], result: tuple[Any, ...], read: NodeReader
    ) -> None:
        """Record a successful call of one of `FOLLOWED`."""
        if function == "cuGraphInstantiateWithParams":
            number = int(result[1])
            self._disabled.pop(number, None)
            self._names[number] = dict(read.kernels(args[0]))
            return
        number = int(args[0])
        if function == "cuGraphExecDestroy":
            self._names.pop(number, None)
        elif function == "cuGraphExecUpdate":
            # The executable keeps the nodes of the graph that it was made of; both have one order.
            nodes, names = self._names.get(number, {}), dict(read.kernels(args[1]))
            if len(nodes) == len(names):
                names = dict(zip(nodes, names.values(), strict=True))
            self._names[number] = names
        elif function == "cuGraphNodeSetEnabled":
            disabled, node = self._disabled.get(number, frozenset()), {int(args[1])}
            self._disabled[number] = disabled - node if args[2] else disabled | node
        elif args[2].type == _KERNEL and number in self._names:
            kernel = args[2].kernel
            self._names[number][int(args[1])] = read.name(kernel.func, kernel.kern)


class NodeReader(NamedTuple):
    """Reads the kernels of graphs.

    Attributes:
        api: the driver's own functions, which are not traced.
        name_of: returns the name of a kernel.
    """

    api: DriverApi
    name_of: Callable[[CUfunction], str]

    def kernels(self, graph: CUgraph) -> Iterator[tuple[int, str]]:
        """Yield the kernel nodes of a graph and of its child graphs, with the kernels' names."""
        code, _, count = self.api.cuGraphGetNodes(graph, 0)
        if not code:
            code, nodes, _ = self.api.cuGraphGetNodes(graph, count)
        for node in () if code else (nodes or ())[:count]:
            node = CUgraphNode(int(node))
            code, kind = self.api.cuGraphNodeGetType(node)
            if not code and kind == _KERNEL:
                code, params = self.api.cuGraphKernelNodeGetParams(node)
                if not code:
                    yield int(node), self.name(params.func, params.kern)
            elif not code and kind == _CHILD:
                code, child = self.api.cuGraphChildGraphNodeGetGraph(node)
                if not code:
                    yield from self.kernels(child)

    def name(self, function: CUfunction, kernel: SupportsInt) -> str:
        """Return the name of a node's kernel; one of a library may have no function."""
        if int(function):
            return self.name_of(function)
        code, name = self.api.cuKernelGetName(int(kernel))
        return f"kernel {int(kernel):#x}" if code or name is None else name.decode()
