"""How many blocks a multiprocessor holds: our calculation, the driver's, and Nsight Compute's.

`python -m campaigns.resident`, on a machine with a GPU and ncu, asks the driver about every
kernel, launches it under ncu, and calculates with the registers that the machine code has, for the
emulated device of the GPU's name. The exit status is 1 if an answer differs or is missing.
`--record h200` keeps what was measured for the tests. `--ask` and `--launch` are what runs on the
GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import cudadrv
from campaigns.counted.nsight import SAFE, measure
from campaigns.resident.answers import LIMITS, Answer, record
from campaigns.resident.resident_kernels import KERNELS, launches, loaded

ROOM = "campaigns.resident"
_WARPS = "sm__maximum_warps_avg_per_active_cycle"
_REGISTERS = "launch__registers_per_thread"


def _ask() -> None:
    """Print what the driver says of each kernel."""
    context = cudadrv.cuda_context_for(0)
    module, said = loaded(context), []
    for each in KERNELS:
        kernel = module.kernel(each.name)
        shared = kernel.attributes.static_shared_bytes + each.dynamic
        blocks = kernel.max_active_blocks(each.block, each.dynamic)
        said.append(Answer(each.name, each.block, kernel.attributes.registers, shared, blocks))
    print(json.dumps([context.device.name, [asdict(each) for each in said]]))


def _asked() -> tuple[str, list[Answer]]:
    done = subprocess.run(
        [sys.executable, "-m", ROOM, "--ask"], env={**os.environ, "CUDADRV_DRIVER": "cuda"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the driver could not be asked: {done.stderr[-2000:]}")
    device, answers = json.loads(done.stdout.splitlines()[-1])
    return device, [Answer(**each) for each in answers]


def main() -> int:
    """Ask, measure, calculate, print."""
    parser = argparse.ArgumentParser(prog=f"python -m {ROOM}", description=__doc__)
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--launch", nargs="*", metavar="KERNEL")
    parser.add_argument("--record", metavar="DEVICE")
    given = parser.parse_args()
    if given.ask:
        _ask()
        return 0
    if given.launch is not None:
        for name, launch in launches(cudadrv.cuda_context_for(0)):
            if not given.launch or name in given.launch:
                launch()
        return 0
    device, asked = _asked()
    measure(SAFE, [KERNELS[0].name], ROOM)
    metrics = [_REGISTERS, _WARPS, *LIMITS]
    found = measure(metrics, [each.name for each in KERNELS], ROOM)
    print(f"{device}\n{'kernel':28}{'registers':>10}{'shared':>8}{'ours':>6}{'driver':>8}"
          f"{'ncu: blocks':>13}{'warps':>7}  limits by {', '.join(LIMITS.values())}")  # fmt: skip
    wrong, answers = 0, []
    for each in asked:
        values = found.get(each.name, {})
        limits = {short: values[metric] for metric, short in LIMITS.items() if metric in values}
        answer = replace(each, limits=limits, warps=values.get(_WARPS, 0))
        answers.append(answer)
        least = min(limits.values(), default=0)
        ours = answer.calculated(device)
        warps = ours * -(-answer.block // 32)
        is_equal = (least, answer.warps) == (ours, warps) and answer.blocks == ours
        wrong += not is_equal
        print(f"{answer.name:28}{answer.registers:>10}{answer.shared:>8}{ours:>6}"
              f"{answer.blocks:>8}{least:>13}{answer.warps:>7}  {[*limits.values()]} "
              f"registers by ncu {values.get(_REGISTERS, '-')}"
              f"{'' if is_equal else '  DIFFERENT'}", flush=True)  # fmt: skip
    if given.record:
        record(given.record, device, answers)
    print(f"{len(asked) - wrong} of {len(asked)} kernels: all three say the same")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
