"""Integers of 128 bits as NVRTC makes them, against Python's."""

from __future__ import annotations

import random

import numpy as np
import pytest

import ptx
from tests.emulator.engine.kernel_runner import KernelRunner

SOURCE = """
extern "C" __global__ void wide(const __int128* x, const __int128* y, __int128* out)
{
    int i = threadIdx.x;
    unsigned __int128 p = x[i], q = y[i];
    out[4 * i] = x[i] / y[i];
    out[4 * i + 1] = x[i] % y[i];
    out[4 * i + 2] = p / q;
    out[4 * i + 3] = p % q;
}
"""
COUNT = 256
FULL = 1 << 128


def _pairs() -> list[tuple[int, int]]:
    """Of all lengths and signs, so that a quotient has any number of digits."""
    source = random.Random(128)

    def number() -> int:
        return (source.getrandbits(source.randint(1, 127)) or 1) * source.choice((1, -1))

    return [(number(), number()) for _ in range(COUNT)]


def _halves(numbers: list[int]) -> np.ndarray:
    return np.array([[n % (1 << 64), n % FULL >> 64] for n in numbers], np.uint64)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["compute_75", "compute_90", "compute_100"])
def test_quotients_and_rests_of_128_bits(target: str) -> None:
    options = ptx.CompileOptions(target=ptx.Target.ptx(target), extra=("--device-int128",))
    text = ptx.compile(SOURCE, options).ptx
    assert text is not None
    runner = KernelRunner(text)
    pairs = _pairs()
    given = [runner.put(_halves([pair[k] for pair in pairs])) for k in (0, 1)]
    out = runner.put(np.zeros((4 * COUNT, 2), np.uint64))
    runner.launch("wide", 1, COUNT, *given, out)
    words = runner.get(out, 8 * COUNT, np.uint64).tolist()
    found = [low | high << 64 for low, high in zip(words[::2], words[1::2], strict=True)]
    for k, (x, y) in enumerate(pairs):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        unsigned = divmod(x % FULL, y % FULL)
        expected = [quotient % FULL, (x - quotient * y) % FULL, *unsigned]
        assert found[4 * k : 4 * k + 4] == expected, (x, y)
