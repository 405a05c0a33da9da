"""Graphs: captured or built, and replayed at the cost of one call."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .executable import (
        GraphExec as GraphExec,
    )
    from .graph import (
        ConditionalNode as ConditionalNode,
        DotDetail as DotDetail,
        Graph as Graph,
        GraphCondition as GraphCondition,
    )
    from .node import (
        GraphNode as GraphNode,
        NodeKind as NodeKind,
    )
    from .node_kinds import (
        AllocNode as AllocNode,
        CopyNode as CopyNode,
        EventNode as EventNode,
        FillNode as FillNode,
        HostNode as HostNode,
        KernelNode as KernelNode,
    )
else:
    _NAMES = {
        "executable": "GraphExec",
        "graph": "ConditionalNode DotDetail Graph GraphCondition",
        "node": "GraphNode NodeKind",
        "node_kinds": "AllocNode CopyNode EventNode FillNode HostNode KernelNode",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
