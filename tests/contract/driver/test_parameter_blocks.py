"""What packs a launch's parameters puts each where the kernel reads it."""

from __future__ import annotations

import struct

import pytest

import ptx
from cudadrv.launch.arguments import KernelParameter, Kind
from cudadrv.launch.parameters import packer


def _parameters(*places: tuple[str, int, int]) -> list[KernelParameter]:
    """Parameters of a PTX type, size and offset each."""
    return [
        KernelParameter(
            "k", number, ptx.KernelParam(f"p{number}", kind, size, size, offset, None, 1)
        )
        for number, (kind, size, offset) in enumerate(places)
    ]


@pytest.mark.parametrize("address", [0, 1, 2**31, 2**63, 2**64 - 1])
def test_an_address_is_packed_as_64_bits(address: int) -> None:
    parameters = _parameters(("u32", 4, 0), ("u64", 8, 8))
    packed = packer(parameters, ("whole", "memory"), 16).pack(7, address)
    assert packed == struct.pack("=I4xQ", 7, address)


def test_parameters_at_unusual_places_are_packed_there() -> None:
    parameters = _parameters(("u8", 1, 0), ("u64", 8, 4), ("f32", 4, 13), ("u16", 2, 17))
    packed = packer(parameters, ("whole", "memory", "single", "signed"), 24).pack(9, 10, 1.5, -1)
    assert packed == struct.pack("=B3xQxfh5x", 9, 10, 1.5, -1)


@pytest.mark.parametrize(("ptx_type", "nbytes", "code"), [("u16", 2, "H"), ("u32", 4, "I")])
def test_a_number_at_an_odd_place_is_packed_there(ptx_type: str, nbytes: int, code: str) -> None:
    parameters = _parameters(("u8", 1, 0), (ptx_type, nbytes, 1))
    packed = packer(parameters, ("whole", "whole"), 8).pack(9, 10)
    assert packed == struct.pack(f"=B{code}{7 - nbytes}x", 9, 10)


@pytest.mark.parametrize("kind", ["whole", "signed"])
@pytest.mark.parametrize("value", [-(2**63) - 1, 2**64])
def test_a_number_that_is_no_address_of_ours_keeps_its_range(kind: Kind, value: int) -> None:
    pack = packer(_parameters(("u64", 8, 0)), (kind,), 8).pack
    with pytest.raises(struct.error):
        pack(value)


def test_a_negative_number_is_no_whole_one() -> None:
    with pytest.raises(struct.error):
        packer(_parameters(("u64", 8, 0)), ("whole",), 8).pack(-1)


@pytest.mark.parametrize(
    ("kind", "nbytes", "pointer", "count", "cpp_type", "name"),
    [
        ("b8", 1, False, 1, "", "an 8-bit integer"),
        ("u16", 2, False, 1, "", "a 16-bit integer"),
        ("b32", 4, False, 1, "", "a 32-bit integer"),
        ("u64", 8, None, 1, "", "a device pointer or a 64-bit integer"),
        ("u64", 8, True, 1, "", "a device pointer"),
        ("u16", 2, False, 1, "s", "a signed 16-bit integer"),
        ("u8", 1, False, 1, "h", "an unsigned 8-bit integer"),
        ("f64", 8, False, 1, "d", "float64"),
        ("b8", 4, False, 4, "", "a structure of 4 bytes"),
        ("b128", 16, False, 1, "", "a structure of 16 bytes"),
    ],
)
def test_a_parameter_is_described_by_kind_and_size(
    kind: str, nbytes: int, pointer: bool | None, count: int, cpp_type: str, name: str
) -> None:
    param = ptx.KernelParam("p0", kind, nbytes, nbytes, 0, pointer, count, cpp_type)
    assert KernelParameter("k", 0, param).type_name == name
