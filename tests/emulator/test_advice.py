"""What findings advise: the cause first, and one finding for one cause."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig, Stream, emulator
from cudadrv.emulator.checks import CheckName
from cudadrv.emulator.timeline.schedule import OrderName

Arguments: TypeAlias = Callable[[Stream], Sequence[object]]
OVERLAP: Final = "overlap by mistake?"
INDEX: Final = "do two threads compute one index by mistake?"
ATOMIC: Final = "an atomic operation, such as atomicAdd()"


INDEXED: Final = "#define i (int)(blockIdx.x * blockDim.x + threadIdx.x)\n"
CONFIG: Final = LaunchConfig(2, 64)


def found(
    body: str,
    parameters: str,
    arguments: Arguments,
    checks: Sequence[CheckName],
    config: LaunchConfig = CONFIG,
) -> list[str]:
    """The findings of one launch, and the error that ended it."""
    texts: list[str] = []
    with emulator.session(check=checks, raise_findings=False) as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        source = f'{INDEXED}extern "C" __global__ void k({parameters}) {{ {body} }}'
        kernel = stream.context.compile(source).kernel("k")
        try:
            kernel.launch(stream, config, *arguments(stream))
            stream.synchronize()
        except cudadrv.CudaError as error:
            texts.append(str(error))
    return [*texts, *map(str, machine.findings)]


def twice(stream: Stream) -> Sequence[object]:
    x = stream.zeros(130, "f4")
    return x, x


def parts(stream: Stream) -> Sequence[object]:
    x = stream.zeros(130, "f4")
    return x[1:], x[:-1]


def apart(stream: Stream) -> Sequence[object]:
    return stream.zeros(130, "f4"), stream.zeros(130, "f4")


def one(stream: Stream) -> Sequence[object]:
    return (stream.zeros(300, "f4"),)


IN_OUT: Final = "float* y, const float* x"
RESTRICTED: Final = "float* __restrict__ y, const float* __restrict__ x"
RACES: Final[Sequence[tuple[str, str, Arguments, str]]] = (
    # Parameters that overlap.
    ("y[i] = x[i + 1];", IN_OUT, twice, f"do arguments 0 and 1 {OVERLAP}"),
    ("y[i] = x[i + 1];", RESTRICTED, twice, f"do arguments 0 and 1 {OVERLAP}"),
    ("y[i] = x[i];", IN_OUT, parts, f"do arguments 0 and 1 {OVERLAP}"),
    ("y[i] = x[127 - i];", IN_OUT, twice, f"do arguments 0 and 1 {OVERLAP}"),
    ("if (i) y[i] = x[i - 1] + x[i + 1];", IN_OUT, twice, f"do arguments 0 and 1 {OVERLAP}"),
    ("y[i] = 1; x[127 - i] = 2;", "float* y, float* x", twice, f"do arguments 0 and 1 {OVERLAP}"),
    ("y[i] = x[i + 1];", IN_OUT, apart, ""),
    ("y[i] = x[i];", IN_OUT, twice, ""),
    # Two threads with one index.
    ("x[i / 2] = i;", "float* x", one, INDEX),
    ("x[threadIdx.x] = blockIdx.x;", "float* x", one, INDEX),
    ("x[blockIdx.x * 32 + threadIdx.x] = i;", "float* x", one, INDEX),
    ("x[2 * i] = i; x[2 * i + 2] = -i;", "float* x", one, INDEX),
    ("x[i % 8] += 1;", "float* x", one, f"{INDEX} Else {ATOMIC}"),
    ("__shared__ int t[64]; t[threadIdx.x / 2] = i; x[i] = t[threadIdx.x / 2];", "float* x", one,
     INDEX),
    # A missing barrier, and nothing else.
    ("__shared__ int t[64]; t[threadIdx.x] = i; x[i] = t[63 - threadIdx.x];", "float* x", one,
     "orders the two: __syncthreads() between them"),
    ("x[i] = i; x[i + 130] = x[127 - i];", "float* x", one, "orders the two: two launches"),
    ("__shared__ int n; n = i; __syncthreads(); x[i] = n;", "float* x", one,
     "orders the two: an atomic operation"),
    ("if (threadIdx.x < 2) x[0] = i; else x[i] = 2;", "float* x", one, INDEX),
    ("atomicAdd(x, 1); x[0] = 2;", "float* x", one, "orders the two: "),
)  # fmt: skip


@pytest.mark.slow
def test_a_race_requests_another_cause_before_it_advises_synchronisation() -> None:
    wrong = []
    for body, parameters, arguments, expected in RACES:
        texts = found(body, parameters, arguments, ("race",))
        first = texts[0].split("\n")[-1] if texts else ""
        questions = [text for text in (OVERLAP, INDEX) if text in first]
        wanted = [text for text in (OVERLAP, INDEX) if text in expected]
        if bool(texts) != bool(expected) or expected not in first or questions != wanted:
            wrong.append((body, expected, texts))
    assert wrong == []


BITS: Final = {"char": 1, "short": 2, "float": 4, "double": 8, "float4": 16}
LIMITS: Final = (-(2**31), 2**31, 2**32)
OF_BOUNDS: Final[tuple[CheckName, ...]] = ("bounds",)
NONE: Final[tuple[CheckName, ...]] = ()


@pytest.mark.slow
def test_an_index_at_a_limit_of_32_bits_requests_overflow_and_another_does_not() -> None:
    wrong = []
    indices = [*LIMITS, -(2**31) + 5, 2**32 - 1, 3 * 2**31, 2**30, 12345678901, 300, -1]
    for (name, nbytes), index in itertools.product(BITS.items(), indices):

        def arguments(stream: Stream, nbytes: int = nbytes, index: int = index) -> Sequence[object]:
            return stream.zeros(64 * nbytes, "u1").buffer, index

        expected = min(abs(index - limit) for limit in LIMITS) < 100
        for checks in (OF_BOUNDS, NONE):
            text = found(
                "x[n] = x[0];", f"{name}* x, long long n", arguments, checks, LaunchConfig(1, 1)
            )[0]
            match = re.search(r"does the index (-?\d+) overflow", text)
            shown = None if match is None else int(match[1])
            if "out-of-bounds write" not in text or shown != (index if expected else None):
                wrong.append((name, index, checks, text))
    assert wrong == []


def test_an_int_that_wraps_requests_overflow() -> None:
    for body in ("int n = m * 65536; x[n] = 1;", "unsigned n = m; x[n - 32769] = 1;"):
        for text in found(body, "float* x, int m", lambda s: (*one(s), 32768), ("bounds",)):
            assert "overflow 32 bits? Compute it in 64 bits, as size_t" in text


# One finding for one cause: random programs of several streams.

STREAMS: Final = 3
ARRAYS: Final = 2


@dataclass(frozen=True)
class Step:
    """A kernel on a stream: it reads or writes an array, after steps of other streams."""

    stream: int
    array: int
    writes: bool
    waits: frozenset[int]


def random_program(numbers: random.Random, count: int) -> list[Step]:
    steps: list[Step] = []
    for number in range(count):
        waits = {earlier for earlier in range(number) if numbers.random() < 0.15}
        steps.append(
            Step(
                numbers.randrange(STREAMS),
                numbers.randrange(ARRAYS),
                numbers.random() < 0.5,
                frozenset(waits),
            )
        )
    return steps


def source_of(steps: Sequence[Step]) -> str:
    return "".join(
        f'extern "C" __global__ void k{number}(float* x, float* y) '
        f"{{ {'x[0] = y[0] + 1' if step.writes else 'y[1] = x[0] + 1'}; }}\n"
        for number, step in enumerate(steps)
    )


def reported_pairs(
    steps: Sequence[Step], order: OrderName, seed: int | None
) -> set[tuple[int, int]]:
    """The pairs of steps that findings name, in the order of their calls."""
    with emulator.session(
        check=("race", "init"), order=order, seed=seed, raise_findings=False
    ) as machine:
        context = cudadrv.cuda_context_for(0)
        module = context.compile(source_of(steps))
        streams = [context.new_stream() for _ in range(STREAMS)]
        arrays: list[DeviceArray[Any]] = [
            context.default_stream.zeros(2, "f4") for _ in range(ARRAYS)
        ]
        own: list[DeviceArray[Any]] = [context.default_stream.zeros(2, "f4") for _ in steps]
        context.synchronize()
        events: list[cudadrv.Event] = []
        for number, step in enumerate(steps):
            stream = streams[step.stream]
            with stream.unordered():
                for earlier in step.waits:
                    stream.wait(events[earlier])
                module.kernel(f"k{number}").launch(
                    stream, LaunchConfig(1, 1), arrays[step.array], own[number]
                )
            events.append(stream.record())
        context.synchronize()
    pairs = set()
    for finding in machine.findings:
        first, second = (int(place.where.kernel[1:]) for place in finding.places if place.where)
        pairs.add((min(first, second), max(first, second)))
    return pairs


def unordered_pairs(steps: Sequence[Step]) -> set[tuple[int, int]]:
    """The model: pairs of steps that conflict, and that nothing orders."""
    after: list[set[int]] = []
    for number, step in enumerate(steps):
        before = set(step.waits)
        before |= {earlier for earlier in range(number) if steps[earlier].stream == step.stream}
        after.append(before.union(*(after[earlier] for earlier in before)))
    return {
        (earlier, number)
        for number, step in enumerate(steps)
        for earlier in range(number)
        if earlier not in after[number]
        and steps[earlier].array == step.array
        and (step.writes or steps[earlier].writes)
    }


def implies(steps: Sequence[Step], order: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one order of two steps also orders two others."""
    same = [steps[a].stream == steps[b].stream for a, b in zip(order, other, strict=True)]
    return order != other and all(same) and order[0] >= other[0] and order[1] <= other[1]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", "late", "random"])
def test_the_reported_orders_are_the_fewest_that_imply_all_missing_ones(order: OrderName) -> None:
    numbers, reported = random.Random(7), 0
    for _ in range(9):
        steps = random_program(numbers, numbers.choice((4, 7, 10)))
        seed = numbers.randrange(99) if order == "random" else None
        missing = unordered_pairs(steps)
        pairs = reported_pairs(steps, order, seed)
        fewest = {
            pair for pair in missing if not any(implies(steps, other, pair) for other in missing)
        }
        assert pairs == fewest, steps
        mended = [
            Step(
                step.stream,
                step.array,
                step.writes,
                step.waits | {first for first, second in pairs if second == number},
            )
            for number, step in enumerate(steps)
        ]
        assert reported_pairs(mended, order, seed) == set()
        reported += len(pairs)
    assert reported > 10


def test_a_read_that_comes_too_early_is_one_finding_the_race() -> None:
    for order in ("immediate", "late"):
        with emulator.session(check=("race", "init"), order=order, raise_findings=False) as machine:
            context = cudadrv.cuda_context_for(0)
            module = context.compile(
                source_of([Step(0, 0, True, frozenset())] * 1 + [Step(1, 0, False, frozenset())])
            )
            a, b = context.new_stream(), context.new_stream()
            x, y, z = a.empty(2, "f4"), a.zeros(2, "f4"), b.zeros(2, "f4")
            module.kernel("k0").launch(a, LaunchConfig(1, 1), x, y)
            with b.unordered():
                module.kernel("k1").launch(b, LaunchConfig(1, 1), x, z)
            context.synchronize()
        (finding,) = machine.findings
        assert finding.check == "race"
        assert {place.where.kernel for place in finding.places if place.where} == {"k0", "k1"}


def test_a_read_of_memory_that_nothing_writes_stays_a_finding_beside_a_race() -> None:
    with emulator.session(check=("race", "init"), order="late", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        module = context.compile(source_of([Step(0, 0, False, frozenset())]))
        a, b = context.new_stream(), context.new_stream()
        x, z = a.empty(2, "f4"), b.zeros(2, "f4")
        with b.unordered():
            module.kernel("k0").launch(b, LaunchConfig(1, 1), x, z)
        context.synchronize()
    assert sorted(finding.check for finding in machine.findings) == ["init", "race"]
