"""The mutants of a file: Cosmic Ray's operators, and one that removes a statement."""

from __future__ import annotations

import ast
import difflib
import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import Name

_PAIRS: Final = {
    "Binary": "Add_Sub Sub_Add Mul_Add Mul_FloorDiv Div_Mul FloorDiv_Mul Mod_FloorDiv LShift_RShift"
    " RShift_LShift BitAnd_BitOr BitAnd_BitXor BitOr_BitAnd BitOr_BitXor BitXor_BitAnd",
    "Comparison": "Lt_LtE Lt_Gt LtE_Lt LtE_GtE Gt_GtE Gt_Lt GtE_Gt GtE_LtE Eq_NotEq NotEq_Eq"
    " Is_IsNot IsNot_Is",
    "Unary": "USub_UAdd Delete_USub Delete_Invert Delete_Not",
}
_NAMES: Final = (
    "AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd"
    " ReplaceBreakWithContinue ReplaceContinueWithBreak ExceptionReplacer NumberReplacer"
    " RemoveDecorator ZeroIterationForLoop"
)


class RemoveStatement(Operator):  # type: ignore[misc]  # Cosmic Ray has no types
    """Replaces a call, or an assignment to an attribute or an item, by `pass`."""

    # The nodes are parso's, which Cosmic Ray does not type.
    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """Return the place of the statement."""
        if node.type == "simple_stmt":
            first = node.children[0]
            kind = first.children[0].type if first.type == "expr_stmt" else first.type
            if kind == "atom_expr":
                yield first.start_pos, first.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return the statement without its effect."""
        first = node.children[0]
        node.children[0] = Name("pass", first.start_pos, prefix=first.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> Sequence[Any]:
        """Return nothing: they are for Cosmic Ray's own tests."""
        return ()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed file.

    Attributes:
        file: the path of the file in the repository.
        operator: the name of the operator.
        line: the line that is changed.
        code: the text of the changed file.
        change: the lines that differ, with their signs.
    """

    file: str
    operator: str
    line: int
    code: str
    change: str

    @property
    def key(self) -> str:
        """A text that is the same for the same change of the same file."""
        return hashlib.sha256(f"{self.file}\n{self.code}".encode()).hexdigest()[:16]


def mutants_of(root: Path, files: Sequence[str], seed: int) -> Iterator[Mutant]:
    """Yield the mutants of some files: each place once, in the order of the seed."""
    chance = random.Random(seed)
    places = [(file, place) for file in files for place in _places(root / file).items()]
    chance.shuffle(places)
    for file, (_, variants) in places:
        chance.shuffle(variants)
        before = (root / file).read_text("utf-8")
        for name, occurrence, line in variants:
            try:
                code = mutate_code(before, _operators()[name], occurrence)
            except AttributeError:  # ExceptionReplacer at a name with a dot
                continue
            if code is not None and _differs(before, code):
                yield Mutant(file, name, line, code, _change(before, code))
                break


def _places(path: Path) -> dict[tuple[int, int], list[tuple[str, int, int]]]:
    """Return what can change at each line and column: operator, its occurrence, and line."""
    places: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
    nodes = list(ast_nodes(get_ast(path.read_text("utf-8"))))
    for name, operator in _operators().items():
        occurrence = 0
        for node in nodes:
            for begin, _ in operator.mutation_positions(node):
                places.setdefault(begin, []).append((name, occurrence, begin[0]))
                occurrence += 1
    return places


@lru_cache(maxsize=1)
def _operators() -> dict[str, Any]:
    names = _NAMES.split()
    for kind, pairs in _PAIRS.items():
        names += [f"Replace{kind}Operator_{pair}" for pair in pairs.split()]
    found = {name: get_operator(f"core/{name}")() for name in names}
    return {**found, "RemoveStatement": RemoveStatement()}


def _differs(before: str, after: str) -> bool:
    """Return whether the change compiles, and changes more than annotations."""
    try:
        return _without_annotations(after) != _without_annotations(before)
    except SyntaxError:
        return False


@lru_cache(maxsize=32)
def _without_annotations(code: str) -> str:
    """Return a text of the syntax tree, without annotations and decorators of classes."""
    compile(code, "<mutant>", "exec")
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.ClassDef):
            node.decorator_list = []
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def _change(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
