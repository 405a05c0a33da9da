"""Sectors, banks and atomics, against numbers worked out by NumPy from the addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
from cudadrv.emulator import InstructionClass
from tests.emulator.counted.one_launch import (
    INDICES,
    WARP,
    Addresses,
    count,
    kernel,
    warps_of,
)


def sectors(addresses: Addresses, nbytes: int, block: int = 128) -> tuple[int, int, int]:
    """Requests, sectors and the least of them."""
    rows = warps_of(addresses, block)
    touched = [{a // 32 for a in row} for row in rows]
    least = [-(-len(set(row)) * nbytes // 32) for row in rows]
    return len(rows), sum(map(len, touched)), sum(least)


GLOBAL: list[tuple[str, str, int, Callable[[Addresses], Addresses]]] = [
    ("coalesced", "x[i]", 4, lambda i: 4 * i),
    ("stride 2", "x[2 * i]", 4, lambda i: 8 * i),
    ("stride 32", "x[32 * i]", 4, lambda i: 128 * i),
    ("misaligned", "x[i + 1]", 4, lambda i: 4 * i + 4),
    ("same", "x[blockIdx.x]", 4, lambda i: i // 128 * 4),
    ("reversed", "x[n - i]", 4, lambda i: 4 * (511 - i)),
    ("bytes", "((unsigned char*)x)[i + 3]", 1, lambda i: i + 3),
    ("doubles", "((double*)x)[i + 1]", 8, lambda i: 8 * i + 8),
    ("vectors", "((float4*)x)[2 * i].w + ((float4*)x)[2 * i].x", 16, lambda i: 32 * i),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value", "nbytes", "where"), GLOBAL, ids=lambda v: str(v)[:12])
def test_sectors_are_those_that_the_addresses_touch(
    context: cudadrv.Context,
    name: str,
    value: str,
    nbytes: int,
    where: Callable[[Addresses], Addresses],
) -> None:
    counts = count(context, kernel(f"y[i] = {value};"), n=511)["k"]
    expected = sectors(where(np.arange(512)), nbytes)
    found = counts.global_loads
    assert (found.requests, found.sectors, found.least_sectors) == expected
    stored = counts.global_stores
    assert (stored.requests, stored.sectors, stored.least_sectors) == (16, 64, 64)


def test_sectors_of_a_gather_are_those_of_its_indices(context: cudadrv.Context) -> None:
    counts = count(context, kernel("y[idx[i]] = x[idx[i]];"))["k"]
    scattered = sectors(4 * INDICES[:512].astype(np.int64), 4)
    indices = sectors(4 * np.arange(512), 4)
    loads, stores = counts.global_loads, counts.global_stores
    assert (stores.requests, stores.sectors, stores.least_sectors) == scattered
    expected = tuple(a + b for a, b in zip(scattered, indices, strict=True))
    assert (loads.requests, loads.sectors, loads.least_sectors) == expected


@pytest.mark.parametrize("block", [33, 1, 96])
def test_warps_of_blocks_that_are_no_multiple_of_32(context: cudadrv.Context, block: int) -> None:
    counts = count(context, kernel("y[i] = x[3 * i];"), grid=5, block=block)["k"]
    expected = sectors(12 * np.arange(5 * block), 4, block)
    found = counts.global_loads
    assert (found.requests, found.sectors, found.least_sectors) == expected
    assert counts.of(InstructionClass.LOAD_GLOBAL).warps == expected[0]
    assert counts.of(InstructionClass.LOAD_GLOBAL).threads == 5 * block


def test_threads_that_are_not_there_touch_nothing(context: cudadrv.Context) -> None:
    counts = count(context, kernel("if (t % 4 == 1) y[i] = x[8 * i];"))["k"]
    assert (counts.global_loads.requests, counts.global_loads.sectors) == (16, 16 * 8)
    assert (counts.global_stores.sectors, counts.global_stores.least_sectors) == (64, 16)
    assert counts.of(InstructionClass.STORE_GLOBAL).threads == 128


def turns(offsets: Addresses, nbytes: int) -> int:
    """Turns of the banks, a warp's parts one after the other."""
    lanes = WARP * 4 // max(nbytes, 4)
    total = 0
    for row in warps_of(offsets, 128):
        for first in range(0, WARP, lanes):
            words = {
                w for a in row[first : first + lanes] for w in range(a // 4, -(-(a + nbytes) // 4))
            }
            total += max(Counter(w % 32 for w in words).values())
    return total


SHARED: list[tuple[str, str, int, Callable[[Addresses], Addresses]]] = [
    *(
        (f"stride {k}", f"s[{k} * t % 4096]", 4, lambda t, k=k: 4 * (k * t % 4096))
        for k in (1, 2, 3, 16, 32, 33)
    ),
    ("same", "s[blockIdx.x]", 4, lambda t: 0 * t),
    ("bytes", "((char*)s)[4 * t]", 1, lambda t: 4 * t),
    ("bytes of one word", "((char*)s)[t]", 1, lambda t: t),
    ("doubles", "((double*)s)[t]", 8, lambda t: 8 * t),
    ("doubles of stride 2", "((double*)s)[2 * t]", 8, lambda t: 16 * t),
    ("vectors", "((float4*)s)[t]", 16, lambda t: 16 * t),
    ("vectors of stride 8", "((float4*)s)[8 * t]", 16, lambda t: 128 * t),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place", "nbytes", "where"), SHARED, ids=lambda v: str(v)[:12])
def test_turns_of_shared_memory_are_those_of_the_fullest_bank(
    context: cudadrv.Context,
    name: str,
    place: str,
    nbytes: int,
    where: Callable[[Addresses], Addresses],
) -> None:
    kind = {1: "char", 4: "float", 8: "double", 16: "float4"}[nbytes]
    value = "make_float4(t, 1, 2, 3)" if nbytes == 16 else "t"
    body = f"__shared__ __align__(16) float s[4096]; {place} = {value}; __syncthreads();"
    body += f" {kind} v = {place}; y[i] = {'v.x + v.y + v.z + v.w' if nbytes == 16 else 'v'};"
    counts = count(context, kernel(body), grid=1)["k"]
    expected = turns(where(np.arange(128)), nbytes)
    ideal = 4 * max(nbytes // 4, 1)
    for found in (counts.shared_loads, counts.shared_stores):
        assert (found.requests, found.wavefronts, found.least_wavefronts) == (4, expected, ideal)
        assert found.conflicts == expected - ideal


@pytest.mark.parametrize(
    ("place", "kind", "loaded", "stored"),
    [
        # The two halves of a warp are one where every thread takes the same as a neighbour.
        ("t / 2", "double", 1, 2),
        ("t / 4 * 2 + t % 2", "double", 1, 2),
        ("t / 8 * 4 + t % 4", "double", 2, 2),
        ("t % 32 == 31 ? 16 : t % 32 / 2", "double", 2, 2),
        ("t % 32 / 2 < 8 ? t % 32 / 2 * 16 : t % 32 / 2 * 16 - 126", "double", 8, 16),
        # Of the four quarters two and two.
        ("t / 2", "float4", 2, 4),
        ("t % 8", "float4", 4, 4),
        ("t % 32 < 16 ? t % 32 / 2 : t % 32", "float4", 4, 4),
    ],
)
def test_loads_of_the_same_in_pairs_are_served_together_and_stores_are_not(
    context: cudadrv.Context, place: str, kind: str, loaded: int, stored: int
) -> None:
    value, sum_of = ("t", "v") if kind == "double" else ("make_float4(t, 1, 2, 3)", "v.x + v.y")
    if kind == "float4":
        sum_of += " + v.z + v.w"
    body = f"__shared__ {kind} s[512]; s[{place}] = {value}; __syncthreads();"
    counts = count(context, kernel(f"{body} {kind} v = s[{place}]; y[i] = {sum_of};"), grid=1)["k"]
    assert counts.shared_loads.wavefronts == 4 * loaded
    assert counts.shared_stores.wavefronts == 4 * stored


def turns_in_sectors(row: list[int]) -> int:
    """Each sector as often as the element in it that most threads of a warp use."""
    times = Counter(row)
    every = {element // 8 for element in row}
    return sum(max(n for e, n in times.items() if e // 8 == sector) for sector in every)


@pytest.mark.slow
def test_atomics_are_counted_by_address(context: cudadrv.Context) -> None:
    one = count(context, kernel("atomicAdd(y, x[i]);"))["k"].global_atomics
    assert (one.requests, one.threads, one.ways, one.addresses) == (16, 512, 512, 1)
    assert (one.most_on_one, one.turns) == (512, 512)
    own = count(context, kernel("atomicAdd(y + i, x[i]);"))["k"].global_atomics
    assert (own.ways, own.addresses, own.most_on_one, own.turns) == (16, 512, 1, 64)
    some = count(context, kernel("atomicAdd(y + idx[i], x[i]);"))["k"].global_atomics
    rows = INDICES[:512].reshape(-1, WARP).tolist()
    assert some.ways == sum(max(Counter(row).values()) for row in rows)
    assert some.turns == sum(map(turns_in_sectors, rows))
    assert some.addresses == len(set(INDICES[:512].tolist()))
    assert some.most_on_one == max(Counter(INDICES[:512].tolist()).values())


def test_atomics_in_shared_memory_of_different_blocks_are_apart(context: cudadrv.Context) -> None:
    body = "__shared__ int s[32]; if (t < 32) s[t] = 0; __syncthreads();"
    body += " atomicAdd(s + t % 2, i); __syncthreads(); y[i] = s[t & 1];"
    found = count(context, kernel(body))["k"].shared_atomics
    assert (found.threads, found.addresses, found.most_on_one) == (512, 4 * 2, 64)
    assert (found.ways, found.turns) == (16 * 16, 16 * 16)
    body = "__shared__ int s[1024]; s[t] = t; __syncthreads(); atomicAdd(s + idx[i] % 512, 1);"
    found = count(context, kernel(body + " __syncthreads(); y[i] = s[t];"))["k"].shared_atomics
    banks = [Counter(e % 512 % 32 for e in row) for row in INDICES[:512].reshape(-1, WARP).tolist()]
    assert found.turns == sum(max(each.values()) for each in banks)


def test_a_generic_address_counts_where_it_leads(context: cudadrv.Context) -> None:
    body = "__shared__ float s[128]; s[t] = t; __syncthreads();"
    body += " float* p = n ? s + 31 - t % 32 : x + i; y[i] = *p;"
    for n, expected in ((8, (16, 0)), (0, (0, 16))):
        counts = count(context, kernel(body), n=n)["k"]
        assert (counts.shared_loads.requests, counts.global_loads.requests) == expected
    mixed = body.replace("n ?", "t % 2 ?")
    counts = count(context, kernel(mixed))["k"]
    assert (counts.shared_loads.requests, counts.global_loads.requests) == (16, 16)
    assert counts.global_loads.least_sectors == 16 * 2


def test_copies_and_matrices_are_counted(context: cudadrv.Context) -> None:
    body = "__shared__ __align__(16) float s[1024]; __pipeline_memcpy_async(s + 4 * t, x + 8 * t,"
    body += " 16); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); unsigned a;"
    body += ' asm volatile("{ .reg .u64 p; cvta.to.shared.u64 p, %1;"'
    body += ' " ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [p]; }" : "=r"(a)'
    body += ' : "l"(s + t % 8 * 32)); y[i] = a;'
    counts = count(context, kernel(body, before="#include <cuda_pipeline.h>"), grid=1)["k"]
    copies = counts.global_copies
    assert (copies.requests, copies.sectors, copies.least_sectors) == (4, 128, 64)
    assert counts.of(InstructionClass.LOAD_MATRIX).warps == 4
    assert (counts.shared_loads.wavefronts, counts.shared_loads.least_wavefronts) == (32, 4)
