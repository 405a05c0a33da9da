"""Graphs: captured or built, and replayed at the cost of one call."""

from .capture import Capture as Capture
from .graph import Graph as Graph, GraphExec as GraphExec
