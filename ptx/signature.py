"""What a kernel takes: its parameters' types, offsets and kinds, and what it needs to launch.

Values only: `ptx.isa.signature` reads them from PTX, the cache of images keeps them as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:

    class ParamJson(TypedDict):
        """A `KernelParam` as plain values."""

        name: str
        ptx_type: str
        nbytes: int
        align: int
        offset: int
        is_pointer: bool | None
        count: int

    class SignatureJson(TypedDict):
        """A `KernelSignature` as plain values."""

        name: str
        params: list[ParamJson]
        nbytes: int
        shared_bytes: int
        max_threads: int | None
        required_block: list[int] | None


class KernelParam(NamedTuple):
    """A kernel parameter: `count` elements of `ptx_type` at byte `offset` of the parameter block.

    `is_pointer` is True where the text says `.ptr`, None for another 64-bit integer (it may be a
    pointer: the dialect up to sm_90 does not tell), False for anything else.
    """

    name: str
    ptx_type: str
    nbytes: int
    align: int
    offset: int
    is_pointer: bool | None
    # In the place of the tuple's method of this name, which says nothing of a parameter.
    count: int  # type: ignore[assignment]

    def to_json(self) -> ParamJson:
        """Plain values, for a cache."""
        return {
            "name": self.name,
            "ptx_type": self.ptx_type,
            "nbytes": self.nbytes,
            "align": self.align,
            "offset": self.offset,
            "is_pointer": self.is_pointer,
            "count": self.count,
        }


class KernelSignature(NamedTuple):
    """A kernel's parameters and launch bounds.

    Attributes:
        nbytes: size of the parameter block.
        shared_bytes: static shared memory, without the dynamic part.
        max_threads: of a block, by `.maxntid` or `.reqntid`; None without a bound.
        required_block: by `.reqntid`; None if any will do.
    """

    name: str
    params: tuple[KernelParam, ...]
    nbytes: int
    shared_bytes: int
    max_threads: int | None
    required_block: tuple[int, int, int] | None

    def to_json(self) -> SignatureJson:
        """Plain dicts, lists, strings and integers, for a cache."""
        return {
            "name": self.name,
            "params": [param.to_json() for param in self.params],
            "nbytes": self.nbytes,
            "shared_bytes": self.shared_bytes,
            "max_threads": self.max_threads,
            "required_block": None if self.required_block is None else list(self.required_block),
        }

    @classmethod
    def from_json(cls, data: SignatureJson) -> KernelSignature:
        """The signature that `to_json` gave.

        Raises:
            KeyError: a value is missing.
        """
        block = data["required_block"]
        return cls(
            name=data["name"],
            params=tuple(KernelParam(**param) for param in data["params"]),
            nbytes=data["nbytes"],
            shared_bytes=data["shared_bytes"],
            max_threads=data["max_threads"],
            required_block=None if block is None else (block[0], block[1], block[2]),
        )
