"""The processes on the GPU: `--ask` prints the driver's answers, `--launch` runs under ncu."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

import cudadrv

from .answers import Answer
from .resident_kernels import KERNELS, launches, loaded


def main() -> None:
    """Ask the driver about every kernel, or launch kernels."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--launch", nargs="*", default=[], metavar="KERNEL")
    given = parser.parse_args()
    context = cudadrv.cuda_context_for(0)
    if given.ask:
        _ask(context)
        return
    for name, launch in launches(context):
        if not given.launch or name in given.launch:
            launch()


def _ask(context: cudadrv.Context) -> None:
    module, said = loaded(context), []
    for each in KERNELS:
        kernel = module.kernel(each.name)
        shared = kernel.attributes.static_shared_bytes + each.dynamic
        blocks = kernel.max_active_blocks(each.block, each.dynamic)
        said.append(Answer(each.name, each.block, kernel.attributes.registers, shared, blocks))
    print(json.dumps([context.device.name, [asdict(each) for each in said]]))


if __name__ == "__main__":
    main()
