"""The statements that `python -m benchmarks --only operations` times."""

from __future__ import annotations

import cudadrv
from benchmarks.groups import operations
from cudadrv import emulator


def test_the_statements_of_all_operations_run() -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        names = dict(operations.operation_names(context, context.new_stream(), null=False))
        for operation in operations.offered():
            exec(operation.ours, names.copy())
            compile(operation.plain, operation.case, "exec")
