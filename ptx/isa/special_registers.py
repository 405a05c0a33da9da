"""The special registers and their types. PTX ISA, "Special Registers"."""

from __future__ import annotations

from typing import Final

_WORDS: Final = (
    "laneid warpid nwarpid smid nsmid cluster_ctarank cluster_nctarank clock clock_hi"
    " lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt globaltimer_lo globaltimer_hi"
    " reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap"
    " reserved_smem_offset_0 reserved_smem_offset_1 total_smem_size aggr_smem_size"
    " dynamic_smem_size"
)
SPECIAL_REGISTERS: Final[dict[str, str]] = {
    **dict.fromkeys(_WORDS.split(), "u32"),
    **{f"pm{number}": "u32" for number in range(8)},
    **{f"pm{number}_64": "u64" for number in range(8)},
    **{f"envreg{number}": "u32" for number in range(32)},
    **dict.fromkeys(("clock64", "globaltimer", "gridid", "current_graph_exec"), "u64"),
    **dict.fromkeys(
        (
            "tid",
            "ntid",
            "ctaid",
            "nctaid",
            "clusterid",
            "nclusterid",
            "cluster_ctaid",
            "cluster_nctaid",
        ),
        "v4",
    ),
    "is_explicit_cluster": "pred",
}
"""Types by name, without the % and an element; "v4" is a vector of four u32."""


COLOURS: Final = {".r": ".x", ".g": ".y", ".b": ".z", ".a": ".w"}
"""Other names for the elements of vectors (PTX ISA, "Vectors as Operands")."""


def usual_special(name: str) -> str:
    """The usual name of a special register: `%tid.x` for `%tid.r`."""
    element = COLOURS.get(name[-2:])
    return name[:-2] + element if element else name


def fault_of_name(name: str) -> str:
    """Return why no label, and nothing of a whole module, has a name; "" where it may have it.

    Parameters, registers and variables of functions hide special registers of their name.
    """
    return f"{name} is a special register" if special_type(name) is not None else ""


def special_type(name: str) -> str | None:
    """The type of a special register such as `%tid.x`; None if there is no such register."""
    stem, _, element = name[1:].partition(".")
    of_stem = SPECIAL_REGISTERS.get(stem) if name[:1] == "%" else None
    if not element:
        return of_stem
    return "u32" if of_stem == "v4" and element in ("x", "y", "z", "w") else None
