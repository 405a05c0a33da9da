"""The table of CUresults in the reference."""

from __future__ import annotations

from pathlib import Path

from cudadrv import errors

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->"


def table() -> str:
    """A row a class, by ascending result."""
    classes = sorted(
        (getattr(errors, name) for name in dir(errors)), key=lambda each: getattr(each, "result", 0)
    )
    rows = ["| class | result | sticky | what to do |", "|---|---|---|---|"]
    for each in classes:
        if issubclass(each, errors.CudaError) and each.result:
            doc = (each.__doc__ or "").rstrip(".")
            sticky = "yes" if each.sticky else ""
            row = f"| `{each.__name__}` | {doc} ({each.result}) | {sticky} | {each.remedy} |"
            rows.append(row)
    return "".join(f"{row}\n" for row in rows)


def replaced(text: str) -> str:
    """The page with the table as it should be."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.partition(END)[2]}"
