"""Codes of bulk copies and tensor cores as CUTLASS and others write them, right and with one fault.

Each kernel gets `in`, halves, and `out`. `Code.others` are further right ways to write it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import ptx
from campaigns.race_truth.program import HEADER_FILE

_SLOT: Final = re.compile(r"⟦(\w+): ?([^⟧]*)⟧")
_HEADER: Final = HEADER_FILE.read_text() + Path(__file__).with_name("tensor_cores.cuh").read_text()
Slots = dict[str, str]
HOPPER: Final = "sm_90a"
BLACKWELL: Final = "sm_100a"


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel's body with slots, `⟦name: right text⟧`, for `threads` threads of one block.

    Attributes:
        others: by a name, what other right programs put into slots.
        faults: likewise, with the words that a report must have.
    """

    name: str
    target: str
    threads: int
    body: str
    others: dict[str, Slots]
    faults: dict[str, tuple[str, Slots]]

    def programs(self) -> Iterator[Program]:
        """All of them."""
        for name, slots in {"right": {}, **self.others}.items():
            yield self.program(name, slots, "", is_right=True)
        for name, (words, slots) in self.faults.items():
            yield self.program(name, slots, words, is_right=False)

    def program(self, name: str, slots: Slots, words: str, *, is_right: bool) -> Program:
        """One of them; `words` stand in what is reported of it."""
        unknown = set(slots) - {found for found, _ in _SLOT.findall(self.body)}
        assert not unknown, (self.name, unknown)
        symbol = re.sub(r"\W", "_", f"{self.name} {name}")
        body = _SLOT.sub(lambda slot: slots.get(slot[1], slot[2]), self.body)
        text = (
            f'extern "C" __global__ void __launch_bounds__({self.threads}) {symbol}'
            "(const half* in, float* out) {\n"
            f"  const int t = threadIdx.x, warp = t / 32, lane = t % 32;\n{body}\n}}\n"
        )
        return Program(
            f"{self.name}: {name}", symbol, self.target, self.threads, is_right, words, text
        )


@dataclass(frozen=True, slots=True)
class Program:
    """One kernel; `words` stand in what is reported of it."""

    name: str
    symbol: str
    target: str
    threads: int
    is_right: bool
    words: str
    text: str


PROXY: Final = "proxy fence missing"
GROUP: Final = "wgmma.wait_group for the product"
RESULT: Final = "result not waited for"
COMMIT: Final = "tcgen05.commit, and a wait"
LOADS: Final = "tcgen05.wait::ld"
STORES: Final = "tcgen05.wait::st"
PLAIN: Final = "nothing orders the two"

_OPERANDS = Code("operands that threads write", HOPPER, 128, """
  __shared__ alignas(128) half a[A], b[B];
  ⟦early: ⟧
  ⟦write: for (int i = t; i < A; i += 128) a[i] = in[i]; b[t] = in[A + t];⟧
  ⟦fence: proxy_shared();⟧
  ⟦sync: __syncthreads();⟧
  ⟦late: ⟧
  float d[4] = {0, 0, 0, 0};
  wg::fence();
  wg::product(d, a, b);
  ⟦commit: wg::commit();⟧
  ⟦before: ⟧
  ⟦wait: wg::wait<0>(d);⟧
  ⟦end: __syncthreads();⟧
  a[t] = __float2half(1);
  wg::keep(out + t * 4, d);
""", {
    "fence of all spaces": {"fence": "async::proxy();"},
    "fence by the readers": {"fence": "", "late": "proxy_shared();"},
    "fence by one thread that knows all": {
        "fence": "", "late": "if (t == 40) proxy_shared(); __syncthreads();",
    },
    "overwritten after the own wait": {"end": ""},
    "fence of both directions by release": {
        "fence": 'asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta'
                 '.cluster;" ::: "memory");',
    },
}, {
    "no fence": (PROXY, {"fence": ""}),
    "fence before the writes": (PROXY, {"fence": "", "early": "proxy_shared();"}),
    "fence of one thread": (PROXY, {"fence": "if (t == 0) proxy_shared();"}),
    "fence of one warp": (PROXY, {"fence": "if (warp == 1) proxy_shared();"}),
    "fence of global memory": (PROXY, {"fence": "proxy_global();"}),
    "ordinary fence": (PROXY, {"fence": "__threadfence();"}),
    "no barrier": (PLAIN, {"sync": ""}),
    "no wait": (GROUP, {"wait": ""}),
    "no wait for the result": (RESULT, {"wait": ""}),
    "no commit": (RESULT, {"commit": ""}),
    "one group too few": (RESULT, {"wait": "wg::wait<1>(d);"}),
    "overwritten before the wait": (GROUP, {"before": "__syncthreads(); a[t] = __float2half(1);"}),
    "read before the wait": (RESULT, {"before": "out[600 + t] = d[0] + d[3];"}),
    "copied, and added before the wait": (RESULT, {
        "before": "float e = d[1]; if (t > 64) e = d[2]; e += 1; out[600 + t] = e;",
    }),
})  # fmt: skip

_RING = Code(
    "ring of bulk copies and products",
    HOPPER,
    160,
    """
  constexpr int S = 2;
  __shared__ alignas(128) half a[S][A], b[S][B];
  __shared__ async::Barrier full[S], empty[S];
  if (t == 0)
    for (int s = 0; s < S; s++) { async::init(full + s, 1); async::init(empty + s, ⟦count: 1⟧); }
  __syncthreads();
  if (t >= 128) {
    if (t == 128)
      for (int k = 0; k < 5; k++) {
        const int s = k % S;
        ⟦empty: async::wait(empty + s, (k / S & 1) ^ 1);⟧
        async::expect(full + s, 2 * (A + B));
        async::load(a[s], in, 2 * A, full + s);
        async::load(b[s], in + A, 2 * B, full + s);
      }
  } else {
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k < 5; k++) {
      const int s = k % S;
      ⟦full: async::wait(full + s, k / S & 1);⟧
      wg::fence();
      wg::product(d, a[s], b[s]);
      wg::commit();
      ⟦wait: wg::wait<1>();⟧
      ⟦release: if (k && t == 77) async::arrive(empty + (k + 1) % S);⟧
    }
    wg::wait<0>(d);
    wg::keep(out + t * 4, d);
  }
""",
    {
        "released by all": {
            "count": "128",
            "release": "if (k) async::arrive(empty + (k + 1) % S);",
        },
        "released by a lane of each warp": {
            "count": "4",
            "release": "if (k && lane == 5) async::arrive(empty + (k + 1) % S);",
        },
        "waited for at once": {
            "wait": "wg::wait<0>();",
            "release": "if (t == 100) async::arrive(empty + s);",
        },
    },
    {
        "released too early": (GROUP, {"release": "if (t == 77) async::arrive(empty + s);"}),
        "no wait": (GROUP, {"wait": ""}),
        "no wait for an empty slot": ("", {"empty": ""}),
        "no wait for a full slot": ("", {"full": ""}),
    },
)

_TWO_GROUPS = Code(
    "two warp groups with one factor",
    HOPPER,
    288,
    """
  __shared__ alignas(128) half a[2][A], b[2][B];
  __shared__ async::Barrier full[2], empty[2];
  if (t == 0)
    for (int s = 0; s < 2; s++) { async::init(full + s, 1); async::init(empty + s, ⟦count: 2⟧); }
  __syncthreads();
  if (t >= 256) {
    if (t == 256)
      for (int k = 0; k < 4; k++) {
        async::wait(empty + k % 2, (k / 2 & 1) ^ 1);
        async::expect(full + k % 2, 2 * B);
        async::load(b[k % 2], in, 2 * B, full + k % 2);
      }
  } else {
    for (int i = t % 128; i < A; i += 128) a[t / 128][i] = in[i];
    proxy_shared();
    named_barrier(1 + ⟦barrier: t / 128⟧, ⟦threads: 128⟧);
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; k++) {
      async::wait(full + k % 2, k / 2 & 1);
      wg::fence();
      wg::product(d, a[t / 128], b[k % 2]);
      wg::commit();
      ⟦wait: wg::wait<0>(d);⟧
      if (⟦who: t % 128 == 0⟧) async::arrive(empty + k % 2);
    }
    wg::wait<0>(d);
    wg::keep(out + t * 4, d);
  }
""",
    {"one barrier for both": {"barrier": "0", "threads": "256"}},
    {
        "released by one group alone": (GROUP, {"count": "1", "who": "t == 0"}),
        "one waits": (GROUP, {"wait": "if (t < 128) wg::wait<0>(d);"}),
    },
)

_REGISTERS = Code(
    "a factor in registers",
    HOPPER,
    160,
    """
  __shared__ alignas(128) half a[2][A], b[2][B];
  __shared__ async::Barrier full[2], empty[2];
  if (t == 0)
    for (int s = 0; s < 2; s++) { async::init(full + s, 1); async::init(empty + s, 128); }
  __syncthreads();
  if (t >= 128) {
    if (t == 128)
      for (int k = 0; k < 5; k++) {
        async::wait(empty + k % 2, (k / 2 & 1) ^ 1);
        async::expect(full + k % 2, 2 * (A + B));
        async::load(a[k % 2], in, 2 * A, full + k % 2);
        async::load(b[k % 2], in, 2 * B, full + k % 2);
      }
  } else {
    float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    for (int k = 0; k < 5; k++) {
      async::wait(full + k % 2, k / 2 & 1);
      const unsigned* from = (const unsigned*)a[k % 2] + t * 4;
      unsigned held[4] = {from[0], from[1], from[2], from[3]};
      wg::fence();
      wg::product_of(d, held, b[k % 2]);
      wg::commit();
      ⟦wait: wg::wait<0>(d);⟧
      for (int i = 0; i < 4; i++) held[i] = __float_as_uint(d[i]) & 0x3fff3fff;
      wg::fence();
      wg::product_of(e, held, b[k % 2]);
      wg::commit();
      wg::wait<0>(e);
      async::arrive(empty + k % 2);
    }
    wg::keep(out + t * 4, e);
  }
""",
    {},
    {"a result as a factor": (RESULT, {"wait": ""})},
)

_STORED = Code(
    "tiles stored by bulk copies",
    HOPPER,
    160,
    """
  __shared__ alignas(128) float s[2][128];
  for (int k = 0; k < 4; k++) {
    if (t < 128) {
      ⟦early: ⟧
      s[k % 2][t] = k + t;
      ⟦fence: proxy_shared();⟧
      ⟦sync: named_barrier(1, 128);⟧
      ⟦late: ⟧
      if (t == ⟦who: 96⟧) {
        async::store(out + k * 128, s[k % 2], 512);
        async::commit();
        ⟦wait: async::wait_reads<1>();⟧
      }
      ⟦end: named_barrier(1, 128);⟧
    }
  }
""",
    {
        "fence by the one that copies": {"fence": "", "late": "proxy_shared();"},
        "by the whole block": {"sync": "named_barrier(2, 128);"},
    },
    {
        "no fence": (PROXY, {"fence": ""}),
        "fence in the wrong place": (PROXY, {"fence": "", "early": "proxy_shared();"}),
        "fence of the one that copies, before the barrier": (
            PROXY,
            {"fence": "if (t == 96) proxy_shared();"},
        ),
        "no barrier": (PLAIN, {"sync": ""}),
        "no wait": ("", {"wait": ""}),
    },
)

_HANDED = Code(
    "tiles handed to a warp that stores them",
    HOPPER,
    160,
    """
  __shared__ alignas(128) float s[2][128];
  __shared__ async::Barrier full[2], empty[2];
  if (t == 0)
    for (int k = 0; k < 2; k++) { async::init(full + k, ⟦count: 128⟧); async::init(empty + k, 1); }
  __syncthreads();
  if (t < 128) {
    for (int k = 0; k < 5; k++) {
      async::wait(empty + k % 2, (k / 2 & 1) ^ 1);
      ⟦early: ⟧
      s[k % 2][t] = k + t;
      ⟦fence: proxy_shared();⟧
      ⟦arrive: async::arrive(full + k % 2);⟧
    }
  } else if (t == 128) {
    for (int k = 0; k < 5; k++) {
      async::wait(full + k % 2, k / 2 & 1);
      ⟦late: ⟧
      async::store(out + k * 128, s[k % 2], 512);
      async::commit();
      async::wait_reads<0>();
      async::arrive(empty + k % 2);
    }
  }
""",
    {
        "fence by the one that stores": {"fence": "", "late": "proxy_shared();"},
        "one lane fences and arrives for its warp": {
            "count": "4",
            "fence": "__syncwarp();",
            "arrive": "if (lane == 3) { proxy_shared(); async::arrive(full + k % 2); }",
        },
        "one lane arrives for its warp": {
            "count": "4",
            "arrive": "__syncwarp(); if (lane == 0) async::arrive(full + k % 2);",
        },
    },
    {
        "no fence": (PROXY, {"fence": ""}),
        "fence behind the arrival": (
            PROXY,
            {"fence": "", "arrive": "async::arrive(full + k % 2); proxy_shared();"},
        ),
        "fence before the writes": (PROXY, {"fence": "", "early": "proxy_shared();"}),
        "one lane fences before its warp meets": (
            PROXY,
            {
                "count": "4",
                "fence": "if (lane == 0) proxy_shared();",
                "arrive": "__syncwarp(); if (lane == 0) async::arrive(full + k % 2);",
            },
        ),
    },
)

_GLOBAL = Code(
    "global memory read by a bulk copy",
    HOPPER,
    128,
    """
  __shared__ alignas(128) float s[128];
  __shared__ async::Barrier bar;
  if (t == 0) async::init(&bar, 1);
  out[t] = t;
  ⟦fence: async::proxy();⟧
  __syncthreads();
  if (t == 0) {
    async::expect(&bar, 512);
    async::load(s, out, 512, &bar);
  }
  async::wait(&bar, 0);
  out[128 + t] = s[127 - t];
""",
    {"of global memory": {"fence": "proxy_global();"}},
    {"no fence": (PROXY, {"fence": ""}), "of shared memory": (PROXY, {"fence": "proxy_shared();"})},
)

_LOADED = Code(
    "tiles loaded again",
    HOPPER,
    128,
    """
  __shared__ alignas(128) float s[128];
  __shared__ async::Barrier bar;
  if (t == 0) async::init(&bar, 1);
  ⟦fill: s[t] = 0;⟧
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 3; k++) {
    if (t == 0) {
      async::expect(&bar, 512);
      async::load(s, in, 512, &bar);
    }
    async::wait(&bar, k & 1);
    sum += s[127 - t];
    ⟦sync: __syncthreads();⟧
  }
  out[t] = sum;
""",
    {},
    {"no barrier": (PLAIN, {"sync": ""})},
)

_START = """
  __shared__ alignas(1024) half a[2][tc::A], b[2][tc::B];
  __shared__ async::Barrier bars[4];
  __shared__ unsigned where;
  if (t == 0)
    for (int k = 0; k < 4; k++) async::init(bars + k, 1);
  if (warp == 0) tc::allocate(&where);
"""
_TENSOR = Code("a product in tensor memory", BLACKWELL, 128, _START + """
  for (int i = t; i < tc::A; i += 128) a[0][i] = in[i];
  for (int i = t; i < tc::B; i += 128) b[0][i] = in[i];
  ⟦fence: proxy_shared();⟧
  tc::before_sync();
  __syncthreads();
  tc::after_sync();
  const unsigned d = where;
  if (t == 0) {
    tc::product(d, a[0], b[0], 0);
    ⟦commit: tc::commit(bars);⟧
  }
  ⟦early: ⟧
  ⟦wait: async::wait(bars, 0);⟧
  ⟦after: tc::after_sync();⟧
  unsigned v[8];
  tc::load(v, d);
  ⟦loaded: tc::wait_loads();⟧
  tc::keep((unsigned*)out + t * 8, v);
  a[0][t] = __float2half(0);
  tc::before_sync();
  __syncthreads();
  if (warp == 0) tc::free(d);
""", {
    "without a fence of tcgen05": {"after": ""},
    "stored before the wait, as compilers do": {
        "loaded": "tc::keep((unsigned*)out + t * 8, v); tc::wait_loads();",
    },
    "calculated before the wait": {
        "loaded": "for (int i = 0; i < 8; i++) v[i] += 1; tc::wait_loads();",
    },
}, {
    "no proxy fence": (PROXY, {"fence": ""}),
    "proxy fence of one thread": (PROXY, {"fence": "if (t == 0) proxy_shared();"}),
    "barrier instead of the wait": (COMMIT, {"wait": "__syncthreads();"}),
    "wait of one thread": ("", {"wait": "if (t == 0) async::wait(bars, 0);"}),
    "operand overwritten": (COMMIT, {"early": "__syncthreads(); a[0][t] = __float2half(0);"}),
    "loads not waited for": (RESULT, {"loaded": ""}),
    "loads not waited for, later": (RESULT, {"loaded": "__syncthreads();"}),
    "loads that decide before the wait": (RESULT, {
        "loaded": "if (v[1] == 7) out[0] = 1; __syncthreads(); tc::wait_loads();",
    }),
})  # fmt: skip

_TENSOR_RING = Code(
    "bulk copies and products in tensor memory",
    BLACKWELL,
    192,
    _START
    + """
  __shared__ async::Barrier done;
  if (t == 0) async::init(&done, 1);
  tc::before_sync();
  __syncthreads();
  tc::after_sync();
  async::Barrier *full = bars, *empty = bars + 2;
  const unsigned d = where;
  if (t == 128) {
    for (int k = 0; k < 5; k++) {
      ⟦empty: async::wait(empty + k % 2, (k / 2 & 1) ^ 1);⟧
      async::expect(full + k % 2, 2 * (tc::A + tc::B));
      async::load(a[k % 2], in, 2 * tc::A, full + k % 2);
      async::load(b[k % 2], in, 2 * tc::B, full + k % 2);
    }
  } else if (t == 160) {
    for (int k = 0; k < 5; k++) {
      async::wait(full + k % 2, k / 2 & 1);
      tc::after_sync();
      ⟦release: ⟧
      tc::product(d, a[k % 2], b[k % 2], k > 0);
      ⟦commit: tc::commit(empty + k % 2);⟧
    }
    ⟦end: tc::commit(&done);⟧
  } else if (t < 128) {
    ⟦done: async::wait(&done, 0);⟧
    tc::after_sync();
    unsigned v[8];
    tc::load(v, d);
    tc::wait_loads();
    tc::keep((unsigned*)out + t * 8, v);
    ⟦reuse: a[1][t] = b[0][t] = __float2half(0);⟧
  }
  tc::before_sync();
  __syncthreads();
  if (warp == 0) tc::free(d);
""",
    {},
    {
        "released by an arrival": (COMMIT, {"commit": "async::arrive(empty + k % 2);"}),
        "released before the product": (
            COMMIT,
            {"release": "tc::commit(empty + k % 2);", "commit": ""},
        ),
        "done before the last product": (
            COMMIT,
            {"release": "if (k == 4) tc::commit(&done);", "end": ""},
        ),
        "not waited for": ("", {"done": ""}),
        "no wait for an empty slot": ("", {"empty": ""}),
    },
)

_SUMS = Code(
    "sums in tensor memory, read while others are made",
    BLACKWELL,
    160,
    _START
    + """
  for (int i = t; i < tc::A; i += 160) a[0][i] = in[i];
  for (int i = t; i < tc::B; i += 160) b[0][i] = in[i];
  if (t == 0)
    for (int k = 0; k < 2; k++) { async::init(bars + 2 + k, ⟦count: 128⟧); }
  proxy_shared();
  tc::before_sync();
  __syncthreads();
  tc::after_sync();
  async::Barrier *full = bars, *empty = bars + 2;
  const unsigned d = where;
  if (t == 128) {
    for (int k = 0; k < 4; k++) {
      async::wait(empty + k % 2, (k / 2 & 1) ^ 1);
      tc::after_sync();
      tc::product(d + k % 2 * ⟦columns: 16⟧, a[0], b[0], 0);
      tc::commit(full + k % 2);
    }
  } else if (t < 128) {
    unsigned v[8], sum = 0;
    for (int k = 0; k < 4; k++) {
      async::wait(full + k % 2, k / 2 & 1);
      tc::after_sync();
      tc::load(v, d + k % 2 * ⟦columns: 16⟧);
      ⟦loaded: tc::wait_loads();⟧
      tc::before_sync();
      ⟦arrive: async::arrive(empty + k % 2);⟧
      ⟦late: ⟧
      sum += v[0];
    }
    out[t] = __uint_as_float(sum);
  }
  tc::before_sync();
  __syncthreads();
  if (warp == 0) tc::free(d);
""",
    {
        "one lane arrives for its warp": {
            "count": "4",
            "arrive": "if (lane == 9) async::arrive(empty + k % 2);",
        }
    },
    {
        "arrival before the loads are done": (LOADS, {"loaded": "", "late": "tc::wait_loads();"}),
        "one place for two": ("", {"columns": "8"}),
    },
)

_STORED_FACTOR = Code(
    "a factor stored to tensor memory",
    BLACKWELL,
    128,
    _START
    + """
  for (int i = t; i < tc::B; i += 128) b[0][i] = in[i];
  proxy_shared();
  tc::before_sync();
  __syncthreads();
  tc::after_sync();
  const unsigned d = where;
  unsigned v[8];
  for (int i = 0; i < 8; i++) v[i] = ((const unsigned*)in)[t * 8 + i];
  tc::store(d + 32, v);
  ⟦stored: tc::wait_stores();⟧
  tc::before_sync();
  ⟦sync: __syncthreads();⟧
  tc::after_sync();
  if (t == 0) {
    tc::product_of(d, d + 32, b[0], 0);
    tc::commit(bars);
  }
  ⟦wait: async::wait(bars, 0);⟧
  tc::after_sync();
  ⟦again: tc::store(d + 32, v); tc::wait_stores();⟧
  tc::load(v, d);
  tc::wait_loads();
  tc::keep((unsigned*)out + t * 8, v);
  tc::before_sync();
  __syncthreads();
  if (warp == 0) tc::free(d);
""",
    {},
    {
        "stores not waited for": (STORES, {"stored": ""}),
        "no barrier": (PLAIN, {"sync": ""}),
        "stored again too early": (COMMIT, {"wait": "__syncthreads();"}),
    },
)

_COPIED = Code(
    "rows copied to tensor memory",
    BLACKWELL,
    128,
    _START
    + """
  for (int i = t; i < tc::A; i += 128) a[0][i] = in[i];
  for (int i = t; i < tc::B; i += 128) b[0][i] = in[i];
  ⟦fence: proxy_shared();⟧
  tc::before_sync();
  __syncthreads();
  tc::after_sync();
  const unsigned d = where;
  if (t == 0) {
    tc::copy(d + 32, a[0]);
    tc::product_of(d, d + 32, b[0], 0);
    tc::commit(bars);
  }
  ⟦early: ⟧
  async::wait(bars, 0);
  tc::after_sync();
  unsigned v[8];
  tc::load(v, d);
  tc::wait_loads();
  tc::keep((unsigned*)out + t * 8, v);
  tc::before_sync();
  __syncthreads();
  if (warp == 0) tc::free(d);
""",
    {},
    {
        "no proxy fence": (PROXY, {"fence": ""}),
        "source overwritten": (COMMIT, {"early": "__syncthreads(); a[0][t] = __float2half(0);"}),
    },
)

CODES: Final = (
    _OPERANDS, _RING, _TWO_GROUPS, _REGISTERS, _STORED, _HANDED, _GLOBAL, _LOADED, _TENSOR,
    _TENSOR_RING, _SUMS, _STORED_FACTOR, _COPIED,
)  # fmt: skip
PROGRAMS: Final = tuple(each for code in CODES for each in code.programs())
_COPY: Final = """
  for (int i = 8 * t; i < A + B; i += 8 * 128)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(HERE(i < A ? a + i : b + i - A)), "l"(in + i) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");"""
LIKELY_INTENTIONAL: Final = _OPERANDS.program(
    "copied without a fence", {"write": _COPY, "fence": ""}, PROXY, is_right=False
)
"""NVIDIA's libraries leave out the proxy fence after cp.async."""


@functools.cache
def compiled(target: str) -> str:
    """The PTX of all programs for a target."""
    texts = [each.text for each in (*PROGRAMS, LIKELY_INTENTIONAL) if each.target == target]
    source = ("#define HOPPER\n" if target == HOPPER else "") + _HEADER + "\n".join(texts)
    # Each program uses a part of the functions and values that all of them have.
    unused = ("--diag-suppress=177",)
    options = ptx.CompileOptions(target=ptx.Target.ptx(target), lineinfo=True, extra=unused)
    text = ptx.compile(source, options, name="tensor_cores.cu").ptx
    assert text is not None
    return text
