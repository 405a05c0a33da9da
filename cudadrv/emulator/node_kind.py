"""Kinds of operations and of nodes of graphs."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns

Run = Callable[[], "Turns | None"]
"""The function of an operation: runs at once, or turn by turn if it returns turns."""


class NodeKind(Enum):
    """The kind of a node of a graph."""

    KERNEL = "kernel"
    COPY = "memcpy"
    SET = "memset"
    HOST = "host function"
    CHILD = "child graph"
    EMPTY = "empty node"
    WAIT = "event wait"
    RECORD = "event record"
    ALLOC = "memory allocation"
    FREE = "memory free"
    CONDITIONAL = "conditional node"
    # Not nodes: further kinds of operations in the queues of streams.
    LAUNCH = "graph launch"
