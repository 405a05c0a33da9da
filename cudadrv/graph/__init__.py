"""Graphs: captured or built, and replayed at the cost of one call."""

from .capture import Capture as Capture
from .executable import GraphExec as GraphExec
from .graph import (
    ConditionalNode as ConditionalNode,
    Graph as Graph,
    GraphCondition as GraphCondition,
)
from .node import GraphNode as GraphNode, NodeKind as NodeKind
from .node_kinds import (
    AllocNode as AllocNode,
    CopyNode as CopyNode,
    EventNode as EventNode,
    FillNode as FillNode,
    HostNode as HostNode,
    KernelNode as KernelNode,
)
