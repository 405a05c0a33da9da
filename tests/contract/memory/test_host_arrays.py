"""What the driver is asked about host arrays, and what becomes of a refusal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
from cudadrv import Stream, emulator
from cudadrv.errors import IllegalAddressError
from cudadrv.memory.staging import LEAST_STAGED_BYTES
from cudadrv.texture import CudaArray
from tests.noted_calls import failed_calls

_LARGE = LEAST_STAGED_BYTES


def upload(stream: Stream, nbytes: int) -> None:
    stream.to_device(np.ones(nbytes, "u1"))


def download(stream: Stream, nbytes: int) -> None:
    stream.to_host(stream.zeros(nbytes, "u1"))


def download_without_waiting(stream: Stream, nbytes: int) -> None:
    stream.copy(np.ones(nbytes, "u1"), stream.zeros(nbytes, "u1"), wait=False)


def upload_an_image(stream: Stream, nbytes: int) -> None:
    CudaArray(stream.context, 9, "f4").copy_from(stream, np.ones(9, "f4"))


def download_an_image_without_waiting(stream: Stream, nbytes: int) -> None:
    CudaArray(stream.context, 9, "f4").copy_to(stream, np.ones(9, "f4"), wait=False)


COPIES: list[tuple[Callable[[Stream, int], None], int]] = [
    (upload, 64 << 10),
    (upload, _LARGE),
    (download, _LARGE),
    (download_without_waiting, 64),
    (download_without_waiting, _LARGE),
    (upload_an_image, 9),
    (download_an_image_without_waiting, 9),
]


@pytest.mark.parametrize(("copy", "nbytes"), COPIES)
def test_a_copy_of_an_ordinary_array_makes_no_call_that_fails(
    copy: Callable[[Stream, int], None], nbytes: int
) -> None:
    """A checker of the driver's calls reports each one that fails."""
    with emulator.session(), failed_calls() as failed:
        copy(cudadrv.cuda_context_for(0).new_stream(), nbytes)
    assert failed == []


@pytest.mark.parametrize(("copy", "nbytes"), COPIES)
def test_an_error_of_querying_a_host_array_is_reported(
    copy: Callable[[Stream, int], None], nbytes: int
) -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        with (
            machine.fail("cuPointerGetAttributes", with_=700),
            pytest.raises(IllegalAddressError, match="querying the memory at 0x") as caught,
        ):
            copy(stream, nbytes)
        assert caught.value.call == "cuPointerGetAttributes"


def test_a_driver_that_wants_a_context_for_the_question_gets_the_streams() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        host = cudadrv.pinned_empty(64 << 10, "u1")
        with machine.fail("cuPointerGetAttributes", with_=201) as fault:
            upload_started = stream.to_device(host)
            assert fault.calls == 2
        with machine.fail("cuPointerGetAttributes", with_=201, times=None):
            stream.copy(upload_started, np.ones(64 << 10, "u1"))
        assert (stream.to_host(upload_started) == 1).all()
