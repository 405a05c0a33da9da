"""pytest run on the tests of a user's package, with the plugin."""

from __future__ import annotations

from typing import Final

import pytest

import cudadrv

KERNELS: Final = '''
import numpy as np

import cudadrv
import ptx

SOURCE = r"""
extern "C" __global__ void good(int* out) { out[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void bad(int* out) { out[1 << 28] = 1; }
extern "C" __global__ void racy(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
"""


def run(stream, name):
    context = stream.context
    options = ptx.CompileOptions(target=context.target, lineinfo=True)
    module = context.load_module(ptx.compile(SOURCE, options, name="kernels.cu"))
    out = stream.zeros(64, np.int32)
    module.kernel(name).launch(stream, cudadrv.LaunchConfig(1, 64), out)
    return stream.to_host(out)
'''
# Hypothesis would be loaded anew by each run, for seconds.
_PLUGIN: Final = ("-pcudadrv.testing", "-pno:cacheprovider", "-pno:hypothesispytest")


class Runs:
    """Runs of pytest in one folder."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def here(self, test: str, *options: str) -> pytest.RunResult:
        """Run tests in this process; on a GPU apart, as some break its context for the process."""
        if not cudadrv.list_devices()[0].is_emulated:
            return self.apart(test, *options)
        self.pytester.makepyfile(test_user=test)
        return self.pytester.runpytest_inprocess(*_PLUGIN, *options)

    def apart(self, test: str, *options: str) -> pytest.RunResult:
        """Run tests in a process of their own."""
        self.pytester.makepyfile(test_user=test)
        return self.pytester.runpytest_subprocess(*_PLUGIN, *options)
