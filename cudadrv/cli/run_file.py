"""``python -m cudadrv run``: run one kernel of a CUDA file, with arrays from and to .npy files."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

import ptx
from ptx.ordinary_files import opener

from ..driver.device import list_devices
from ..launch.config import LaunchConfig
from ..memory.array import DeviceArray
from ..stream import Context, Stream, cuda_context_for
from .command_line import Commands, add_command, positive
from .compile import FAULTS, add_compile_options, failed, requests_of
from .driver_choice import use_emulator_without_gpu
from .output import print_text

_ARRAY: Final = re.compile(r"(\w+)\[(\d+(?:,\d+)*)\]")
_ARGUMENT_HELP: Final = (
    "in the order of the parameters: a number (5, 2.5, float32:2.5), an array (IN.npy, "
    "float32[64,64] for zeros), or OUT.npy=ARRAY to write it to a file after the kernel has run"
)
Host: TypeAlias = npt.NDArray[np.generic]
Number: TypeAlias = int | float | np.generic
Extents: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """An argument of the command line.

    Attributes:
        value: a number, or the array to copy to the device.
        out: where the array goes afterwards.
    """

    value: Number | Host
    out: Path | None = None


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "run",
        "Run a kernel of a CUDA file on arrays of .npy files.",
        example="twice.cu --grid 1 --block 32 --arg out.npy=float32[32] --arg 32",
        statuses={
            "0": "the kernel ran",
            "1": "the file, an argument or the launch is wrong",
            "2": "the command line is wrong",
        },
    )
    add_compile_options(parser)
    parser.add_argument("--kernel", metavar="NAME", help="default: the only kernel")
    parser.add_argument("--grid", type=extents, default=(1,), metavar="X[,Y[,Z]]", help="blocks")
    parser.add_argument("--block", type=extents, default=(1,), metavar="X[,Y[,Z]]", help="threads")
    parser.add_argument(
        "--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory"
    )
    parser.add_argument("--device", type=int, default=0, metavar="ORDINAL", help="default: 0")
    parser.add_argument("--repeat", type=positive, default=1, metavar="N", help="launches")
    parser.add_argument(
        "--arg", dest="arguments", action="append", default=[], metavar="ARG", help=_ARGUMENT_HELP
    )
    parser.set_defaults(run=_run)


def extents(text: str) -> Extents:
    """Return one to three integers of 1 or more.

    Raises:
        ArgumentTypeError: the text is none.
    """
    parts = tuple(map(positive, text.split(",")))
    if len(parts) > 3:
        raise argparse.ArgumentTypeError(f"{text!r} has more than three numbers")
    return parts


def _run(options: argparse.Namespace) -> int:
    try:
        arguments = [parse_argument(text) for text in options.arguments]
        use_emulator_without_gpu("run")
        count = len(list_devices())
        if not 0 <= options.device < count:
            raise ValueError(f"there is no device {options.device}: give 0 to {count - 1}")
        context = cuda_context_for(options.device)
        options.target = options.target or [context.target.arch]
        if "<" in (options.kernel or "") and options.kernel not in options.name:
            options.name.append(options.kernel)  # a template's instance must be requested
        (request,) = requests_of(options)
        _launch(options, context, ptx.default_cache().get_or_build(request), arguments)
    except FAULTS as error:
        return failed(options.file, error)
    return 0


def _launch(
    options: argparse.Namespace, context: Context, image: ptx.Image, arguments: list[Given]
) -> None:
    names = [*image.lowered_names, *(n for n in image.signatures if n not in _lowered(image))]
    name = options.kernel or (names[0] if len(names) == 1 else None)
    if name is None:
        raise ValueError(f"choose a kernel with --kernel: {', '.join(names) or 'there is none'}")
    module = context.load_module(image)
    config = LaunchConfig(options.grid, options.block, shared_bytes=options.shared)
    with context.new_stream() as stream:
        on_device = [_to_device(stream, argument.value) for argument in arguments]
        kernel = module.kernel(name)
        for _ in range(options.repeat):
            kernel.launch(stream, config, *on_device)
        stream.synchronize()
        for argument, passed in zip(arguments, on_device, strict=True):
            if argument.out is not None and isinstance(passed, DeviceArray):
                with open(argument.out, "wb", opener=opener) as file:
                    np.save(file, stream.to_host(passed))
                print_text(f"{argument.out}: {passed.dtype}{list(passed.shape)}")


def _lowered(image: ptx.Image) -> set[str]:
    return set(image.lowered_names.values())


def _to_device(stream: Stream, value: Number | Host) -> Number | DeviceArray[np.generic]:
    return stream.to_device(value) if isinstance(value, np.ndarray) else value


def parse_argument(text: str) -> Given:
    """Return the argument that an --arg describes.

    Raises:
        ValueError: it is none of the forms.
        OSError: its file cannot be read.
    """
    out, equals, description = text.rpartition("=")
    if equals and not out.endswith(".npy"):
        raise ValueError(f"--arg {text}: give the .npy file to write before =")
    value = _value(description, text)
    if equals and not isinstance(value, np.ndarray):
        raise ValueError(f"--arg {text}: only an array can be written to a file")
    return Given(value, Path(out) if equals else None)


def _value(description: str, text: str) -> Number | Host:
    array = _ARRAY.fullmatch(description)
    if description.endswith(".npy"):
        with open(description, "rb", opener=opener) as file:
            loaded: Host = np.load(file, allow_pickle=False)
        return np.ascontiguousarray(loaded)
    try:
        if array:
            return np.zeros(tuple(map(int, array[2].split(","))), np.dtype(array[1]))
        kind, colon, number = description.rpartition(":")
        if colon:
            return _scalar(np.dtype(kind), _number(number))
        return _number(description)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"--arg {text}: {error}\n  give it {_ARGUMENT_HELP}") from None


def _scalar(dtype: np.dtype[Any], number: int | float) -> np.generic:
    # NumPy 1 changes integers that do not fit.
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        raise OverflowError(f"{number} does not fit in {dtype}")
    scalar: np.generic = dtype.type(number)
    return scalar


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)
