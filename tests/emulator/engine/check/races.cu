// Each kernel is right, or has one fault that its name tells; `a` and `o` have n elements.
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define T threadIdx.x
KERNEL own_elements(int* a, int* o, int n) { o[I] = a[I] + o[I]; a[I] = o[I]; }
KERNEL tile(int* a, int* o, int n) { __shared__ int s[256]; s[T] = a[I]; __syncthreads(); o[I] = s[255 - T]; }
KERNEL tile_without_barrier(int* a, int* o, int n) { __shared__ int s[256]; s[T] = a[I]; o[I] = s[255 - T]; }
KERNEL tile_reused(int* a, int* o, int n) {
  __shared__ int s[256];
  for (int k = 0; k < 3; k++) { s[T] = a[I] + k; __syncthreads(); o[I] += s[T ^ 1]; __syncthreads(); }
}
KERNEL tile_reused_too_early(int* a, int* o, int n) {
  __shared__ int s[256];
  for (int k = 0; k < 3; k++) { s[T] = a[I] + k; __syncthreads(); o[I] += s[T ^ 1]; }
}
KERNEL stencil(int* a, int* o, int n) { if (I > 0 && I < n - 1) o[I] = a[I - 1] + a[I + 1]; }
KERNEL stencil_in_place(int* a, int* o, int n) { if (I > 0 && I < n - 1) a[I] = a[I - 1] + a[I + 1]; }
KERNEL histogram(int* a, int* o, int n) { atomicAdd(o + (a[I] & 7), 1); }
KERNEL histogram_without_atomics(int* a, int* o, int n) { o[a[I] & 7] += 1; }
KERNEL histogram_read_plainly(int* a, int* o, int n) { atomicAdd(o, 1); a[I] = o[0]; }
KERNEL histogram_of_block_scope(int* a, int* o, int n) { atomicAdd_block(o, 1); }
KERNEL histogram_in_blocks(int* a, int* o, int n) { atomicAdd_block(o + blockIdx.x, 1); }
KERNEL bytes(int* a, int* o, int n) { ((char*)o)[I] = (char)a[I]; }
KERNEL bytes_shared_by_two(int* a, int* o, int n) { ((char*)o)[I / 2] = (char)I; }
KERNEL reduction(int* a, int* o, int n) {
  __shared__ int s[256];
  s[T] = a[I]; __syncthreads();
  for (int k = 128; k > 0; k >>= 1) { if (T < k) s[T] += s[T + k]; __syncthreads(); }
  if (T == 0) o[blockIdx.x] = s[0];
}
KERNEL reduction_without_last_barriers(int* a, int* o, int n) {
  __shared__ int s[256];
  s[T] = a[I]; __syncthreads();
  for (int k = 128; k > 0; k >>= 1) { if (T < k) s[T] += s[T + k]; if (k > 32) __syncthreads(); }
  if (T == 0) o[blockIdx.x] = s[0];
}
KERNEL reduction_by_warps(int* a, int* o, int n) {
  __shared__ int s[256];
  s[T] = a[I]; __syncthreads();
  for (int k = 128; k >= 32; k >>= 1) { if (T < k) s[T] += s[T + k]; __syncthreads(); }
  if (T < 32) for (int k = 16; k > 0; k >>= 1) { int v = s[T] + s[T + k]; __syncwarp(); s[T] = v; __syncwarp(); }
  if (T == 0) o[blockIdx.x] = s[0];
}
KERNEL half_warps(int* a, int* o, int n) {
  __shared__ int s[256];
  unsigned mask = T % 32 < 16 ? 0xffffu : 0xffff0000u;
  s[T] = a[I]; __syncwarp(mask); o[I] = s[T ^ 1];
}
KERNEL half_warps_that_cross(int* a, int* o, int n) {
  __shared__ int s[256];
  unsigned mask = T % 32 < 16 ? 0xffffu : 0xffff0000u;
  s[T] = a[I]; __syncwarp(mask); o[I] = s[T ^ 16];
}
KERNEL named_barriers(int* a, int* o, int n) {
  __shared__ int s[256];
  s[T] = a[I];
  asm volatile("bar.sync %0, 128;" ::"r"((int)(T / 128 + 1)) : "memory");
  o[I] = s[T ^ 64];
}
KERNEL named_barriers_that_cross(int* a, int* o, int n) {
  __shared__ int s[256];
  s[T] = a[I];
  asm volatile("bar.sync %0, 128;" ::"r"((int)(T / 128 + 1)) : "memory");
  o[I] = s[T ^ 128];
}
KERNEL producers(int* a, int* o, int n) {
  __shared__ int s[256];
  if (T < 128) { s[T] = a[I]; asm volatile("bar.arrive 1, 256;" ::: "memory"); }
  else { asm volatile("bar.sync 1, 256;" ::: "memory"); o[I] = s[T - 128]; }
}
KERNEL producers_that_go_on(int* a, int* o, int n) {
  __shared__ int s[256];
  if (T < 128) { s[T] = a[I]; asm volatile("bar.arrive 1, 256;" ::: "memory"); s[T] = 0; }
  else { asm volatile("bar.sync 1, 256;" ::: "memory"); o[I] = s[T - 128]; }
}
__device__ unsigned done;
__device__ int lock;
KERNEL last_block(int* a, int* o, int n) {
  __shared__ bool last;
  o[I] = a[I]; __syncthreads();
  if (T == 0) { __threadfence(); last = atomicAdd(&done, 1) == gridDim.x - 1; __threadfence(); }
  __syncthreads();
  if (last) { int sum = 0; for (int b = 0; b < gridDim.x; b++) sum += o[b * 256 + T]; a[T] = sum; if (T == 0) done = 0; }
}
KERNEL last_block_without_fence(int* a, int* o, int n) {
  __shared__ bool last;
  o[I] = a[n - 1]; __syncthreads();
  if (T == 0) last = atomicAdd(&done, 1) == gridDim.x - 1;
  __syncthreads();
  if (last) { int sum = 0; for (int b = 0; b < gridDim.x; b++) sum += o[b * 256 + T]; a[T] = sum; if (T == 0) done = 0; }
}
KERNEL last_block_with_narrow_fence(int* a, int* o, int n) {
  __shared__ bool last;
  o[I] = a[n - 1]; __syncthreads();
  if (T == 0) { __threadfence_block(); last = atomicAdd(&done, 1) == gridDim.x - 1; __threadfence_block(); }
  __syncthreads();
  if (last) { int sum = 0; for (int b = 0; b < gridDim.x; b++) sum += o[b * 256 + T]; a[T] = sum; if (T == 0) done = 0; }
}
__device__ unsigned arrived[40 * 128];
KERNEL second_of_two(int* a, int* o, int n) {
  unsigned* pair = &arrived[blockIdx.x * 128 + T % 128];
  o[I] = a[I]; __threadfence();
  if (atomicAdd(pair, 1) == 1) { __threadfence(); a[I] = o[I ^ 128]; *pair = 0; }
}
KERNEL second_of_two_without_fences(int* a, int* o, int n) {
  unsigned* pair = &arrived[blockIdx.x * 128 + T % 128];
  o[I] = a[I];
  if (atomicAdd(pair, 1) == 1) { a[I] = o[I ^ 128]; *pair = 0; }
}
KERNEL locked(int* a, int* o, int n) {
  if (T % 64) return;
  while (atomicCAS(&lock, 0, 1)) ;
  __threadfence(); o[0] += 1; __threadfence();
  atomicExch(&lock, 0);
}
KERNEL locked_without_fences(int* a, int* o, int n) {
  if (T % 64) return;
  while (atomicCAS(&lock, 0, 1)) ;
  o[0] += 1;
  atomicExch(&lock, 0);
}
KERNEL beside_the_lock(int* a, int* o, int n) {
  if (T % 64) return;
  while (atomicCAS(&lock, 0, 1)) ;
  __threadfence(); o[0] += 1; __threadfence();
  atomicExch(&lock, 0);
  o[0] += 1;
}
KERNEL turns_by_swaps(int* a, int* o, int n) {
  if (T) return;
  while (atomicCAS(o, blockIdx.x, -1) != blockIdx.x) ;
  __threadfence(); a[0] += 1; __threadfence();
  atomicCAS(o, -1, blockIdx.x + 1);
}
KERNEL turns_by_wide_swaps(int* a, int* o, int n) {
  unsigned long long *turn = (unsigned long long*)o, mine = blockIdx.x, taken = 1ull << 40;
  if (T) return;
  while (atomicCAS(turn, mine, taken) != mine) ;
  __threadfence(); a[0] += 1; __threadfence();
  atomicCAS(turn, taken, mine + 1);
}
KERNEL handed_over_by_swaps_in_vain(int* a, int* o, int n) {
  if (T) return;
  if (blockIdx.x == 0) { o[0] = 5; __threadfence(); }
  atomicCAS(a, -7, -8);
  __threadfence();
  if (blockIdx.x) a[I] = o[0];
}
KERNEL one_of_two_swaps_in_vain(int* a, int* o, int n) {
  if (T > 1) return;
  if (blockIdx.x == 0) { o[T] = 5; __threadfence(); }
  atomicCAS(a + T, 0, -8);
  __threadfence();
  if (blockIdx.x && T) a[I] = o[1];
}
KERNEL producers_that_run_ahead(int* a, int* o, int n) {
  __shared__ int s[2][128];
  int sum = 0;
  for (int k = 0; k < 4; k++) {
    if (T < 128) {
      s[k % 2][T] = a[I] + k;
      asm volatile("bar.arrive %0, 256;" :: "r"(1 + k % 2) : "memory");
    } else {
      asm volatile("bar.sync %0, 256;" :: "r"(1 + k % 2) : "memory");
      sum += s[k % 2][T - 128];
    }
  }
  if (T >= 128) o[I] = sum;
}
KERNEL cleared_by_the_last_block(int* a, int* o, int n) {
  o[I] = a[0];
  __syncthreads();
  if (T == 0 && blockIdx.x == gridDim.x - 1) a[0] = 7;
}
KERNEL chain_of_blocks(int* a, int* o, int n) {
  volatile int* flags = a;
  if (T == 0) {
    if (blockIdx.x) { while (flags[blockIdx.x - 1] != -7) ; __threadfence(); }
    o[blockIdx.x] = (blockIdx.x ? o[blockIdx.x - 1] : 0) + 1;
    __threadfence(); flags[blockIdx.x] = -7;
  }
}
KERNEL chain_of_blocks_published_early(int* a, int* o, int n) {
  volatile int* flags = a;
  if (T == 0) {
    if (blockIdx.x) { while (flags[blockIdx.x - 1] != -7) ; __threadfence(); }
    __threadfence(); flags[blockIdx.x] = -7;
    o[blockIdx.x] = (blockIdx.x ? o[blockIdx.x - 1] : 0) + 1;
  }
}
KERNEL released_and_acquired(int* a, int* o, int n) {
  if (T) return;
  if (blockIdx.x == 0) { o[1] = 5; asm volatile("st.release.gpu.s32 [%0], 7;" ::"l"(a) : "memory"); }
  else { int v; do asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); while (v != 7); o[blockIdx.x + 1] = o[1]; }
}
KERNEL relaxed_alone(int* a, int* o, int n) {
  if (T) return;
  if (blockIdx.x == 0) { o[1] = 5; asm volatile("st.relaxed.gpu.s32 [%0], 7;" ::"l"(a) : "memory"); }
  else { int v; do asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); while (v != 7); o[blockIdx.x + 1] = o[1]; }
}
KERNEL swap_loop(int* a, int* o, int n) {
  if (T % 64) return;
  int old = o[0], seen;
  do { seen = old; old = atomicCAS(o, seen, seen + 1); } while (old != seen);
}
#define RAISE(at, value) { int old = *(at), seen; do { seen = old; old = atomicCAS(at, seen, max(seen, value)); } while (old != seen); }
KERNEL guarded_swap_loop(int* a, int* o, int n) {
  if (T % 64) return;
  if (o[0] < a[I]) RAISE(o, a[I]);
}
KERNEL swap_loop_that_may_not_begin(int* a, int* o, int n) {
  if (T % 64) return;
  for (int old = o[0], seen; old < a[I] && (old = atomicCAS(o, seen = old, a[I])) != seen;) ;
}
KERNEL guarded_swap_loop_of_the_word_around(int* a, int* o, int n) {
  if (T % 64) return;
  if (((char*)o)[0] < a[I] % 128) RAISE(o, a[I] % 128);
}
KERNEL swap_loop_of_what_must_not_be_negative(int* a, int* o, int n) {
  if (T % 64) return;
  int old = o[0], seen;
  if (old < 0) __trap();
  do { seen = old; old = atomicCAS(o, seen, seen + 1); } while (old != seen);
}
KERNEL unguarded_swap_loop(int* a, int* o, int n) { if (T % 64 == 0) RAISE(o, a[I]); }
#define SWAP(at, old, next) asm volatile("atom.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(at), "r"(old), "r"(next) : "memory")
KERNEL swap_loop_by_a_generic_address(int* a, int* o, int n) {
  if (T % 64) return;
  int* at = o + a[I] / 64 % 2;
  int old = *at, seen;
  do { seen = old; SWAP(at, old, seen + 1); } while (old != seen);
}
KERNEL swap_loop_of_the_next_by_a_generic_address(int* a, int* o, int n) {
  if (T % 64) return;
  int* at = o + a[I] / 64 % 2;
  int old = *at, seen;
  do { seen = old; SWAP(at + 1, old, seen + 1); } while (old != seen);
}
KERNEL swap_of_where_an_index_has_come_to(int* a, int* o, int n) {
  if (T % 64) return;
  int k = 0, old = 0, seen = 0;
  do { seen += o[k]; k += a[k + 1] > 0; SWAP(o + k, old, seen); } while (k < 3);
}
KERNEL counted_by_volatile(int* a, int* o, int n) { volatile int* v = o; if (a[I] >= 0) v[a[I] % 7] = v[a[I] % 7] + 1; }
KERNEL counted_by_volatile_in_blocks(int* a, int* o, int n) {
  __shared__ volatile int s;
  if (T == 0) s = 0;
  __syncthreads();
  if (T % 64 == 0) s = s + a[I];
  __syncthreads();
  if (T == 0) o[blockIdx.x] = s;
}
KERNEL counted_by_one_of_each_block(int* a, int* o, int n) { volatile int* v = o; if (T == 0) *v += 1; }
KERNEL raised_by_volatile(int* a, int* o, int n) { volatile int* v = o; if (T % 64 == 0) *v = max(*v, a[I]); }
KERNEL counted_beside_an_atomic(int* a, int* o, int n) {
  volatile int* v = o;
  if (T == 0) { int old = *v; atomicAdd(o, 1); *v = old + 1; }
}
KERNEL bit_set_by_volatile(int* a, int* o, int n) { volatile int* v = o; if (a[I] > 5) *v = *v | 1; }
KERNEL turns_by_volatile(int* a, int* o, int n) {
  volatile int* turn = o;
  if (T == 0) { while (*turn != blockIdx.x) ; *turn = *turn + 1; }
}
KERNEL turns_of_what_was_polled(int* a, int* o, int n) {
  volatile int* turn = o;
  if (T == 0) { int seen; while ((seen = *turn) != blockIdx.x) ; *turn = seen + 1; }
}
KERNEL own_places_by_volatile(int* a, int* o, int n) { volatile int* v = o; for (int k = 0; k < 3; k++) v[I] = v[I] + k; }
KERNEL counted_by_volatile_in_a_lock(int* a, int* o, int n) {
  volatile int* v = o + 1;
  if (T) return;
  while (atomicCAS(o, 0, 1)) ;
  __threadfence(); *v = *v + 1; __threadfence();
  atomicExch(o, 0);
}
KERNEL counted_by_volatile_in_phases(int* a, int* o, int n) {
  __shared__ volatile int s;
  if (T == 0) s = 0;
  __syncthreads();
  for (int k = 0; k < blockDim.x; k += 32) { if (T == k) s = s + 1; __syncthreads(); }
  if (T == 0) o[blockIdx.x] = s;
}
KERNEL reduction_by_volatile(int* a, int* o, int n) {
  __shared__ int all[256];
  all[T] = a[I];
  __syncthreads();
  for (int k = 128; k > 16; k /= 2) { if (T < k) all[T] += all[T + k]; __syncthreads(); }
  volatile int* s = all;
  if (T < 16) { s[T] += s[T + 16]; s[T] += s[T + 8]; s[T] += s[T + 4]; s[T] += s[T + 2]; s[T] += s[T + 1]; }
  if (T == 0) o[blockIdx.x] = s[0];
}
KERNEL reduction_by_volatile_and_syncwarp(int* a, int* o, int n) {
  __shared__ volatile int s[256];
  s[T] = a[I];
  __syncwarp();
  for (int k = 16; k; k /= 2) {
    int x = s[T] + s[(T & ~31) | ((T + k) & 31)];
    __syncwarp();
    s[T] = x;
    __syncwarp();
  }
  o[I] = s[T];
}
KERNEL exchanged_by_volatile(int* a, int* o, int n) {
  __shared__ volatile int s[256];
  s[T] = a[I];
  o[I] = s[T ^ 1];
}
KERNEL given_to_the_warp_by_volatile(int* a, int* o, int n) {
  __shared__ volatile int s[8];
  if (T % 32 == 0) s[T / 32] = a[I];
  o[I] = s[T / 32];
}
KERNEL flag_of_a_warp_by_volatile(int* a, int* o, int n) {
  __shared__ volatile int ready, value;
  if (T == 0) ready = 0;
  __syncthreads();
  if (T == 0) { value = a[I]; __threadfence_block(); ready = 1; }
  else { while (ready == 0) ; __threadfence_block(); }
  o[I] = value;
}
KERNEL exchanged_by_volatile_in_a_loop(int* a, int* o, int n) {
  __shared__ volatile int s[256];
  int sum = 0;
  for (int k = 0; k < a[0] + 3; k++) { s[T] = a[I] + k; sum += s[T ^ 1]; }
  o[I] = sum;
}
KERNEL flag_of_a_warp_tried_by_volatile(int* a, int* o, int n) {
  __shared__ volatile int stage;
  if (T == 0) stage = 0;
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    if (T == k) stage = k + 1;
    for (int tries = 0; tries < 1000000; tries++) { int seen = stage; if (seen > k) break; }
  }
  o[I] = T;
}
KERNEL same_value(int* a, int* o, int n) { o[0] = 1; }
KERNEL same_value_by_some(int* a, int* o, int n) { if (a[I] > 5) o[0] = 1; }
KERNEL same_value_beside_a_flag(int* a, int* o, int n) {
  o[0] = 1;
  if (I == 0) *(volatile int*)(o + 1) = 1;
  if (T == 0) while (*(volatile int*)(o + 1) == 0) ;
}
KERNEL other_value(int* a, int* o, int n) { o[0] = I; }
KERNEL chain_of_blocks_taken_narrowly(int* a, int* o, int n) {
  volatile int* flags = a;
  if (T == 0) {
    if (blockIdx.x) { while (flags[blockIdx.x - 1] != -7) ; __threadfence_block(); }
    o[blockIdx.x] = (blockIdx.x ? o[blockIdx.x - 1] : 0) + 1;
    __threadfence(); flags[blockIdx.x] = -7;
  }
}
KERNEL flag_of_block_scope(int* a, int* o, int n) {
  if (T) return;
  if (blockIdx.x == 0) { o[1] = 5; __threadfence(); atomicExch_block(a, -7); }
  else { while (atomicAdd(a, 0) != -7) ; __threadfence(); o[blockIdx.x + 1] = o[1]; }
}
KERNEL flag_passed_on_in_the_block(int* a, int* o, int n) {
  __shared__ int ready;
  volatile int* flags = a; volatile int* here = &ready;
  if (T == 0) ready = 0;
  __syncthreads();
  if (blockIdx.x == 0) { if (T == 0) { o[1] = 5; __threadfence(); flags[0] = -7; } }
  else if (T == 0) { while (flags[0] != -7) ; __threadfence(); __threadfence_block(); *here = 1; }
  else if (T == 32) { while (*here == 0) ; __threadfence_block(); o[blockIdx.x + 1] = o[1]; }
}
KERNEL flag_cleared_while_polled(int* a, int* o, int n) {
  __shared__ int ready;
  if (T == 0) ready = 0;
  if (T < 32) { __syncwarp(); if (T == 0) { __threadfence_block(); *(volatile int*)&ready = 1; } }
  else while (*(volatile int*)&ready != 1) ;
}
KERNEL last_block_without_second_fence(int* a, int* o, int n) {
  __shared__ bool last;
  o[I] = a[I]; __syncthreads();
  if (T == 0) { __threadfence(); last = atomicAdd(&done, 1) == gridDim.x - 1; }
  __syncthreads();
  if (last) { int sum = 0; for (int b = 0; b < gridDim.x; b++) sum += o[b * 256 + T]; a[T] = sum; if (T == 0) done = 0; }
}
KERNEL swap_loop_read_afterwards(int* a, int* o, int n) {
  if (T % 64) return;
  int old = *(volatile int*)o, seen;
  do { seen = old; old = atomicCAS(o, seen, seen + 1); } while (old != seen);
  if (I == 0) a[0] = o[0];
}
__device__ int fenced_by_all_before_a_barrier_count;
KERNEL fenced_by_all_before_a_barrier(int* a, int* o, int n) {
  o[I] = I; __threadfence(); __syncthreads();
  if (T == 0) { atomicAdd(&fenced_by_all_before_a_barrier_count, 1); while (atomicAdd(&fenced_by_all_before_a_barrier_count, 0) < gridDim.x); }
  __syncthreads(); __threadfence();
  a[I] = o[(I + blockDim.x) % n];
}
__device__ int written_behind_the_fences_count;
KERNEL written_behind_the_fences(int* a, int* o, int n) {
  __threadfence(); o[I] = I; __syncthreads();
  if (T == 0) { atomicAdd(&written_behind_the_fences_count, 1); while (atomicAdd(&written_behind_the_fences_count, 0) < gridDim.x); }
  __syncthreads(); __threadfence();
  a[I] = o[(I + blockDim.x) % n];
}
KERNEL guarded_by_an_ordinary_read(int* a, int* o, int n) {
  if (o[T] == 0 && *(volatile int*)(o + T) == 0) *(volatile int*)(o + T) = 1;
}
KERNEL heard_by_all_and_overwritten(int* a, int* o, int n) {
  int seen = *(volatile int*)(o + T);
  __syncthreads();
  if (seen == 0) o[T] = I;
}
KERNEL one_word_without_barrier_in_some(int* a, int* o, int n) {
  __shared__ int s;
  if (T == 0) s = a[I];
  if (blockIdx.x % 2) __syncthreads(); else __syncwarp();
  if (I < n - 250) o[I] = s;
}
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(groups) asm volatile("cp.async.wait_group " #groups ";" ::: "memory")
KERNEL copied(int* a, int* o, int n) {
  __shared__ int s[512];
  COPY(s + T, a + I); COMMIT; COPY(s + 256 + T, a + I); COMMIT;
  WAIT(1); __syncthreads(); o[I] = s[255 - T];
  WAIT(0); __syncthreads(); o[I] += s[511 - T]; s[T] = 0;
}
KERNEL copied_and_all_awaited(int* a, int* o, int n) {
  __shared__ int s[256];
  COPY(s + T, a + I); asm volatile("cp.async.wait_all;" ::: "memory"); o[I] = s[T];
}
KERNEL copied_to_an_mbarrier(int* a, int* o, int n) {
  __shared__ int s[256]; __shared__ unsigned long long bar;
  unsigned at = __cvta_generic_to_shared(&bar);
  if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(at) : "memory");
  __syncthreads();
  COPY(s + T, a + I);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  int done;
  do asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p;}" : "=r"(done) : "r"(at) : "memory"); while (!done);
  o[I] = s[255 - T];
}
KERNEL copied_to_an_mbarrier_and_overwritten(int* a, int* o, int n) {
  __shared__ int s[256]; __shared__ unsigned long long bar;
  unsigned at = __cvta_generic_to_shared(&bar);
  if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(at) : "memory");
  __syncthreads();
  COPY(s + T, a + I);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  __syncthreads(); s[255 - T] = T; __syncthreads(); o[I] = s[T];
}
KERNEL copied_without_wait(int* a, int* o, int n) {
  __shared__ int s[256];
  COPY(s + T, a + I); COMMIT; __syncthreads(); o[I] = s[255 - T];
}
KERNEL copied_without_ones_own_wait(int* a, int* o, int n) {
  __shared__ int s[256];
  COPY(s + T, a + I); COMMIT; o[I] = s[T];
}
KERNEL copied_with_one_group_under_way(int* a, int* o, int n) {
  __shared__ int s[512];
  COPY(s + T, a + I); COMMIT; COPY(s + 256 + T, a + I); COMMIT;
  WAIT(1); __syncthreads(); o[I] = s[511 - T];
}
KERNEL copied_and_awaited_behind_the_barrier(int* a, int* o, int n) {
  __shared__ int s[256];
  COPY(s + T, a + I); COMMIT; __syncthreads(); WAIT(0); o[I] = s[255 - T];
}
KERNEL one_row_for_all_blocks(int* a, int* o, int n) { o[T] = a[I] + blockIdx.x; }
KERNEL one_row_added_to(int* a, int* o, int n) { o[T] += a[I]; }
