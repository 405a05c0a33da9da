/* The calls of a plan, which `plan.py` writes: now, in a thread, in a host function of a stream, or
   while the process ends. The current folder has the files. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORD = 8, ARGUMENTS = 16 };
/* Addresses and numbers of plan.py. */
static const uint64_t FIRST_PAGE = 1UL << 36, FIRST_HANDLE = 0xFACEUL << 48;
struct planned {
  char library[24], symbol[56];
  uint64_t arguments[ARGUMENTS];
};
typedef long (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t);
struct call {
  function called;
  uint64_t arguments[ARGUMENTS];
};
static struct call *calls;
static long count;
static volatile long *place, *last_place; /* of the running call, in a file */
static int *results;                      /* in a file, too */

static void fail(const char *what) {
  perror(what);
  _exit(99);
}

static void *map_file(const char *path, void *wanted, int flags, long *size) {
  int file = open(path, O_RDWR);
  *size = lseek(file, 0, SEEK_END);
  void *at = mmap(wanted, *size, PROT_READ | PROT_WRITE, flags, file, 0);
  if (file < 0 || at == MAP_FAILED || (wanted && at != wanted))
    fail(path);
  close(file);
  return at;
}

static long nothing(void) { return 0; }

/* A number of a handle names a slot, whose value it becomes once it has one, and an offset. */
static uint64_t with_handle(uint64_t value) {
  const uint64_t *slots = (const uint64_t *)FIRST_PAGE;
  uint64_t number = value - FIRST_HANDLE;
  if (number >> 32 || !slots[number & 0xFFFF])
    return value;
  return slots[number & 0xFFFF] + (number >> 16);
}

static struct call *read_plan(const char *path, long *length) {
  const struct planned *plan = map_file(path, 0, MAP_PRIVATE, length);
  *length /= (long)sizeof *plan;
  struct call *made = calloc(*length, sizeof *made);
  for (long i = 0; i < *length; ++i) {
    void *library = dlopen(plan[i].library, RTLD_NOW);
    made[i].called = library ? (function)dlsym(library, plan[i].symbol) : 0;
    if (!made[i].called)
      fail(plan[i].symbol);
    memcpy(made[i].arguments, plan[i].arguments, sizeof made[i].arguments);
  }
  return made;
}

static int make(const struct call *each) {
  uint64_t a[ARGUMENTS];
  for (int k = 0; k < ARGUMENTS; ++k)
    a[k] = with_handle(each->arguments[k]);
  return (int)each->called(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                           a[12], a[13], a[14], a[15]);
}

/* Replace the numbers of handles in the pages after the first, which has the slots. */
static void fill_pages(const char *end) {
  for (uint64_t *word = (uint64_t *)(FIRST_PAGE + 4096); word < (uint64_t *)end; ++word)
    *word = with_handle(*word);
}

/* Map the pages, make the handles, and read the plan. */
void prepare(void) {
  long size, steps;
  char *pages = map_file("pages", (void *)FIRST_PAGE, MAP_PRIVATE | MAP_FIXED, &size);
  *(uint64_t *)pages = (uint64_t)nothing;
  int (*init)(unsigned) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit");
  if (init(0)) /* starts the emulator, which brings nvJitLink */
    fail("cuInit");
  struct call *preparation = read_plan("preparation", &steps);
  for (long i = 0; i < steps; ++i) {
    fill_pages(pages + size);
    int result = make(preparation + i);
    if (result) {
      fprintf(stderr, "step %ld of the preparation: %d\n", i, result);
      _exit(98);
    }
  }
  fill_pages(pages + size);
  calls = read_plan("plan", &count);
  place = map_file("place", 0, MAP_SHARED, &size);
  last_place = place + 1;
  results = map_file("results", 0, MAP_SHARED, &size);
}

static void *run(void *at) {
  volatile long *here = at;
  for (long i = 0; i < count; ++i) {
    *here = i;
    results[i] = make(calls + i);
  }
  *here = count;
  return 0;
}

void call_all(void) { run((void *)place); }

static void in_thread(volatile long *here) {
  pthread_t thread;
  if (pthread_create(&thread, 0, run, (void *)here) || pthread_join(thread, 0))
    fail("thread");
}

void call_in_thread(void) { in_thread(place); }

static void hosted(void *unused) {
  (void)unused;
  call_all();
}

void call_in_host_function(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *stream = 0;
  int (*create)(void **, int) = dlsym(cuda, "cuStreamCreate");
  int (*launch)(void *, void (*)(void *), void *) = dlsym(cuda, "cuLaunchHostFunc");
  if (create(&stream, 1) || launch(stream, hosted, 0))
    fail("host function");
}

static void handler(void) { call_all(); }

static int is_last;

__attribute__((destructor)) static void destructor(void) {
  if (is_last)
    in_thread(last_place);
}

/* In a handler of `exit`, and again in a thread of a destructor. */
void call_at_exit(void) {
  is_last = 1;
  atexit(handler);
}
