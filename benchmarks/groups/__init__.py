"""The groups of measurements, one a file; each has `run(setting)`, which gives rows."""

from __future__ import annotations

from typing import Final

# By name in the order of the table: the module. "import" is no name for one.
MODULES: Final = {
    "launch": "launch",
    "operations": "operations",
    "threads": "threads",
    "foreign": "foreign",
    "graph": "graph",
    "allocation": "allocation",
    "copies": "copies",
    "batches": "batches",
    "exchange": "exchange",
    "scatter": "scatter",
    "tracing": "tracing",
    "import": "importing",
}
NAMES: Final = tuple(MODULES)
