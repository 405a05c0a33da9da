"""A program on the emulator and on the reference; and a smaller one that still fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from campaigns.random_ptx.maker import ProgramMaker
from campaigns.random_ptx.programs import ROW, TABLE, TALLIES, Node, Program
from campaigns.random_ptx.registers import BYTES, COUNTS
from ptx.emulate.threads.limits import FewThreads, Limits
from tests.emulator.engine.few_threads import EVERY_THREAD
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.reference.interpreter import Interpreter

Bytes = NDArray[np.uint8]
_MANY = 16  # blocks
_INTERESTING = np.array(
    [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF],
    dtype=np.uint32,
)


def program_of(seed: int) -> Program:
    """The program that a seed stands for."""
    return ProgramMaker(random.Random(seed)).make()


def difference(program: Program, seed: int) -> str:
    """What differs between emulator and reference, in words; "" where nothing does.

    Of a large grid the reference runs some blocks, and what blocks have in common is left out.
    """
    text = program.text()
    given = given_memory(program, seed)
    rng = random.Random(seed + 1)
    chunks = rng.choice((32, 96, 65536) if program.grid < _MANY else (2048, 6000, 65536))
    few = EVERY_THREAD if seed % 2 else FewThreads()  # threads one by one, or as is usual
    limits = Limits(chunk_threads=chunks, share_from=1, few_threads=few)
    runner = KernelRunner(text, 1 << 25)
    places = {name: runner.put(data) for name, data in given.items()}
    for _ in range(rng.choice((1, 1, 2))):
        # A second launch meets what the first one left in the caches.
        for name, data in given.items():
            runner.set(places[name], data)
        runner.launch("k", program.grid, program.block, *places.values(), limits=limits)
    pieces = {places[name]: bytearray(data.tobytes()) for name, data in given.items()}
    blocks: Sequence[int] = range(program.grid)
    if program.grid >= _MANY:
        blocks = sorted({0, rng.randrange(program.grid), program.grid - 1})
    Interpreter(text, pieces).run("k", program.grid, program.block, places, blocks=blocks)
    nbytes = program.block * ROW
    for name in given if program.grid < _MANY else ("in", "out"):
        found = runner.get(places[name], given[name].size, np.uint8)
        wanted = np.frombuffer(bytes(pieces[places[name]]), dtype=np.uint8)
        wrong = np.nonzero(found != wanted)[0]
        if name in ("in", "out"):
            wrong = wrong[np.isin(wrong // nbytes, blocks)]
        if len(wrong):
            at = int(wrong[0])
            row = f" (thread {at // ROW}, byte {at % ROW})" if name in ("in", "out") else ""
            return f"{name} differs at byte {at}{row}: {found[at]:#x}, not {wanted[at]:#x}"
    return ""


def given_memory(program: Program, seed: int) -> dict[str, Bytes]:
    """What a program is given, by the names of its parameters."""
    rng = np.random.default_rng(seed)
    threads = program.grid * program.block
    words = rng.integers(0, 2**32, threads * ROW // 4, dtype=np.uint32)
    chosen = rng.random(len(words)) < 0.4
    words[chosen] = rng.choice(_INTERESTING, int(chosen.sum()))
    rows = words.view(np.uint8).reshape(threads, ROW)
    at = 0
    for bank, nbytes in BYTES.items():
        end = at + nbytes * COUNTS[bank]
        if bank in "fg":
            kind: type[np.floating[Any]] = np.float32 if bank == "f" else np.float64
            place = rows[:, at:end]
            given = _floats(kind, place.size // nbytes, rng).view(np.uint8).reshape(place.shape)
            place[:] = np.where(rng.random((threads, 1)) < 0.8, given, place)
        at = end
    return {
        "in": rows.reshape(-1),
        "table": rng.integers(0, 256, TABLE, dtype=np.uint8),
        "tallies": np.zeros(TALLIES, np.uint8),
        "out": np.zeros(threads * ROW, np.uint8),
    }


def _floats(
    kind: type[np.floating[Any]], count: int, rng: np.random.Generator
) -> NDArray[np.floating[Any]]:
    """Numbers near each other, few of whose bits are set, and special values among them."""
    digits = rng.choice((2, 8, 12, 24, 53), count)
    mantissa = rng.integers(-(2**53), 2**53, count) >> (53 - digits)
    exponent = rng.integers(-12, 13, count) - digits
    found: NDArray[np.floating[Any]] = np.ldexp(mantissa.astype(np.float64), exponent).astype(kind)
    info = np.finfo(kind)
    special = [0, np.inf, info.tiny, info.smallest_subnormal, info.tiny / 2, info.max]
    chosen = rng.random(count) < 0.15
    found[chosen] = rng.choice(np.array(special, kind), int(chosen.sum()))
    found[rng.random(count) < 0.5] *= kind(-1)
    # Whose payload a result takes can be seen only where they differ.
    nans = rng.random(count) < 0.1
    size = np.dtype(kind).itemsize
    bits = rng.integers(0, 256, (count, size), dtype=np.uint8).view(f"u{size}")[:, 0]
    infinity = np.array([np.inf], kind).view(bits.dtype)
    found.view(bits.dtype)[nans] = (bits | infinity)[nans]
    return found


def smaller(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that fails as well and from which nothing more can be left out."""
    found = True
    while found:
        found = False
        for candidate in _shorter(program):
            if fails(candidate):
                program, found = candidate, True
                break
    return program


def _shorter(program: Program) -> Iterator[Program]:
    if program.grid > 1:
        yield replace(program, grid=1)
    for nodes in _without_one(program.nodes):
        yield replace(program, nodes=nodes)
    for number, body in enumerate(program.functions):
        for nodes in _without_one(body):
            functions = list(program.functions)
            functions[number] = nodes
            yield replace(program, functions=functions)


def _without_one(nodes: list[Node]) -> Iterator[list[Node]]:
    """The nodes with one left out, or opened to its body, or made smaller inside."""
    for at, node in enumerate(nodes):
        before, behind = nodes[:at], nodes[at + 1 :]
        yield before + behind
        if node.body:
            yield [*before, *node.body, *behind]
            for body in _without_one(node.body):
                yield [*before, replace(node, body=body), *behind]
        if node.other:
            for other in _without_one(node.other):
                yield [*before, replace(node, other=other), *behind]
