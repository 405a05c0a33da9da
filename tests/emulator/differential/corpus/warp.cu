// Warps: shuffles, votes, matches, reductions over lanes, also where lanes part.
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void
#define LANE (threadIdx.x & 31)
#define ALL 0xffffffffu

#define SHUFFLE(mode, b, c, row)                                                                       \
  asm volatile("{ .reg .pred p; shfl.sync." mode ".b32 %0|p, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, p; }" \
               : "=r"(r), "=r"(q) : "r"(v), "r"(b), "r"(c));                                           \
  out[(row) * n + i] = mode[0] == 'i' || q || true ? r : 0; out[((row) + 1) * n + i] = q;
KERNEL shuffle_modes(const unsigned* x, const unsigned* y, unsigned* out, int n) {
  unsigned i = I, v = x[i], w = y[i] & 31, r, q;
  SHUFFLE("idx", w, 31, 0) SHUFFLE("up", 3, 0, 2) SHUFFLE("down", 5, 31, 4) SHUFFLE("bfly", 9, 31, 6)
  SHUFFLE("idx", w, 0x181f, 8) SHUFFLE("up", 2, 0x1800, 10) SHUFFLE("down", 1, 0x181f, 12) SHUFFLE("bfly", 5, 0x181f, 14)
  SHUFFLE("bfly", 16, 0x1c07, 16) SHUFFLE("idx", y[i], 0x1e1f, 18) SHUFFLE("up", y[i & ~31] & 31, 0, 20)
  SHUFFLE("down", y[i & ~31] & 31, 31, 22) SHUFFLE("bfly", y[i & ~31] & 31, 31, 24) SHUFFLE("idx", w, 0x0f, 26)
}
KERNEL shuffle_widths(const int* x, const double* y, const long long* z, double* out, int n) {
  int i = I;
  out[i] = __shfl_sync(ALL, x[i], 3, 8) + __shfl_up_sync(ALL, x[i], 1, 16);
  out[n + i] = __shfl_down_sync(ALL, y[i], 2, 4);
  out[2 * n + i] = __shfl_xor_sync(ALL, y[i], 12);
  out[3 * n + i] = (double)__shfl_sync(ALL, z[i], LANE ^ 7, 32);
  out[4 * n + i] = __shfl_down_sync(ALL, (float)y[i], 16);
}
KERNEL shuffle_parted(const int* x, int* out) {
  int i = I, v = x[i], r;
  if (LANE < 12) r = __shfl_sync(0x00000fffu, v, (LANE + 5) % 12) * 3;
  else if (LANE & 1) r = __shfl_xor_sync(0xaaaaa000u, v, 2 + (LANE & 0)) + 7;
  else r = __shfl_up_sync(0x55555000u, v, 0) - 1;
  __syncwarp();
  out[i] = r + __shfl_sync(ALL, r, 31 - LANE);
}
// Lanes that come to the same instruction by different ways.
KERNEL shuffle_met(const int* x, int* out) {
  int i = I, v = x[i], k = 0;
  for (int j = 0; j < (int)LANE % 5; j++) k += v >> j;
  if (v & 1) k = k * 3 + 1; else if (v & 2) k -= 5;
  int r = __shfl_xor_sync(ALL, k, 1);
  while (r > 1000) r /= 3;
  out[i] = __shfl_down_sync(ALL, r, 4);
}
KERNEL votes(const unsigned* x, unsigned* out, int n) {
  unsigned i = I, v = x[i];
  out[i] = __ballot_sync(ALL, v & 1);
  out[n + i] = __all_sync(ALL, v >= i) + 2 * __any_sync(ALL, v == 5) + 4 * __uni_sync(ALL, (v & 3) < 4);
  unsigned r = 0;
  if (v & 1) r = __popc(__ballot_sync(__ballot_sync(__activemask(), 1), v & 2));
  __syncwarp();
  out[2 * n + i] = LANE < 16 ? __ballot_sync(0xffff, v & 4) : __ballot_sync(0xffff0000, v & 8);
  out[3 * n + i] = r >= 0;
  unsigned q;
  asm volatile("{ .reg .pred p, s; setp.ne.u32 p, %1, 0; vote.sync.all.pred s, !p, 0xffffffff; selp.u32 %0, 1, 0, s; }"
               : "=r"(q) : "r"(v & 0x100));
  out[4 * n + i] = q;
}
KERNEL matches(const int* x, const unsigned long long* y, unsigned* out, int n) {
  int i = I, p;
  out[i] = __match_any_sync(ALL, x[i]);
  out[n + i] = __match_any_sync(ALL, y[i] % 3);
  out[2 * n + i] = __match_all_sync(ALL, x[i] & 0, &p) + p;
  out[3 * n + i] = __match_all_sync(ALL, y[i], &p) + p;
  out[4 * n + i] = LANE < 8 ? __match_any_sync(0xff, x[i] & 1) : __match_any_sync(0xffffff00, x[i] & 2);
}
KERNEL reductions(const unsigned* x, unsigned* out, int n) {
  unsigned i = I, v = x[i];
  out[i] = __reduce_add_sync(ALL, v);
  out[n + i] = __reduce_min_sync(ALL, v);
  out[2 * n + i] = __reduce_max_sync(ALL, v);
  out[3 * n + i] = (unsigned)__reduce_min_sync(ALL, (int)v);
  out[4 * n + i] = (unsigned)__reduce_max_sync(ALL, (int)v);
  out[5 * n + i] = __reduce_and_sync(ALL, v | 0xff);
  out[6 * n + i] = __reduce_or_sync(ALL, v & 0xff0f);
  out[7 * n + i] = __reduce_xor_sync(ALL, v);
  out[8 * n + i] = LANE % 3 == 0 ? __reduce_add_sync(0x49249249u, v) : __reduce_xor_sync(~0x49249249u, v);
}
KERNEL elections(unsigned* out) {
  unsigned i = I, leader, chosen;
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(leader), "=r"(chosen));
  out[i] = leader * 2 + chosen;
}
KERNEL active_masks(const int* x, unsigned* out) {
  unsigned i = I;
  out[i] = __activemask() + (LANE < 40 ? __popc(__activemask()) : 0);
}
KERNEL warp_sum(const float* x, float* out) {
  float v = x[I];
  for (int k = 16; k > 0; k >>= 1) v += __shfl_xor_sync(ALL, v, k);
  out[I] = v;
}
KERNEL warp_scan(const int* x, int* out) {
  int v = x[I];
  for (int k = 1; k < 32; k <<= 1) { int w = __shfl_up_sync(ALL, v, k); if (LANE >= k) v += w; }
  out[I] = v;
}
KERNEL warp_argmax(const float* x, int* out) {
  float v = x[I]; int at = LANE;
  for (int k = 16; k > 0; k >>= 1) {
    float w = __shfl_down_sync(ALL, v, k); int b = __shfl_down_sync(ALL, at, k);
    if (w > v || (w == v && b < at)) { v = w; at = b; }
  }
  out[I] = __shfl_sync(ALL, at, 0);
}
KERNEL warp_aggregated(const int* x, unsigned* count, unsigned* rank_sum) {
  bool wanted = x[I] & 1;
  unsigned mask = __ballot_sync(ALL, wanted);
  if (wanted) {
    unsigned base = 0, leader = __ffs(mask) - 1, rank = __popc(mask & ((1u << LANE) - 1));
    if (LANE == leader) base = atomicAdd(count, __popc(mask));
    base = __shfl_sync(mask, base, leader);
    atomicAdd(rank_sum, (base + rank) * (base + rank));
  }
}
KERNEL warp_sort(const unsigned* x, unsigned* out) {
  unsigned v = x[I], lane = LANE;
  for (unsigned k = 2; k <= 32; k <<= 1)
    for (unsigned j = k >> 1; j > 0; j >>= 1) {
      unsigned w = __shfl_xor_sync(ALL, v, j);
      bool up = (lane & k) == 0, low = (lane & j) == 0;
      v = (low == up) == (v < w) ? v : w;
    }
  out[I] = v;
}
KERNEL warp_shared(const int* x, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = x[I];
  __syncwarp();
  int v = s[t ^ 1] + s[(t & ~31) + (t * 5 & 31)];
  __syncwarp();
  s[t] = v;
  __syncwarp(0xffffffff);
  out[I] = s[t ^ 16];
}
KERNEL last_short_warp(const int* x, int* out) {
  int i = I;
  unsigned mask = threadIdx.x < 32 ? ALL : 0xff;
  int v = __shfl_xor_sync(mask, x[i], 4);
  out[i] = v + __ballot_sync(mask, v & 1) + __popc(__match_any_sync(mask, v & 3));
}
