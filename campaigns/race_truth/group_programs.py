"""Codes of warps and groups, asynchronous copies, producers and consumers within a block."""

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
    WAIT,
    Pattern,
    fault,
)

_ELEMENT = fault(BOUND, "element", inside="i <= n")
_FULL = 'asm volatile("bar.sync %0, $BLOCK;" ::"r"(1 + k % 2) : "memory");'
_FILL = 'asm volatile("bar.arrive %0, $BLOCK;" ::"r"(1 + k % 2) : "memory");'
_FREE = 'asm volatile("bar.arrive %0, $BLOCK;" ::"r"(3 + k % 2) : "memory");'
_EMPTY = 'asm volatile("bar.sync %0, $BLOCK;" ::"r"(3 + k % 2) : "memory");'

PATTERNS: tuple[Pattern, ...] = (
    Pattern("exchange in a warp", """
  __shared__ $T s[$BLOCK];
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦meet0: __syncwarp();⟧
  $T x = s[t ^ ⟦distance: 16⟧];
  ⟦meet1: __syncwarp();⟧
  s[t] = x + 1;
  ⟦meet2: __syncwarp();⟧
  if (i < n) o[i] = s[t ^ 1];
""", (
        fault(BARRIER, "first", meet0=""),
        fault(BARRIER, "second", meet1=""),
        fault(BARRIER, "third", meet2=""),
        fault(NARROW, "half warps", meet0="__syncwarp(t & 16 ? 0xffff0000u : 0xffffu);"),
        fault(NARROW, "beyond the warp", distance="32"),
        fault(MOVED, meet1="", meet2="__syncwarp(); __syncwarp();"),
        _ELEMENT,
    )),
    Pattern("branches of a warp", """
  __shared__ $T s[$BLOCK];
  if (t % 2) s[t] = i < n ? a[i] : ($T)0;
  ⟦meet: __syncwarp();⟧
  if (t % 2 == 0) s[t] = s[t + 1] + 1;
  ⟦meet1: __syncwarp();⟧
  if (⟦inside: i < n⟧) o[i] = s[t ^ 1];
""", (
        fault(BARRIER, "first", meet=""),
        fault(BARRIER, "second", meet1=""),
        fault(NARROW, "each branch alone",
              meet="if (t % 2) __syncwarp(0xaaaaaaaau); else __syncwarp(0x55555555u);"),
        _ELEMENT,
    )),
    Pattern("queue of a warp", """
  __shared__ int counts[32];
  __shared__ $T s[$BLOCK];
  const int w = t / 32, lane = t % 32;
  if (lane == 0) counts[w] = 0;
  ⟦meet0: __syncwarp();⟧
  if (i < n && (int)a[i] % 2) s[32 * w + ⟦take: atomicAdd_block(counts + w, 1)⟧] = a[i];
  ⟦meet1: __syncwarp();⟧
  if (lane < counts[w]) o[i % n] = s[t];
""", (
        fault(BARRIER, "first", meet0=""),
        fault(BARRIER, "second", meet1=""),
        fault(ATOMIC, take="counts[w]++"),
        fault(NARROW, "half warps", meet1="__syncwarp(t & 16 ? 0xffff0000u : 0xffffu);"),
    )),
    Pattern("tiles of a group", """
  __shared__ $T s[$BLOCK];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<⟦size: 16⟧>(block);
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: tile.sync();⟧
  $T x = s[t ^ ⟦distance: 8⟧];
  ⟦sync1: tile.sync();⟧
  s[t] = x;
  ⟦sync2: block.sync();⟧
  if (i < n) o[i] = s[$BLOCK - 1 - t];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(BARRIER, "third", sync2=""),
        fault(NARROW, "tile for the block", sync2="tile.sync();"),
        fault(NARROW, "size", size="8"),
        fault(NARROW, "beyond the tile", distance="16"),
        _ELEMENT,
    )),
    Pattern("reduction of a tile", """
  __shared__ $T s[$BLOCK];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  $T x = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  for (int k = tile.size() / 2; k > 0; k /= 2) x += tile.shfl_down(x, k);
  if (⟦first: tile.thread_rank() == 0⟧) { ⟦update: atomicAdd(o, x);⟧ }
""", (
        fault(ATOMIC, update="o[0] += x;"),
        fault(NARROW, update="atomicAdd_block(o, x);"),
        fault(PLAIN, update="if (o[0] < 1000000) atomicAdd(o, x);"),
        fault(GUARD, first="tile.thread_rank() <= 1", update="o[i / 32] = x;"),
        _ELEMENT,
    )),
    Pattern("coalesced threads", """
  if (⟦inside: i < n⟧) if ((int)a[i] % 3) {
    auto group = cg::coalesced_threads();
    int at = 0;
    if (group.thread_rank() == 0) { at = ⟦take: atomicAdd(flags, (int)group.size())⟧; }
    at = group.shfl(at, 0);
    o[at + ⟦rank: group.thread_rank()⟧] = a[i];
  }
""", (
        fault(ATOMIC, take="flags[0]; flags[0] = at + group.size()"),
        fault(NARROW, take="atomicAdd_block(flags, (int)group.size())"),
        fault(GUARD, "one place for all", rank="0"),
        fault(BOUND, "size", take="atomicAdd(flags, (int)group.size() - 1)"),
        _ELEMENT,
    )),
    Pattern("phases of a grid", """
  auto grid = cg::this_grid();
  if (⟦inside: i < n⟧) o[i] = a[i];
  ⟦sync0: grid.sync();⟧
  $T x = i < n ? o[n - 1 - i] : ($T)0;
  ⟦sync1: grid.sync();⟧
  if (i < n) o[i] = x + 1;
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(NARROW, "block for the first", sync0="__syncthreads();"),
        fault(NARROW, "block for the second", sync1="cg::this_thread_block().sync();"),
        fault(MOVED, sync0="", sync1="grid.sync(); grid.sync();"),
        _ELEMENT,
    ), cooperative=True),
    Pattern("producers and consumers", """
  __shared__ $T s[2][$BLOCK / 2];
  const int half = $BLOCK / 2;
  $T sum = 0;
  for (int k = 0; k < 4; k++) {
    if (t < half) {
      if (k >= 2) { ⟦empty: """ + _EMPTY + """⟧ }
      ⟦early: ⟧s[⟦into: k % 2⟧][t] = a[(i + k) % n];
      ⟦fill: """ + _FILL + """⟧
    } else {
      ⟦full: """ + _FULL + """⟧
      sum += s[k % 2][$BLOCK - 1 - t];
      if (k < 2) { ⟦free: """ + _FREE + """⟧ }
    }
  }
  if (t >= half && ⟦inside: i < n⟧) o[i] = sum;
""", (
        fault(BARRIER, "empty", empty="", free=""),
        fault(BARRIER, "full", fill="", full=""),
        fault(BUFFER, into="0"),
        fault(MOVED, "arrival", early=_FILL + " ", fill=""),
        _ELEMENT,
    )),
    Pattern("consumers by mbarriers", """
  __shared__ $T s[$BLOCK / 2];
  __shared__ __mbarrier_t bar;
  const int half = $BLOCK / 2;
  if (t == 0) __mbarrier_init(&bar, half);
  ⟦sync: __syncthreads();⟧
  if (t < half) {
    ⟦early: ⟧s[t] = a[i % n];
    ⟦arrive: __mbarrier_arrive(&bar);⟧
    ⟦late: ⟧
  } else {
    ⟦wait: while (!__mbarrier_test_wait_parity(&bar, false));⟧
    if (⟦inside: i < n⟧) o[i] = s[$BLOCK - 1 - t];
  }
""", (
        fault(BARRIER, "object", sync=""),
        fault(NARROW, "object", sync="__syncwarp();"),
        fault(BARRIER, "wait", wait=""),
        fault(MOVED, "arrival", early="__mbarrier_arrive(&bar); ", arrive=""),
        fault(BUFFER, late="s[t] = 0;"),
        _ELEMENT,
    )),
    Pattern("asynchronous copy", """
  __shared__ $T s[$BLOCK];
  __pipeline_memcpy_async(s + t, a + i % n, 4);
  __pipeline_commit();
  ⟦early: ⟧
  ⟦wait: __pipeline_wait_prior(0);⟧
  ⟦sync: __syncthreads();⟧
  if (⟦inside: i < n⟧) o[i] = s[⟦of: $BLOCK - 1 - t⟧];
""", (
        fault(WAIT, "others", wait=""),
        fault(WAIT, "own", wait="", sync="", of="t"),
        fault(BARRIER, sync=""),
        fault(MOVED, early="__syncthreads();", sync=""),
        _ELEMENT,
    )),
    Pattern("double buffer of asynchronous copies", """
  __shared__ $T s[2][$BLOCK];
  $T sum = 0;
  __pipeline_memcpy_async(s[0] + t, a + i % n, 4);
  __pipeline_commit();
  for (int k = 0; k < 4; k++) {
    if (k < 3) __pipeline_memcpy_async(s[⟦next: (k + 1) % 2⟧] + t, a + (i + k + 1) % n, 4);
    __pipeline_commit();
    ⟦wait: __pipeline_wait_prior(1);⟧
    ⟦sync0: __syncthreads();⟧
    sum += s[k % 2][$BLOCK - 1 - t];
    ⟦sync1: __syncthreads();⟧
  }
  if (⟦inside: i < n⟧) o[i] = sum;
""", (
        fault(WAIT, "none", wait=""),
        fault(WAIT, "one group too few", wait="__pipeline_wait_prior(2);"),
        fault(BARRIER, "after the wait", sync0=""),
        fault(BARRIER, "after reading", sync1=""),
        fault(NARROW, "warps after the wait", sync0="__syncwarp();"),
        fault(BUFFER, next="k % 2"),
        _ELEMENT,
    )),
)  # fmt: skip
