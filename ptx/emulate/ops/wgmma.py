"""Products by four warps, D = A * B + D, asynchronous. PTX ISA, "wgmma", "wgmma.mma_async.sp".

Each warp has 16 rows of D and reads the same rows of A, so that the four warps exchange nothing.
The emulator multiplies for each warp alone, at once. Fences, commits and waits only report to the
race check. In an ordered launch a wait checks whether the inputs of the product have changed since.
All four begin a product together, and a wait of one of them completes it for all.

A sparse product has its A in the layout of `mma.sp`, in registers or in memory. Each warp's
metadata belong to its 16 rows, and B is twice as long along k.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import ordered_blocks
from ptx.emulate.exec.sync.issued_copies import note_work
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.data_movement import nothing
from ptx.emulate.ops.matrix import (
    WIDTHS,
    Fragment,
    SharedMatrix,
    Types,
    element_types,
    fragment,
    held,
    plain_words,
    shape_of,
    warpgroup_product,
)
from ptx.emulate.ops.mma import columns, nibbles_of, read, selector_of, words_of
from ptx.emulate.ops.warp import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Immediate, Instruction, SpecialRegister, Vector

_ROWS = 16  # of a warp
_WARPS = 4
_HALVES = ("f16", "bf16")


class Sparsity(NamedTuple):
    """The layout of a sparse product's A: k of the matrix, bits of an element, the selector."""

    k: int
    width: int
    selector: int


class GroupProduct(NamedTuple):
    """One instruction: what it multiplies, `sign` times, and where that is.

    Attributes:
        sparsity: None where A is whole.
    """

    instruction: Instruction
    types: Types
    options: tuple[str, ...]
    sign: int
    target: Fragment
    left: Fragment | SharedMatrix
    right: SharedMatrix
    sparsity: Sparsity | None

    def chosen_rows(self, fibre: Fibre, b: NDArray[Any], words: NDArray[Any]) -> NDArray[Any]:
        """The rows of B that meet the elements of a sparse A, by its metadata."""
        assert self.sparsity is not None
        k, width, selector = self.sparsity
        nibbles = nibbles_of(words, width, k, selector)
        chosen = columns(fibre, nibbles, width, self.instruction, ordered=True)
        rows: NDArray[Any] = b[np.arange(len(b))[:, None, None], chosen]
        return rows

    def of(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        """D of each warp."""
        return warpgroup_product(-a if self.sign < 0 else a, b, c, self.types, self.options)


class _StoredFactor(NamedTuple):
    """A factor in shared memory: each warp's descriptor, and the first row that it reads."""

    matrix: SharedMatrix
    descriptors: NDArray[np.uint64]
    first: NDArray[np.int64]

    def note(self, fibre: Fibre, threads: Index) -> None:
        """Report to observers what is read."""
        if fibre.blocks.order_observers:
            pieces = self.matrix.pieces(self.descriptors, self.first)
            note_work(fibre, "products", threads, pieces, self.matrix.site)

    def read(self, fibre: Fibre, threads: Index) -> NDArray[Any]:
        """The elements of each warp."""
        return self.matrix.read(fibre, threads, self.descriptors, self.first)


def multiply_group(
    fibre: Fibre,
    group: Group,
    product: GroupProduct,
    late: bool,
    left: list[Value],
    right: Value,
    addend: list[Value],
    scale: Value,
    warp: Value,
    *metadata: Value,
) -> list[Value]:
    """The registers of D for each thread.

    `late`: at the wait for the product, its factors in memory must be unchanged. It is done at once
    all the same, as registers are not read before; but a factor that changes meanwhile may be read
    before or after.
    """
    rows, threads = np.unique(group.row, return_index=True)

    def one_a_warp(value: Value) -> NDArray[Any]:
        return np.broadcast_to(np.asarray(value), (fibre.n,))[threads]

    def in_registers(role: str, values: list[Value], of: Fragment) -> NDArray[Any]:
        return of.gathered(words_of(fibre, group, role, values)[rows])

    warps = one_a_warp(warp).astype(np.int64)
    _require_four(fibre, threads, warps, product.instruction)
    first = warps % _WARPS * _ROWS
    stored_right = _StoredFactor(product.right, one_a_warp(right), np.zeros_like(first))
    stored = [stored_right]
    if isinstance(product.left, SharedMatrix):
        stored.insert(0, _StoredFactor(product.left, one_a_warp(left[0]), first))
    for factor in stored:
        factor.note(fibre, threads)
    if isinstance(product.left, Fragment):
        a = in_registers("a", left, product.left)
    else:
        a = stored[0].read(fibre, threads)
    b = stored_right.read(fibre, threads).swapaxes(1, 2)
    if product.sparsity is not None:
        (words,) = words_of(fibre, group, "metadata", list(metadata))[rows].transpose(2, 0, 1)
        b = product.chosen_rows(fibre, b, words)
    c = in_registers("c", addend, product.target)
    c[~one_a_warp(scale)] = 0
    result = product.target.spread(product.of(a, b, c))
    if late:
        of_warps = fibre.subset(threads, ())
        for factor in reversed(stored):
            unchanged = _Unchanged(of_warps, factor, product.instruction)
            ordered_blocks(fibre).late_copies.products.add(of_warps, unchanged.check)
    own_positions = np.searchsorted(rows, group.row) * WARP + (group.mine & WARP - 1)
    flat = result.reshape(-1, result.shape[-1])
    return list(np.ascontiguousarray(flat.take(own_positions, axis=0).T))


def shared_factors(
    fibre: Fibre, product: GroupProduct, left: Value, right: Value, warp: Value
) -> Value:
    """NaN, infinity or zero for each thread, as are the factors that its warp reads from memory."""
    rows, threads = np.unique(fibre.lane_numbers() // WARP, return_index=True)

    def one_a_warp(value: Value) -> NDArray[Any]:
        return np.broadcast_to(np.asarray(value), (fibre.n,))[threads]

    first = one_a_warp(warp).astype(np.int64) % _WARPS * _ROWS
    factors = [product.right.read(fibre, threads, one_a_warp(right), np.zeros_like(first))]
    if isinstance(product.left, SharedMatrix):
        factors.append(product.left.read(fibre, threads, one_a_warp(left), first))
    found = np.zeros(len(rows), np.float32)
    for matrix in factors:
        numbers = matrix.reshape(len(rows), -1)
        found[np.isinf(numbers).any(axis=1) & ~np.isnan(found)] = np.inf
        found[np.isnan(numbers).any(axis=1)] = np.nan
    return found[np.searchsorted(rows, fibre.lane_numbers() // WARP)]


def commit(fibre: Fibre, late: bool) -> None:
    """`wgmma.commit_group`; `late`: in an ordered launch."""
    for observer in fibre.blocks.order_observers:
        observer.commit_work("products", fibre.lane_numbers())
    if late:
        ordered_blocks(fibre).late_copies.products.commit(fibre)


def wait(fibre: Fibre, newest: int, late: bool) -> None:
    """`wgmma.wait_group`; `late`: in an ordered launch."""
    for observer in fibre.blocks.order_observers:
        observer.wait_for_work("products", fibre.lane_numbers(), newest)
    if late:
        ordered_blocks(fibre).late_copies.products.wait_for_warp_groups(fibre, newest)


class _Unchanged:
    """A factor in shared memory as it is when the product begins."""

    def __init__(
        self,
        fibre: Fibre,
        factor: _StoredFactor,
        instruction: Instruction,
    ) -> None:
        self._factor = factor
        self._instruction = instruction
        self._words = self._loaded(fibre, None)

    def check(self, fibre: Fibre, positions: Index | None) -> None:
        """The product is waited for.

        Raises:
            SynchronisationFault: the factor has changed.
        """
        before = self._words if positions is None else self._words[positions]
        changed = (self._loaded(fibre, positions) != before).any(axis=(1, 2))
        if changed.any():
            raise SynchronisationFault(
                f"shared memory that {self._instruction.text} reads was written before the product"
                " was waited for",
                fibre.where(int(np.argmax(changed)), self._instruction),
            )

    def _loaded(self, fibre: Fibre, positions: Index | None) -> NDArray[np.uint32]:
        """(warps, pieces, words)"""
        selected = slice(None) if positions is None else positions
        threads = np.arange(fibre.n, dtype=np.intp)
        matrix, descriptors, first = self._factor
        words = matrix.load(fibre, threads, descriptors[selected], first[selected])
        return words.reshape(fibre.n, -1, words.shape[-1])


def _require_four(
    fibre: Fibre, threads: Index, warps: NDArray[np.int64], instruction: Instruction
) -> None:
    """Four warps from a multiple of four on are a group; a block may end before its last one does.

    Raises:
        SynchronisationFault: it does.
    """
    warp_count = fibre.blocks.geometry.warps_per_block
    lacking = warps // _WARPS * _WARPS + _WARPS > warp_count
    if lacking.any():
        raise SynchronisationFault(
            f"{instruction.text} is executed by a group of {warp_count % _WARPS} warps; it takes"
            f" the four of {_WARPS * WARP} threads, of which the block must have a multiple",
            fibre.where(int(threads[np.argmax(lacking)]), instruction),
        )


def _emit(e: Emitter, i: Instruction) -> None:
    _emit_product(e, i, group_product(e, i))


def group_product(e: Emitter, i: Instruction) -> GroupProduct:
    """Return what an instruction multiplies.

    Raises:
        UnsupportedInstruction: its operands do not fit.
    """
    types = element_types(i)
    if len(types) != 3 or (types[1] == "b1" and not {"and", "popc"} <= {*i.modifiers}):
        raise e.reject("it multiplies single bits with .b1.b1.and.popc")
    d, a, b = types
    shape = shape_of(next(word for word in plain_words(i) if word[:3] == "m64"))._replace(m=_ROWS)
    is_sparse = "sp" in i.modifiers
    remaining = i.operands[6 if is_sparse else 4 :]
    in_registers = isinstance(i.operands[1], Vector)
    numbers = [immediate.value for immediate in remaining if isinstance(immediate, Immediate)]
    expected = (0 if d == "s32" else 2) + (a in _HALVES) * (1 if in_registers else 2)
    if not len(numbers) == len(remaining) == expected:
        raise e.reject(f"it takes {expected} numbers behind its predicate")
    signs, layouts = (numbers[:2], numbers[2:]) if d != "s32" else ([], [])
    if not (set(signs) <= {1, -1} and set(layouts) <= {0, 1}):
        raise e.reject("factors are multiplied by 1 or -1, and a transposition is 0 or 1")
    sparsity, held_shape = None, shape
    if is_sparse:
        selector = selector_of(e, i.operands[4], shape.k, WIDTHS[a])
        sparsity = Sparsity(shape.k, WIDTHS[a], selector)
        held_shape = shape._replace(k=shape.k // 2)
    return GroupProduct(
        i,
        (d, a, b, d),
        tuple(word for word in i.modifiers if word in ("satfinite", "and")),
        int(np.prod(signs)),
        fragment(shape, d, "c"),
        fragment(held_shape, a, "a") if in_registers else _shared(e, i, a, _ROWS, layouts[:1], 32),
        _shared(e, i, b, shape.n, layouts[-1:], 64 if is_sparse else 32),
        sparsity,
    )


def _shared(
    e: Emitter, i: Instruction, element: str, rows: int, transposed: list[int], k_bytes: int
) -> SharedMatrix:
    site = Site(i, "shared", "u32", 4, writes=False)
    e.sites.append(site)
    return SharedMatrix(element, rows, transposed == [1], site, k_bytes)


def _emit_product(e: Emitter, i: Instruction, product: GroupProduct) -> None:
    target, source, second, *remaining = i.operands[: 4 if product.sparsity is None else 6]
    addend = read(e, target, product.target)
    if isinstance(product.left, Fragment):
        left = read(e, source, product.left)
        exchanged = {f"a{k}": name for k, name in enumerate(left)}
    else:
        left, exchanged = [e.temporary(e.value(source, "u64"))], {}
    names = [
        e.temporary(e.value(operand, kind))
        for operand, kind in (
            (second, "u64"),
            (remaining[-1], "pred"),
            (SpecialRegister("%warpid"), "u32"),
        )
    ]
    metadata = [e.temporary(e.value(remaining[0], "b32"))] if product.sparsity is not None else []
    exchanged |= {f"metadata{k}": name for k, name in enumerate(metadata)}
    values = {**exchanged, **{f"c{k}": name for k, name in enumerate(addend)}}
    group = sync_warp(e, i, values, _WARPS)
    right, flag, warp = names
    bound = e.scope.bind(product, "product")
    call = f"{e.helper(multiply_group)}(f, {group}, {bound}, {e.late.copies}"
    call += f", [{', '.join(left)}], {right}, [{', '.join(addend)}]"
    call += f", {', '.join((flag, warp, *metadata))})"
    registers = e.temporary(call)
    results = [f"{registers}[{k}]" for k in range(product.target.registers)]
    e.assign_all(target, held(product.target.element), results)


_COLUMNS = tuple(range(8, 257, 8))
_WHOLE_COLUMNS = (8, 16, 24, *range(32, 257, 16))  # of integers
_BYTES = tuple(f"s32.{a}.{b}" for a in ("s8", "u8") for b in ("s8", "u8"))
_NARROW = tuple(
    f"{d}.{a}.{b}" for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
)
_FORMS = (
    (16, _COLUMNS, ("f16.f16.f16", "f32.f16.f16", "f32.bf16.bf16"), (7, 8), ()),
    (8, _COLUMNS, ("f32.tf32.tf32",), (6,), ()),
    (32, _COLUMNS, _NARROW, (6,), ()),
    (32, _WHOLE_COLUMNS, _BYTES, (4,), ("satfinite",)),
    (256, _WHOLE_COLUMNS, ("s32",), (4,), ("b1", "and", "popc")),
)
"""k, how many columns, types of D, A and B, how many operands, and further modifiers."""

for _k, _all, _types, _counts, _modifiers in _FORMS:
    for _n in _all:
        operation(
            f"wgmma.mma_async.sync.aligned.m64n{_n}k{_k}",
            _types,
            _counts,
            _emit,
            effect=Effect.SYNCS,
            modifiers=_modifiers,
            updates=True,
            section="wgmma.mma_async",
        )
        if "b1" not in _modifiers:
            operation(
                f"wgmma.mma_async.sp.sync.aligned.m64n{_n}k{2 * _k}",
                _types,
                tuple(count + 2 for count in _counts),
                _emit,
                effect=Effect.SYNCS,
                modifiers=_modifiers,
                updates=True,
                section="wgmma.mma_async.sp",
            )
operation(
    "wgmma.fence.sync.aligned",
    ("",),
    0,
    nothing,
    effect=Effect.MEMORY,
    writes=0,
    section="wgmma.fence",
)


def _commit(e: Emitter, i: Instruction) -> None:
    e.line(f"{e.helper(commit)}(f, {e.late.copies})")


def _wait(e: Emitter, i: Instruction) -> None:
    newest = i.operands[0]
    if not isinstance(newest, Immediate):
        raise e.reject("it waits for a constant number of groups")
    e.line(f"{e.helper(wait)}(f, {newest.value}, {e.late.copies})")


for _name, _arity, _emit_group in (("commit_group", 0, _commit), ("wait_group", 1, _wait)):
    operation(
        f"wgmma.{_name}.sync.aligned",
        ("",),
        _arity,
        _emit_group,
        effect=Effect.MEMORY,
        writes=0,
        section=f"wgmma.{_name}",
    )
