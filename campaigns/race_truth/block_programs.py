"""Codes of blocks: reductions, scans, stencils, histograms, sorting, tiles, double buffers."""

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
    Pattern,
    fault,
)

_ELEMENT = fault(BOUND, "element", inside="i <= n")
_ADDED = (
    fault(ATOMIC, update="o[0] += s[0];"),
    fault(NARROW, "atomic", update="atomicAdd_block(o, s[0]);"),
    fault(PLAIN, "read before", update="if (o[0] < 1000000) atomicAdd(o, s[0]);"),
    fault(GUARD, update="atomicAdd(flags, 1); o[0] += s[0];"),
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern("reduction", """
  __shared__ $T s[$BLOCK];
  ⟦early: ⟧s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: __syncthreads();⟧
  for (int k = $BLOCK / 2; k > 0; k /= 2) {
    if (⟦half: t < k⟧) s[t] += s[t + k];
    ⟦sync1: __syncthreads();⟧
  }
  if (⟦first: t == 0⟧) { ⟦update: atomicAdd(o, s[0]);⟧ }
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "in the loop", sync1=""),
        fault(BARRIER, "below a warp", sync1="if (k > 32) __syncthreads();"),
        fault(NARROW, "warps", only=256, sync1="__syncwarp();"),
        fault(MOVED, early="__syncthreads(); ", sync0=""),
        fault(BOUND, "half", half="t <= k && t + k < $BLOCK"),
        fault(GUARD, "all threads", first="true", update="o[blockIdx.x] = s[t];"),
        *_ADDED, _ELEMENT,
    )),
    Pattern("reduction by warps", """
  __shared__ $T s[32];
  $T x = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  for (int k = 16; k > 0; k /= 2) x += __shfl_down_sync(~0u, x, k);
  ⟦early: ⟧if (⟦first: t % 32 == 0⟧) s[t / 32] = x;
  ⟦sync: __syncthreads();⟧
  if (t < 32) {
    x = t < $BLOCK / 32 ? s[t] : ($T)0;
    for (int k = 16; k > 0; k /= 2) x += __shfl_down_sync(~0u, x, k);
    if (t == 0) { s[0] = x; ⟦update: atomicAdd(o, s[0]);⟧ }
  }
""", (
        fault(BARRIER, sync=""),
        fault(NARROW, "warps", sync="__syncwarp();"),
        fault(MOVED, early="__syncthreads(); ", sync=""),
        fault(BOUND, "lanes", first="t % 32 <= 1"),
        *_ADDED, _ELEMENT,
    )),
    Pattern("reduction in the last warp", """
  __shared__ $T s[$BLOCK];
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  __syncthreads();
  for (int k = $BLOCK / 2; k > 32; k /= 2) {
    if (t < k) s[t] += s[t + k];
    ⟦sync: __syncthreads();⟧
  }
  if (t < 32) {
    $T x = s[t] + s[t + 32];
    s[t] = x; ⟦meet0: __syncwarp();⟧
    for (int k = 16; k > 0; k /= 2) {
      x += s[t ^ k]; ⟦meet1: __syncwarp();⟧
      s[t] = x; ⟦meet2: __syncwarp();⟧
    }
  }
  if (t == 0) { ⟦update: atomicAdd(o, s[0]);⟧ }
""", (
        fault(BARRIER, "of the warp before", meet0=""),
        fault(BARRIER, "of the warp after reading", meet1=""),
        fault(BARRIER, "of the warp after writing", meet2=""),
        fault(NARROW, "half warps", meet0="__syncwarp(t < 16 ? 0xffffu : 0xffff0000u);"),
        *_ADDED,
    )),
    Pattern("scan", """
  __shared__ $T s[$BLOCK];
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: __syncthreads();⟧
  for (int k = 1; k < $BLOCK; k *= 2) {
    ⟦early: ⟧$T y = ⟦far: t >= k⟧ ? s[t - k] : ($T)0;
    ⟦sync1: __syncthreads();⟧
    s[t] += y;
    ⟦sync2: __syncthreads();⟧
  }
  if (i < n) o[i] = s[t];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "after reading", sync1=""),
        fault(BARRIER, "after writing", sync2=""),
        fault(NARROW, "warps after reading", sync1="__syncwarp();"),
        fault(NARROW, "warps after writing", sync2="__syncwarp();"),
        fault(MOVED, early="__syncthreads(); ", sync1=""),
        fault(BOUND, "distance", far="t >= k - 1"),
        _ELEMENT,
    )),
    Pattern("scan with two buffers", """
  __shared__ $T s[2][$BLOCK];
  int now = 0;
  s[0][t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: __syncthreads();⟧
  for (int k = 1; k < $BLOCK; k *= 2) {
    s[⟦next: 1 - now⟧][t] = s[now][t] + (t >= k ? s[now][t - k] : ($T)0);
    now = ⟦next2: 1 - now⟧;
    ⟦sync1: __syncthreads();⟧
  }
  if (i < n) o[i] = s[now][t];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "in the loop", sync1=""),
        fault(NARROW, "warps", sync1="__syncwarp();"),
        fault(BUFFER, next="now", next2="now"),
        _ELEMENT,
    )),
    Pattern("scan of a tree", """
  __shared__ $T s[$BLOCK];
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  for (int k = 1; k < $BLOCK; k *= 2) {
    ⟦sync0: __syncthreads();⟧
    int at = (t + 1) * 2 * k - 1;
    if (at < $BLOCK) s[at] += s[at - k];
  }
  if (⟦last: t == 0⟧) s[$BLOCK - 1] = 0;
  for (int k = $BLOCK / 2; k > 0; k /= 2) {
    ⟦sync1: __syncthreads();⟧
    int at = (t + 1) * 2 * k - 1;
    if (at < $BLOCK) { $T y = s[at - k]; s[at - k] = s[at]; s[at] += y; }
  }
  ⟦sync2: __syncthreads();⟧
  if (i < n) o[i] = s[t];
""", (
        fault(BARRIER, "up", sync0=""),
        fault(BARRIER, "down", sync1=""),
        fault(BARRIER, "last", sync2=""),
        fault(NARROW, "warps", only=256, sync1="__syncwarp();"),
        fault(GUARD, "other thread", last="t == $BLOCK - 1"),
        _ELEMENT,
    )),
    Pattern("scan by warps", """
  __shared__ $T s[32];
  $T x = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  for (int k = 1; k < 32; k *= 2) { $T y = __shfl_up_sync(~0u, x, k); if (t % 32 >= k) x += y; }
  if (⟦last: t % 32 == 31⟧) s[t / 32] = x;
  ⟦sync0: __syncthreads();⟧
  if (t < 32) {
    $T y = t < $BLOCK / 32 ? s[t] : ($T)0;
    for (int k = 1; k < 32; k *= 2) { $T z = __shfl_up_sync(~0u, y, k); if (t >= k) y += z; }
    if (t < $BLOCK / 32) s[t] = y;
  }
  ⟦sync1: __syncthreads();⟧
  if (i < n) o[i] = x + (t >= 32 ? s[t / 32 - 1] : ($T)0);
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(NARROW, "warps for the second", sync1="__syncwarp();"),
        fault(BOUND, "lanes", last="t % 32 >= 30"),
        _ELEMENT,
    )),
    Pattern("stencil", """
  if (⟦low: i > 0⟧ && ⟦high: i < n - 1⟧) ⟦to: o[i]⟧ = a[i - 1] + a[i] + a[i + 1];
""", (
        fault(BUFFER, to="a[i]"),
        fault(BOUND, "low", low="i >= 0"),
        fault(BOUND, "high", high="i < n"),
        fault(BOUND, "written", to="o[i & ~1]"),
    )),
    Pattern("stencil of tiles", """
  __shared__ $T s[$BLOCK + 2];
  s[t + 1] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  if (t == 0) s[0] = i > 0 ? a[i - 1] : ($T)0;
  if (⟦last: t == $BLOCK - 1⟧) s[$BLOCK + 1] = i < n - 1 ? a[i + 1] : ($T)0;
  ⟦sync: __syncthreads();⟧
  if (i < n) o[i] = s[t] + s[t + 1] + s[t + 2];
""", (
        fault(BARRIER, sync=""),
        fault(NARROW, "warps", sync="__syncwarp();"),
        fault(GUARD, "some threads meet", sync="if (t % 2) __syncwarp(0xaaaaaaaau);"),
        fault(BOUND, "halo", last="t >= $BLOCK - 2"),
        _ELEMENT,
    )),
    Pattern("stencil in steps", """
  __shared__ $T s[$BLOCK];
  s[t] = i < n ? a[i] : ($T)0;
  ⟦sync0: __syncthreads();⟧
  for (int k = 0; k < 3; k++) {
    $T x = s[t > 0 ? t - 1 : 0] + s[t < $BLOCK - 1 ? t + 1 : t];
    ⟦sync1: __syncthreads();⟧
    s[t] = x;
    ⟦sync2: __syncthreads();⟧
  }
  if (⟦inside: i < n⟧) o[i] = s[t];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "after reading", sync1=""),
        fault(BARRIER, "after writing", sync2=""),
        fault(NARROW, "warps", sync1="__syncwarp();"),
        fault(MOVED, sync1="", sync2="__syncthreads(); __syncthreads();"),
        _ELEMENT,
    )),
    Pattern("stencil in two dimensions", """
  __shared__ $T s[$BLOCK / 8 + 2][8 + 2];
  const int x = t % 8, y = t / 8;
  for (int at = t; at < ($BLOCK / 8 + 2) * 10; at += $BLOCK) s[at / 10][at % 10] = 0;
  ⟦sync0: __syncthreads();⟧
  s[y + 1][x + 1] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync1: __syncthreads();⟧
  $T sum = s[y][x + 1] + s[y + 2][x + 1] + s[y + 1][x] + s[y + 1][x + 2];
  if (i < n) ⟦to: o[i]⟧ = sum;
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(NARROW, "warps", sync1="__syncwarp();"),
        fault(BOUND, "written", to="o[i / 2]"),
        _ELEMENT,
    )),
    Pattern("stencil over the grid", """
  cg::grid_group grid = cg::this_grid();
  for (int k = 0; k < 2; k++) {
    $T* from = k ? o : a;
    $T* to = ⟦to: k ? a : o⟧;
    if (i > 0 && i < n - 1) to[i] = from[i - 1] + from[i + 1];
    ⟦sync: grid.sync();⟧
  }
""", (
        fault(BARRIER, sync=""),
        fault(NARROW, "block", sync="__syncthreads();"),
        fault(BUFFER, to="from"),
    ), cooperative=True),
    Pattern("histogram", """
  if (⟦inside: i < n⟧) { ⟦update: atomicAdd(o + (int)a[i] % 4, ($T)1);⟧ }
""", (
        fault(ATOMIC, update="o[(int)a[i] % 4] += 1;"),
        fault(NARROW, "atomic", update="atomicAdd_block(o + (int)a[i] % 4, ($T)1);"),
        fault(PLAIN, "read before",
              update="if (o[(int)a[i] % 4] < 1000000) atomicAdd(o + (int)a[i] % 4, ($T)1);"),
        fault(PLAIN, "read after",
              update="atomicAdd(o + (int)a[i] % 4, ($T)1); flags[i] = o[i % 4] > 7;"),
        fault(GUARD, update="atomicAdd(flags + (int)a[i] % 4, 1); o[(int)a[i] % 4] += 1;"),
        _ELEMENT,
    )),
    Pattern("histogram of blocks", """
  __shared__ $T s[8];
  if (t < ⟦bins: 8⟧) s[t] = 0;
  ⟦sync0: __syncthreads();⟧
  if (⟦inside: i < n⟧) { ⟦count: atomicAdd_block(s + (int)a[i] % 8, ($T)1);⟧ }
  ⟦sync1: __syncthreads();⟧
  if (t < 4) { ⟦merge: atomicAdd(o + t, s[t] + s[t + 4]);⟧ }
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(NARROW, "warps for the second", sync1="__syncwarp();"),
        fault(ATOMIC, "counting", count="s[(int)a[i] % 8] += 1;"),
        fault(ATOMIC, "merging", merge="o[t] += s[t] + s[t + 4];"),
        fault(NARROW, "merging", merge="atomicAdd_block(o + t, s[t] + s[t + 4]);"),
        fault(PLAIN, "read before",
              merge="if (o[t] < 1000000) atomicAdd(o + t, s[t] + s[t + 4]);"),
        fault(MOVED, sync0="", sync1="__syncthreads(); __syncthreads();"),
        _ELEMENT,
    )),
    Pattern("transposition", """
  __shared__ $T s[$BLOCK];
  const int wide = $BLOCK / 8;
  if (i < n) s[t] = a[i]; else s[t] = 0;
  ⟦sync: __syncthreads();⟧
  if (⟦inside: i < n⟧) o[i] = s[t % 8 * wide + t / 8];
""", (
        fault(BARRIER, sync=""),
        fault(NARROW, "warps", sync="__syncwarp();"),
        fault(NARROW, "named barriers of warps",
              sync='asm volatile("bar.sync %0, 32;" ::"r"(t / 32 + 1) : "memory");'),
        _ELEMENT,
    )),
    Pattern("tiles in a loop", """
  __shared__ $T s[$BLOCK];
  $T sum = 0;
  for (int k = 0; k < 3; k++) {
    s[t] = ⟦inside: i < n⟧ ? a[(i + k) % n] : a[i % n];
    ⟦sync0: __syncthreads();⟧
    sum += s[$BLOCK - 1 - t] + s[(t + 1) % $BLOCK];
    ⟦sync1: __syncthreads();⟧
  }
  if (i < n) o[i] = sum;
""", (
        fault(BARRIER, "after writing", sync0=""),
        fault(BARRIER, "after reading", sync1=""),
        fault(NARROW, "warps after writing", sync0="__syncwarp();"),
        fault(NARROW, "warps after reading", sync1="__syncwarp();"),
        fault(MOVED, sync0="", sync1="__syncthreads(); __syncthreads();"),
    )),
    Pattern("odd even sort", """
  __shared__ $T s[$BLOCK];
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: __syncthreads();⟧
  for (int k = 0; k < 6; k++) {
    int at = 2 * t + k % 2;
    if (at + 1 < $BLOCK && s[at] > s[at + 1]) { $T x = s[at]; s[at] = s[at + 1]; s[at + 1] = x; }
    ⟦sync1: __syncthreads();⟧
  }
  if (i < n) o[i] = s[t];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "in the loop", sync1=""),
        fault(NARROW, "warps", only=256, sync1="__syncwarp();"),
        _ELEMENT,
    )),
    Pattern("double buffer", """
  __shared__ $T s[2][$BLOCK];
  $T sum = 0;
  s[0][t] = a[i % n];
  ⟦sync0: __syncthreads();⟧
  for (int k = 0; k < 4; k++) {
    if (k < 3) s[⟦next: (k + 1) % 2⟧][t] = a[(i + k + 1) % n];
    ⟦early: ⟧sum += s[k % 2][$BLOCK - 1 - t];
    ⟦sync1: __syncthreads();⟧
  }
  if (⟦inside: i < n⟧) o[i] = sum;
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "in the loop", sync1=""),
        fault(NARROW, "warps", sync1="__syncwarp();"),
        fault(BUFFER, next="k % 2"),
        fault(MOVED, early="__syncthreads(); ", sync1=""),
        _ELEMENT,
    )),
    Pattern("work taken by blocks", """
  __shared__ int next;
  for (;;) {
    if (t == 0) { next = ⟦take: atomicAdd(flags, $BLOCK)⟧; }
    ⟦sync0: __syncthreads();⟧
    int at = next + t;
    ⟦sync1: __syncthreads();⟧
    if (at - t >= n) break;
    if (⟦inside: at < n⟧) o[at] = a[at] + 1;
  }
""", (
        fault(BARRIER, "after taking", sync0=""),
        fault(BARRIER, "after reading", sync1=""),
        fault(NARROW, "warps after taking", sync0="__syncwarp();"),
        fault(ATOMIC, take="flags[0]; flags[0] = next + $BLOCK"),
        fault(NARROW, "atomic", take="atomicAdd_block(flags, $BLOCK)"),
        fault(PLAIN, "read before", take="flags[0] >= n ? n : atomicAdd(flags, $BLOCK)"),
        fault(BOUND, "element", inside="at <= n"),
    )),
    Pattern("hash table", """
  if (⟦inside: i < n⟧) {
    int key = (int)a[i] / 2 + 1, at = key % n;
    for (;;) {
      ⟦claim: int old = atomicCAS(flags + 64 + at, 0, key);⟧
      if (old == 0 || old == key) break;
      at = (at + 1) % n;
    }
    ⟦add: atomicAdd(o + at, ($T)1);⟧
  }
""", (
        fault(ATOMIC, "claim",
              claim="int old = flags[64 + at]; if (old == 0) flags[64 + at] = key;"),
        fault(ATOMIC, "add", add="o[at] += 1;"),
        fault(NARROW, "claim", claim="int old = atomicCAS_block(flags + 64 + at, 0, key);"),
        fault(NARROW, "add", add="atomicAdd_block(o + at, ($T)1);"),
        fault(PLAIN, "add", add="if (o[at] < 1000) atomicAdd(o + at, ($T)1);"),
        _ELEMENT,
    )),
)  # fmt: skip
