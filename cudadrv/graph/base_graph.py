"""The base class of graphs, for nodes and executables: owning handle, and needs of the nodes.

`Graph` makes nodes and executables, and these have their graph. So they know its base.
"""

from __future__ import annotations

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUgraph, CUresult, CUuserObject
from ..driver.context import BaseContext
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.deferred_release import run_deferred
from ..driver.driver_selection import failure
from ..driver.handle import Closeable, check
from .needs import Content, Needs


class GraphHandle(ChildHandle[CUgraph]):
    """Owning handle of a graph, or the handle of a conditional node's body, whose graph owns it.

    Attributes:
        of: for a body, the handle of the graph that has the node.
    """

    __slots__ = ("of",)

    def __init__(self, context: ContextHandle, raw: CUgraph | None = None) -> None:
        super().__init__(context, raw)
        self.of: GraphHandle | None = None

    def _destroy(self) -> None:
        if self.of is None:
            (code,) = self.api.cuGraphDestroy(self.raw)
            doing = f"destroying a graph of device {self.context.ordinal}"
            check(self, code, "cuGraphDestroy", doing)


class BaseGraph(Closeable):
    """A graph of the driver, and the objects that its nodes need; every instance is a `Graph`.

    Attributes:
        context: the context in which its nodes run.
        handle: the CUgraph; reading it after `close` raises `ClosedError`.
        closed: True once it was closed.
    """

    __slots__ = ("_content", "_context", "_held", "_is_filled", "_needs", "_root")

    context: ReadOnly[BaseContext] = ReadOnly("_context")

    _handle: GraphHandle

    def __init__(self, context: BaseContext) -> None:
        self._context: BaseContext = context
        self._is_filled = False
        self._content = Content()
        # The objects that the driver holds for the graph since the last `_retain_needs`.
        self._needs = self._content.snapshot()
        self._held: CUuserObject | None = None
        # For a body, the graph that has the node.
        self._root: BaseGraph | None = None
        self._mark_closed()

    def __repr__(self) -> str:
        handle = "of nothing" if super().closed else f"{int(self.handle):#x}"
        return f"<Graph {handle} on device {self._context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return (
            "the graph holds nothing: its capture has not ended, or it was closed\n"
            "  to add nodes beside captured ones, capture parts into Context.new_graph()"
        )

    @property
    def closed(self) -> bool:
        """True if it was made and then closed."""
        return self._is_filled and super().closed

    @property
    def handle(self) -> CUgraph:
        """The CUgraph.

        Raises:
            ClosedError: the capture has not ended, it failed, or the graph was closed.
        """
        return self._handle.raw

    @property
    def allocates(self) -> bool:
        """True if it allocates memory that it leaves to its user."""
        return bool(self._content.born)

    @property
    def node_count(self) -> int:
        """The number of nodes; queries the driver."""
        handle = self._handle
        code, _, count = handle.api.cuGraphGetNodes(handle.raw, 0)
        if code:
            raise failure(handle.api, code, "cuGraphGetNodes", "counting a graph's nodes")
        return count

    def close(self) -> None:
        """Release the graph; executables made of it stay usable. Idempotent."""
        super().close()
        self._content, self._needs = Content(), Content().snapshot()
        run_deferred()

    def _fill(self, handle: GraphHandle) -> None:
        """Take over the handle of a graph that the driver made."""
        self._own(handle)
        self._is_filled = True
        self._context._adopt(self)

    def _touch(self) -> None:
        """Record that the needs of the nodes have changed."""
        (self._root or self)._content.is_changed = True

    def _retain_needs(self) -> Needs:
        """Make the driver hold the nodes' needs for all that is made of the graph; return them."""
        root = self._root or self
        handle, content = root._handle, root._content
        raw = handle.raw
        if content.is_changed:
            needs, former = content.snapshot(), root._held
            content.is_changed = False
            try:
                root._held = needs.give_to(handle.api, raw)
            except BaseException:
                content.is_changed = True
                raise
            root._needs = needs
            if former is not None:
                # Executables that were made before have references of their own.
                (code,) = handle.api.cuGraphReleaseUserObject(raw, former, 1)
                _check(root, code, "cuGraphReleaseUserObject", "releasing objects of a graph")
        return root._needs


def _check(graph: BaseGraph, code: CUresult, call: str, doing: str) -> None:
    if code:
        raise failure(graph._handle.api, code, call, doing)


def require_graph(where: str, value: object) -> BaseGraph:
    """Return the value, which is a graph of cudadrv.

    Args:
        where: the name of the argument, for the error.
        value: the argument.
    """
    if isinstance(value, BaseGraph):
        return value
    raise border.wrong_type(where, value, "give a Graph")
