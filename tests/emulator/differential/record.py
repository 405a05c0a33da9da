"""Record what a GPU gives for the corpus: `python -m tests.emulator.differential.record [options]`.

Each source is compiled once, to a cubin with its PTX; the cubin runs, twice, which must give the
same bits; so must, but for approximate functions, the PTX compiled by the driver.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

import cudadrv
import ptx
from tests.emulator.differential.case import Case, Source
from tests.emulator.differential.comparison import compare
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.execution import digest_of_inputs, run
from tests.emulator.differential.recording import DATA, Bits, Recording, Result, path_of, results_of


def _version(pair: tuple[int, int]) -> str:
    return ".".join(str(part) for part in pair)


def _record(context: cudadrv.Context, source: Source) -> tuple[Recording, dict[str, list[Bits]]]:
    options = source.options.for_target(context.target)
    image = ptx.compile(source.text, options, name=f"{source.name}.cu")
    assert image.ptx is not None, "a cubin comes with its PTX"
    found: dict[str, list[Bits]] = {}
    results: dict[str, list[Result]] = {}
    with context.new_stream() as stream, context.load_module(image) as module:
        jit = context.load_module(image.ptx)
        for case in source.cases:
            found[case.name] = first = run(module, stream, case)
            results[case.name] = results_of(case, first)
            _check_alike(source, case, "runs twice", first, run(module, stream, case))
            comparison = compare(case, results[case.name], run(jit, stream, case))
            for problem in comparison.problems:
                print(f"{source.name}/{case.name}: the driver's code differs: {problem}")
        jit.close()
    recording = Recording(
        source=source.digest,
        gpu=context.device.name,
        driver=_version(cudadrv.driver_version()),
        nvrtc=_version(ptx.nvrtc_version()),
        target=image.target.real,
        ptx=image.ptx,
        results=results,
        seeds={case.name: case.seed for case in source.cases},
        inputs={case.name: digest_of_inputs(case) for case in source.cases},
    )
    return recording, found


def _check_alike(
    source: Source, case: Case, what: str, first: list[Bits], second: list[Bits]
) -> None:
    for one, other in zip(first, second, strict=True):
        if not np.array_equal(one, other):
            print(f"{source.name}/{case.name}: {what} and gives other bits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=DATA, help="the folder of the recordings")
    parser.add_argument("--whole", type=Path, help="a file for all bits, to look into mismatches")
    parser.add_argument("--only", nargs="*", help="names of sources")
    arguments = parser.parse_args()
    os.environ.setdefault("CUDADRV_DRIVER", "cuda")
    context = cudadrv.cuda_context_for(0)
    arguments.to.mkdir(parents=True, exist_ok=True)
    everything: dict[str, Bits] = {}
    for source in sources():
        if arguments.only and source.name not in arguments.only:
            continue
        start = time.perf_counter()
        recording, found = _record(context, source)
        path = arguments.to / path_of(source).name
        recording.save(path)
        for name, arrays in found.items():
            everything |= {f"{source.name}/{name}/{k}": bits for k, bits in enumerate(arrays)}
        seconds = time.perf_counter() - start
        size = path.stat().st_size
        print(f"{source.name}: {len(source.cases)} cases, {size} bytes, {seconds:.1f} s")
    print(f"{context.device.name}, driver {_version(cudadrv.driver_version())}")
    if arguments.whole:
        with arguments.whole.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **everything)


if __name__ == "__main__":
    main()
