// Each kernel is wrong where `wrong` is set, and right where it is not. Blocks have 96 threads.
#define BAR(id, n) asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory")
#define ARRIVE(id, n) asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory")
#define KERNEL extern "C" __global__ void
#define FULL 0xffffffffu

// Barriers of the whole block.
KERNEL barrier_of_two_branches(int* o, int wrong) {
  if (threadIdx.x < (wrong ? 16 : 32)) { o[0] = 2; __syncthreads(); o[2] = 1; }
  else { o[1] = 3; __syncthreads(); o[3] = 1; }
}
KERNEL barrier_and_another(int* o, int wrong) {
  if (wrong && threadIdx.x >= 48) BAR(1, 96); else __syncthreads();
  o[threadIdx.x] = 1;
}
KERNEL barrier_in_a_loop(int* o, int wrong) {
  for (int i = 0; i < (wrong && threadIdx.x < 32 ? 3 : 2); i++) { o[threadIdx.x] = i; __syncthreads(); }
  BAR(1, 96);
}
KERNEL early_return(int* o, int wrong) {
  if (threadIdx.x >= 40) return;
  o[threadIdx.x] = 1;
  if (wrong) BAR(1, 96); else __syncthreads();
  o[threadIdx.x] += o[39 - threadIdx.x];
}
// Barriers with a count.
KERNEL too_many_at_a_barrier(int* o, int wrong) {
  if (threadIdx.x < (wrong ? 96 : 64)) BAR(1, 64);
  o[threadIdx.x] = 1;
}
KERNEL too_few_at_a_barrier(int* o, int wrong) {
  if (threadIdx.x < 64) BAR(1, wrong ? 96 : 64);
  o[threadIdx.x] = 1;
}
KERNEL two_counts(int* o, int wrong) {
  BAR(1, wrong && threadIdx.x < 32 ? 64 : 96);
  o[threadIdx.x] = 1;
}
KERNEL no_whole_warps(int* o, int wrong) {
  if (threadIdx.x < 64) BAR(1, wrong ? 40 : 64);
  o[threadIdx.x] = 1;
}
KERNEL no_such_barrier(int* o, int wrong) {
  BAR(wrong ? 16 : 15, 96);
  o[threadIdx.x] = 1;
}
KERNEL producers_and_consumers(int* o, int wrong) {
  __shared__ int s[64];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = threadIdx.x;
    ARRIVE(1, wrong ? 96 : 64);
  } else if (threadIdx.x < 64) {
    BAR(1, 64);
    o[threadIdx.x] = s[threadIdx.x - 32];
  }
}
// Meetings of a warp.
KERNEL not_in_its_mask(int* o, int wrong) {
  unsigned mask = wrong || threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u;
  o[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 0, 16);
}
KERNEL two_masks(int* o, int wrong) {
  unsigned mask = threadIdx.x & 1 ? (wrong ? FULL : 0xaaaaaaaau) : 0x55555555u;
  o[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, threadIdx.x & 1);
}
KERNEL mask_of_lanes_elsewhere(int* o, int wrong) {
  int v = threadIdx.x;
  if (threadIdx.x % 32 < 16) v = __shfl_sync(wrong ? FULL : 0xffffu, v, 3);
  __syncthreads();
  o[threadIdx.x] = v;
}
KERNEL mask_in_a_loop(int* o, int wrong) {
  int v = threadIdx.x, lane = threadIdx.x % 32;
  for (int left = 4; left; left--) {
    unsigned mask = __ballot_sync(FULL, lane < 8 * left);
    if (lane < 8 * left) v += __shfl_sync(mask, v, wrong ? 0 : left);
    if (wrong) mask = FULL;
    if (lane < 8 * left) __syncwarp(mask);
  }
  __syncthreads();
  o[threadIdx.x] = v;
}
// Waits.
KERNEL wait_for_a_flag(volatile int* o, int wrong) {
  if (threadIdx.x == 0 && !wrong) o[0] = 1;
  while (o[0] == 0) {}
  o[1] = 1;
}
KERNEL lock_that_nobody_gives_back(int* o, int wrong) {
  while (atomicCAS(o, 0, 1) != 0) {}
  o[1] += 1;
  __threadfence();
  if (!wrong) atomicExch(o, 0);
}
KERNEL lock_with_naps(int* o, int wrong) {
  bool mine = false;
  while (!mine) {
    mine = atomicCAS(o, 0, 1) == 0;
    if (mine) { o[1] += 1; __threadfence(); if (!wrong) atomicExch(o, 0); }
    else __nanosleep(100);
  }
}
KERNEL wait_for_another_block(int* o, int wrong) {
  if (threadIdx.x) return;
  atomicAdd(o, 1);
  while (atomicAdd(o, 0) < (int)gridDim.x + wrong) {}
}
KERNEL wait_for_a_phase(int* o, int wrong) {
  __shared__ unsigned long long phase;
  unsigned at = (unsigned)__cvta_generic_to_shared(&phase);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(96 + wrong) : "memory");
  __syncthreads();
  asm volatile("{.reg .b64 s; .reg .pred p; mbarrier.arrive.shared.b64 s, [%0];"
               "L: mbarrier.try_wait.shared.b64 p, [%0], s; @!p bra L;}" ::"r"(at) : "memory");
  o[threadIdx.x] = 1;
}
// What a GPU lets pass once threads have exited; a fault where synchronisation is checked.
KERNEL barrier_under_a_condition(int* o, int wrong) {
  if (!wrong || threadIdx.x < 32) __syncthreads();
  o[threadIdx.x] = 1;
}
KERNEL barrier_before_another(int* o, int wrong) {
  for (int i = 0; i < 3; i++) {
    // Warps may meet in the branches of an if, as often as they like.
    if (threadIdx.x < 32) { o[0] = 2; __syncthreads(); o[2] = 1; }
    else { o[1] = 3; __syncthreads(); o[3] = 1; }
  }
  if (!wrong || threadIdx.x < 32) __syncthreads();
  o[threadIdx.x] = 1;
  __syncthreads();
  o[threadIdx.x] += 1;
}
KERNEL barrier_deep_under_a_condition(int* o, int wrong) {
  __shared__ int s[96];
  s[threadIdx.x] = 1;
  if (threadIdx.x >= 90) return;
  for (int i = 0; i < 3; i++) {
    if (!wrong || i != 1 || threadIdx.x > 40) { s[threadIdx.x] += i; __syncthreads(); o[0] = 1; }
    o[threadIdx.x] += s[i];
    if (wrong && i == 1 && threadIdx.x <= 40) return;
  }
}
KERNEL count_under_a_condition(int* o, int wrong) {
  if (!wrong || threadIdx.x != 5) o[threadIdx.x] = __syncthreads_count(threadIdx.x & 1);
  o[threadIdx.x] += 1;
}
KERNEL shuffle_under_a_condition(int* o, int wrong) {
  int v = threadIdx.x;
  if (threadIdx.x % 32 < 16) v = __shfl_sync(wrong ? FULL : 0xffffu, v, 3);
  o[threadIdx.x] = v;
}
KERNEL shuffle_behind_a_return(int* o, int wrong) {
  if (threadIdx.x >= 70) return;
  int v = threadIdx.x;
  if (!wrong || threadIdx.x % 2) v = __shfl_sync(FULL, v, 1);
  o[threadIdx.x] = v;
}
KERNEL returns_in_a_loop(int* o, int wrong) {
  for (int i = 0; i < 10; i++) {
    if (threadIdx.x > 90 - 3 * i) return;
    if (!wrong || threadIdx.x != 7 || i != 9) __syncthreads();
    o[threadIdx.x] += i;
  }
}
