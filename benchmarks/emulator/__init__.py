"""How fast the emulator runs: `python -m benchmarks.emulator [target] [--json FILE]`.

Each kernel is compiled by NVRTC, launched until it is warm, then timed alone. The first table has
the best and the median of several launches beside the goal for two cores. The second has the same
kernels beside Numba's CUDA simulator where Numba is installed, at sizes that the simulator can do.
With `--orders` two more have launches in other orders (`ptx.emulate.LaunchOrder`), and contract
tests in the orders of a session.
"""
