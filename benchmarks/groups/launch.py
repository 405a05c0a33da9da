"""Launching kernels of 0, 1, 5 and 20 parameters, by every way there is."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import cudadrv
from cudadrv.launch.parameters import ParameterBlock

from .. import bare
from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "launch"
_THREADS: Final = 4
_LAUNCHES_A_THREAD: Final = 500
_SHAPES: Final = {"k0": (0, 0, 0), "k1": (1, 0, 0), "k5": (3, 1, 1), "k20": (10, 5, 5)}
_CONFIG: Final = cudadrv.LaunchConfig(GRID, BLOCK)


class ForeignArray:
    """Another library's array: no more than the interface."""

    def __init__(self, array: cudadrv.DeviceArray[Any]) -> None:
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": "<f4",
            "data": (array.ptr, False),
            "strides": None,
            "version": 3,
        }


def run(setting: Setting) -> list[Row]:
    """Every case of the group."""
    rows: list[Row] = []
    for name in _SHAPES:
        rows += _parameters(setting, name)
    return rows + _threads(setting)


def _arguments(setting: Setting, name: str) -> tuple[object, ...]:
    pointers, floats, ints = _SHAPES[name]
    arrays = tuple(setting.stream.empty(256, "f4") for _ in range(pointers))
    return (*arrays, *(1.5,) * floats, *range(100, 100 + ints))


def _names(setting: Setting, name: str) -> dict[str, object]:
    """The bare call's names: handles, the address of packed parameters, the function."""
    kernel = setting.kernels[name]
    return {
        **bare.launch_names(setting.stream),
        "f": kernel.handle,
        "kernel": kernel,
        "stream": setting.stream,
        "config": _CONFIG,
    }


def _parameters(setting: Setting, name: str) -> list[Row]:
    count = sum(_SHAPES[name])
    case = f"{count} parameter{'s' * (count != 1)}"
    args = _arguments(setting, name)
    kernel, stream = setting.kernels[name], setting.stream
    names = _names(setting, name)
    launcher = kernel.bind(stream, _CONFIG)
    prepared = launcher.prepare(*args)
    letters = [f"a{number}" for number in range(count)]
    names |= dict(zip(letters, args, strict=True))
    # The block stays alive with the prepared launch among the names.
    names |= {"launcher": launcher, "prepared": prepared, "params": prepared.block.address}
    given = ", ".join(letters)
    cases = [
        Case(bare.NAME, f"cuLaunchKernel(f, {GRID}, 1, 1, {BLOCK}, 1, 1, 0, s, params, 0)", names),
        Case("cudadrv Launcher", f"launcher({given})", names),
        Case("cudadrv PreparedLaunch", "prepared()", names),
        Case(
            "cudadrv Kernel.launch",
            f"kernel.launch({', '.join(['stream, config', *letters])})",
            names,
        ),
    ]
    failed: list[Row] = []
    if name == "k5":
        cases += _other_arguments(setting, names, args)
        peers, failed = setting.peer_cases(GROUP, case, "launch")
        cases += peers
    rounds = setting.rounds(60)
    return measure(GROUP, case, cases, repeats=200, rounds=rounds, settle=setting.settle) + failed


def _other_arguments(
    setting: Setting, names: dict[str, object], args: tuple[Any, ...]
) -> list[Case]:
    """The five parameters as other kinds of arguments, and other ways to launch them."""
    stream, kernel = setting.stream, setting.kernels["k5"]
    arrays = args[:3]
    kinds: dict[str, tuple[object, ...]] = {
        "numbers": (*(array.ptr for array in arrays), 1.5, 100),
        "buffers": (*(stream.alloc(array.nbytes) for array in arrays), 1.5, 100),
        "views": (*(array[1:] for array in arrays), 1.5, 100),
        "foreign arrays": (*map(ForeignArray, arrays), 1.5, 100),
    }
    cases = _by_hand(names, kinds["numbers"])
    for kind, values in kinds.items():
        launcher = kernel.bind(stream, _CONFIG)
        given = dict(zip("abcxn", values, strict=True))
        cases.append(
            Case(
                f"cudadrv Launcher, {kind}",
                "launcher(a, b, c, x, n)",
                {**given, "launcher": launcher},
            )
        )
    fresh = {**names, "LaunchConfig": cudadrv.LaunchConfig, "other": cudadrv.LaunchConfig(1, 32)}
    given_args = "a0, a1, a2, a3, a4"
    cases += [
        Case(
            "cudadrv Kernel.launch, new config",
            f"kernel.launch(stream, LaunchConfig({GRID}, {BLOCK}), {given_args})",
            fresh,
        ),
        Case(
            "cudadrv Kernel.launch, two configs in turn",
            f"kernel.launch(stream, config, {given_args});"
            f"kernel.launch(stream, other, {given_args})",
            fresh,
            per=2,
        ),
        Case("cudadrv prepare", f"launcher.prepare({given_args})", names, repeats=40),
    ]
    return cases


def _by_hand(names: dict[str, object], values: tuple[object, ...]) -> list[Case]:
    """What one would write for this kernel alone, and the other call that launches."""
    kernel = names["kernel"]
    assert isinstance(kernel, cudadrv.Kernel)
    block = ParameterBlock(kernel._packing.layout)
    function = bare.packed_launch(
        names, block.buffer, block.address, struct.Struct("=QQQfi"), (GRID, BLOCK)
    )
    given = {**dict(zip("abcxn", values, strict=True)), "launch": function, "keep": block}
    extended = {**names, "native": bare.launch_config(names, GRID, BLOCK)}
    return [
        Case("struct and cuLaunchKernel by hand", "launch(a, b, c, x, n)", given),
        Case("cuda.bindings cuLaunchKernelEx", "cuLaunchKernelEx(native, f, params, 0)", extended),
    ]


def _threads(setting: Setting) -> list[Row]:
    """Threads that launch at once, each on a stream of its own, on as many devices as there are."""
    devices = len(cudadrv.list_devices())
    ours, plain = [], []
    for number in range(_THREADS):
        other = _thread_setting(setting, number % devices)
        args = _arguments(other, "k5")
        launcher = other.kernels["k5"].bind(other.stream, _CONFIG)
        names = _names(other, "k5")
        prepared = launcher.prepare(*args)
        ours.append(_loop("launcher(*args)", {"launcher": launcher, "args": args}))
        call = f"cuLaunchKernel(f, {GRID}, 1, 1, {BLOCK}, 1, 1, 0, s, params, 0)"
        plain.append(_loop(call, {**names, "params": prepared.block.address, "keep": prepared}))
    per = _THREADS * _LAUNCHES_A_THREAD
    case = f"{_THREADS} threads, 5 parameters"
    with ThreadPoolExecutor(_THREADS) as crew:
        names = {"ours": ours, "plain": plain, "crew": crew}
        cases = [
            Case(
                bare.NAME,
                "for job in [crew.submit(f) for f in plain]: job.result()",
                names,
                per=per,
            ),
            Case(
                "cudadrv Launcher",
                "for job in [crew.submit(f) for f in ours]: job.result()",
                names,
                per=per,
            ),
        ]
        rounds = setting.rounds(20)
        return measure(GROUP, case, cases, repeats=1, rounds=rounds, settle=setting.settle)


def _thread_setting(setting: Setting, ordinal: int) -> Setting:
    context = cudadrv.cuda_context_for(ordinal)
    kernels = type(setting.kernels)(context, null=setting.null)
    return Setting(setting.null, setting.effort, False, context, context.new_stream(), kernels)


def _loop(statement: str, names: dict[str, object]) -> Any:
    """A function that runs a statement some hundred times."""
    scope = dict(names)
    exec(f"def loop():\n for _ in range({_LAUNCHES_A_THREAD}):\n  {statement}\n", scope)
    return scope["loop"]
