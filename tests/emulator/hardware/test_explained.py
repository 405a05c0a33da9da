"""Programs that an H200 runs otherwise are explained by what its assembler made of them.

`differing.npz` has the text of seven random programs, the first contents of three buffers, the
results of an H200 (driver 580), and the kinds of changes that explain the difference.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

import cudadrv
import ptx
from campaigns.hardware.assembled import KINDS, changed, changes
from campaigns.hardware.case import Bits
from campaigns.hardware.explained import explanation
from cudadrv import emulator

THREADS = 128
BYTES_OF_A_THREAD = (8, 32, 40)


def result(text: str, contents: Bits) -> Bits:
    """Run a program on the emulator; return its results."""
    places = [int(each) for each in np.cumsum((0, *BYTES_OF_A_THREAD)) * THREADS]
    with emulator.session(devices=[emulator.H200]):
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        inputs = stream.to_device(contents)
        cells = stream.zeros(16 * THREADS, np.uint8)
        found = stream.zeros(88 * THREADS, np.uint8)
        parts = [inputs[start:end] for start, end in pairwise(places)]
        kernel = context.load_module(ptx.Image.from_ptx(text)).kernel("K")
        config = cudadrv.LaunchConfig(1, THREADS)
        kernel.launch(stream, config, *parts, cells, found)
        return stream.to_host(found)


def test_each_program_is_explained_by_the_kinds_that_were_found() -> None:
    stored = np.load(Path(__file__).with_name("differing.npz"))
    found = []
    for text, contents, gpu in zip(
        map(str, stored["texts"]), stored["inputs"], stored["results"], strict=True
    ):

        def count(ptx: str, contents: Bits = contents, gpu: Bits = gpu) -> Counter[str]:
            wrong = result(ptx, contents).view("<u4") != gpu.view("<u4")
            return Counter({"": int(wrong.sum())}) if wrong.any() else Counter()

        assert count(text)
        each = explanation(text, count)
        found.append((", ".join(each.kinds), each.left))
    assert found == [(str(kinds), Counter()) for kinds in stored["kinds"]]
    assert {kind for kinds, _ in found for kind in kinds.split(", ")} == KINDS.keys() - {
        "max(x, x)"
    }


def test_a_wrong_value_has_no_explanation() -> None:
    stored = np.load(Path(__file__).with_name("differing.npz"))
    text, contents = str(stored["texts"][0]), stored["inputs"][0]
    gpu = stored["results"][0].view("<u4").copy()
    gpu[7] ^= 0x10

    def count(ptx: str) -> Counter[str]:
        return Counter({"": int((result(ptx, contents).view("<u4") != gpu).sum())})

    assert explanation(text, count).left == Counter({"": 1})


def test_a_program_without_such_statements_has_no_changes() -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry K()\n{\nret;\n}\n"
    assert changes(text) == []
    assert changed(text, []) == text
