"""Codes over graphs: conditions at vertices and edges, pull, push, worklists, union-find."""

from __future__ import annotations

from .program import (
    ATOMIC,
    BARRIER,
    BOUND,
    BUFFER,
    GUARD,
    MOVED,
    NARROW,
    PLAIN,
    Fault,
    Pattern,
    fault,
)

_VERTEX = fault(BOUND, "vertex", inside="i <= nv")
_EDGE = fault(BOUND, "edge", inside="i <= ne")
_ALL_EDGES = fault(BOUND, "neighbours", end="e <= row[i + 1]")

_LARGEST_UPDATES = (
    fault(ATOMIC, update="if (best > out[0]) out[0] = best;"),
    fault(PLAIN, "read before", update="if (best > out[0]) atomicMax(out, best);"),
    fault(NARROW, update="atomicMax_block(out, best);"),
    fault(GUARD, update="if (atomicMax(out + 1, best) < best) out[0] = best;"),
)
_COUNT_UPDATES = (
    fault(ATOMIC, update="out[0] += 1;"),
    fault(PLAIN, "read before", update="if (out[0] < 1000000) atomicAdd(out, ($T)1);"),
    fault(NARROW, update="atomicAdd_block(out, ($T)1);"),
    fault(GUARD, update="atomicAdd(flags, 1); out[0] += 1;"),
    fault(PLAIN, "read after", update="atomicAdd(out, ($T)1); flags[64 + i] = out[0] > 5;"),
)


def _push_updates(to: str, of: str) -> tuple[Fault, ...]:
    return (
        fault(ATOMIC, update=f"out[{to}] += value[{of}];"),
        fault(NARROW, update=f"atomicAdd_block(out + {to}, value[{of}]);"),
        fault(GUARD, update=f"if (atomicAdd(flags + {to}, 1) >= 0) out[{to}] += value[{of}];"),
        fault(
            PLAIN,
            update=f"if (out[{to}] < 1000000) atomicAdd(out + {to}, value[{of}]);",
        ),
    )


_VISIT = """
    if (⟦visit: atomicExch(flags + 64 + to, 1) == 0⟧) {
      int at = ⟦push: atomicAdd(flags, 1)⟧;
      out[at] = value[to];
      ⟦after: ⟧
    }"""
_VISIT_FAULTS = (
    fault(ATOMIC, "visited", visit="flags[64 + to]++ == 0"),
    fault(ATOMIC, "counter", push="flags[0]++"),
    fault(NARROW, "visited", visit="atomicExch_block(flags + 64 + to, 1) == 0"),
    fault(NARROW, "counter", push="atomicAdd_block(flags, 1)"),
    fault(PLAIN, "visited", visit="flags[64 + to] == 0 && atomicExch(flags + 64 + to, 1) == 0"),
    fault(PLAIN, "counter", after="if (flags[0] > 100000) out[0] = 0;"),
)

_FIND = """
  auto load = [&](int v) { return ⟦load: *(volatile int*)(parent + v)⟧; };
  auto find = [&](int v) {
    for (int p = load(v), up; p != v; v = p, p = up) {
      up = load(p);
      if (p != up) { ⟦compress: atomicCAS(parent + v, p, up);⟧ }
    }
    return v;
  };
"""
_UNITE = """
    while (u != v) {
      if (u < v) { int w = u; u = v; v = w; }
      ⟦hook: int old = atomicCAS(parent + u, u, v);⟧
      if (old == u) break;
      u = find(u); v = find(v);
    }"""
_UNITE_FAULTS = (
    fault(PLAIN, "find", load="parent[v]"),
    fault(PLAIN, "compression", compress="parent[v] = up;"),
    fault(ATOMIC, "hook", hook="int old = load(u); if (old == u) parent[u] = v;"),
    fault(NARROW, "hook", hook="int old = atomicCAS_block(parent + u, u, v);"),
    fault(NARROW, "compression", compress="atomicCAS_block(parent + v, p, up);"),
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern("conditional vertex", """
  if (⟦inside: i < nv⟧) {
    $T best = 0;
    for (int e = row[i]; ⟦end: e < row[i + 1]⟧; e++) {
      $T d = value[col[e]];
      if (d > best) best = d;
    }
    if (best > 0) { ⟦update: atomicMax(out, best);⟧ }
  }
""", (*_LARGEST_UPDATES, _VERTEX, _ALL_EDGES), "vertex", ("int", "unsigned long long")),
    Pattern("conditional vertex", """
  if (⟦inside: i < ne⟧) {
    $T best = value[from[i]];
    if (best > value[col[i]]) { ⟦update: atomicMax(out, best);⟧ }
  }
""", (*_LARGEST_UPDATES, _EDGE), "edge", ("int", "unsigned long long")),
    Pattern("conditional edge", """
  if (⟦inside: i < nv⟧) {
    for (int e = row[i]; ⟦end: e < row[i + 1]⟧; e++)
      if (value[i] < value[col[e]]) { ⟦update: atomicAdd(out, ($T)1);⟧ }
  }
""", (*_COUNT_UPDATES, _VERTEX, _ALL_EDGES), "vertex"),
    Pattern("conditional edge", """
  if (⟦inside: i < ne⟧) {
    if (value[from[i]] < value[col[i]]) { ⟦update: atomicAdd(out, ($T)1);⟧ }
  }
""", (*_COUNT_UPDATES, _EDGE), "edge"),
    Pattern("pull", """
  if (⟦inside: i < nv⟧) {
    $T sum = 0;
    for (int e = row[i]; ⟦end: e < row[i + 1]⟧; e++) sum += value[col[e]];
    ⟦store: out[i] = sum;⟧
  }
""", (
        fault(BUFFER, store="value[i] = sum;"),
        fault(GUARD, "other vertex", store="out[i / 2] = sum;"),
        fault(BOUND, "written", store="out[i] = sum; if (i + 1 < nv) out[i + 1] = 0;"),
        _VERTEX, _ALL_EDGES,
    ), "vertex"),
    Pattern("pull by warps", """
  const int warps = gridDim.x * $BLOCK / 32, lane = t % 32;
  for (int v = i / 32; ⟦inside: v < nv⟧; v += warps) {
    $T sum = 0;
    for (int e = row[v] + lane; e < row[v + 1]; e += 32) sum += value[col[e]];
    for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(~0u, sum, k);
    if (⟦first: lane == 0⟧) ⟦store: out[v] = sum;⟧
  }
""", (
        fault(BUFFER, store="value[v] = sum;"),
        fault(BOUND, "lanes", first="lane <= 1", store="out[v] = sum + lane;"),
        fault(BOUND, "vertex", inside="v <= nv"),
    ), "vertex"),
    Pattern("pull in rounds", """
  cg::grid_group grid = cg::this_grid();
  if (i < nv) {
    $T sum = 0;
    for (int e = row[i]; e < row[i + 1]; e++) sum += value[col[e]];
    ⟦store: out[i] = sum;⟧
  }
  ⟦sync: grid.sync();⟧
  if (i < nv) {
    $T sum = 0;
    for (int e = row[i]; e < row[i + 1]; e++) sum += ⟦load: out[col[e]]⟧;
    value[i] = sum;
  }
""", (
        fault(BARRIER, sync=""),
        fault(NARROW, "block", sync="__syncthreads();"),
        fault(BUFFER, store="value[i] = sum;"),
        fault(BUFFER, "second round", load="value[col[e]]"),
    ), "vertex", cooperative=True),
    Pattern("push", """
  if (⟦inside: i < nv⟧) {
    for (int e = row[i]; ⟦end: e < row[i + 1]⟧; e++) {
      ⟦update: atomicAdd(out + col[e], value[i]);⟧
    }
  }
""", (*_push_updates("col[e]", "i"), _VERTEX, _ALL_EDGES), "vertex"),
    Pattern("push", """
  if (⟦inside: i < ne⟧) { ⟦update: atomicAdd(out + col[i], value[from[i]]);⟧ }
""", (*_push_updates("col[i]", "from[i]"), _EDGE), "edge"),
    Pattern("worklist", """
  if (⟦inside: i < nv⟧) {
    for (int e = row[i]; ⟦end: e < row[i + 1]⟧; e++) {
    int to = col[e];""" + _VISIT + "\n    }\n  }",
            (*_VISIT_FAULTS, _VERTEX, _ALL_EDGES), "vertex"),
    Pattern("worklist", """
  if (⟦inside: i < ne⟧) {
    int to = col[i];""" + _VISIT + "\n  }", (*_VISIT_FAULTS, _EDGE), "edge"),
    Pattern("union find", _FIND + """
  if (⟦inside: i < nv⟧) {
    for (int e = row[i]; ⟦end: e < row[i + 1]⟧; e++) {
    int u = find(i), v = find(col[e]);""" + _UNITE + "\n    }\n  }",
            (*_UNITE_FAULTS, _VERTEX, _ALL_EDGES), "vertex", ("int",)),
    Pattern("union find", _FIND + """
  if (⟦inside: i < ne⟧) {
    int u = find(from[i]), v = find(col[i]);""" + _UNITE + """
    ⟦after: ⟧
  }""", (
        *_UNITE_FAULTS, _EDGE,
        fault(PLAIN, "read after", after="flags[64 + i] = parent[col[i]];"),
    ), "edge", ("int",)),
    Pattern("path compression", """
  if (⟦inside: i < nv⟧) {
    if (row[i] < row[i + 1] && col[row[i]] < i) { ⟦link: atomicExch(parent + i, col[row[i]]);⟧ }
    int v = i, p = ⟦first: *(volatile int*)(parent + v)⟧;
    while (p != v) { v = p; p = ⟦next: atomicAdd(parent + v, 0)⟧; }
    ⟦store: atomicMin(parent + i, v);⟧
  }
""", (
        fault(PLAIN, "link", link="parent[i] = col[row[i]];"),
        fault(PLAIN, "walk", next="parent[v]"),
        fault(PLAIN, "store", store="parent[i] = v;"),
        fault(NARROW, "link", link="atomicExch_block(parent + i, col[row[i]]);"),
        fault(NARROW, "store", store="atomicMin_block(parent + i, v);"),
        _VERTEX,
    ), "vertex", ("int",)),
    Pattern("worklist of blocks", """
  __shared__ int count, base;
  if (t == 0) count = 0;
  ⟦sync0: __syncthreads();⟧
  int mine = -1;
  if (⟦inside: i < nv⟧) if (row[i] < row[i + 1]) mine = ⟦take: atomicAdd_block(&count, 1)⟧;
  ⟦sync1: __syncthreads();⟧
  if (t == 0) { base = ⟦reserve: atomicAdd(flags, count)⟧; }
  ⟦sync2: __syncthreads();⟧
  if (mine >= 0) out[base + mine] = value[i];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(BARRIER, "third", sync2=""),
        fault(NARROW, "warps for the first", sync0="__syncwarp();"),
        fault(NARROW, "warps for the third", sync2="__syncwarp();"),
        fault(ATOMIC, "shared counter", take="count++"),
        fault(ATOMIC, "global counter", reserve="flags[0]; flags[0] = base + count"),
        fault(NARROW, "global counter", reserve="atomicAdd_block(flags, count)"),
        fault(MOVED, sync1="", sync2="__syncthreads(); __syncthreads();"),
        _VERTEX,
    ), "vertex"),
)  # fmt: skip
