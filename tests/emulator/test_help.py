"""`help` tells how a kernel is launched and what the emulator offers, names found late too."""

from __future__ import annotations

import inspect
import pydoc

import numpy as np

import cudadrv
import ptx
from cudadrv import emulator

SOURCE = (
    'extern "C" __global__ void fill(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }'
)


def told(thing: object) -> str:
    """What `help` shows."""
    return pydoc.plain(pydoc.render_doc(thing))


def test_help_on_a_launch_reports_its_arguments_before_and_after_the_first_one() -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        kernel = context.load_module(ptx.compile(SOURCE)).kernel("fill")
        stream, config = context.default_stream, cudadrv.LaunchConfig(1, 4)
        before = told(kernel.launch)
        kernel.launch(stream, config, stream.zeros(4, np.float32), 4)
        for shown in (before, told(kernel.launch)):
            assert "launch(stream" in shown
            for said in ("config: blocks", "pinned host arrays", "LaunchConfigError: the device"):
                assert said in shown
        assert "ClosedError: the stream" in told(kernel.bind(stream, config))


def test_help_on_the_emulator_reports_every_public_name() -> None:
    shown = told(emulator)
    for name in emulator.__all__:  # type: ignore[attr-defined]  # there at run time alone
        assert name in shown
        assert getattr(emulator, name) is not None
    for name in ("use", "session", "Emulator", "EmulatedDevice", "ScheduledFault"):
        documented = inspect.getdoc(getattr(emulator, name))
        assert documented is not None
        assert documented.splitlines()[0] in shown


def test_the_emulator_lists_what_it_has() -> None:
    public = {name for name in dir(emulator) if not name.startswith("_")}
    modules = {name for name in public if inspect.ismodule(getattr(emulator, name))}
    names = emulator.__all__  # type: ignore[attr-defined]  # there at run time alone
    assert set(names) == public - modules
