/* A program without Python that makes the calls of a plan: `any_program FOLDER WAY`.

   `any_arguments.py` writes the plan, and places `place`, in the folder. */

#define _GNU_SOURCE
#include "any_calls.c"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 60, HANDLES = 7 };
static const uint64_t FIRST_PAGE = 1UL << 36, FIRST_HANDLE = 0xFACE0000UL << 32;
struct planned {
  char library[24], symbol[56];
  uint64_t arguments[16];
};

static void fail(const char *what) {
  perror(what);
  _exit(99);
}

static void *mapped(const char *path, size_t size, int flags) {
  int file = open(path, O_RDWR);
  void *at = mmap(0, size, PROT_READ | PROT_WRITE, flags, file, 0);
  if (at == MAP_FAILED)
    fail(path);
  return at;
}

static void map_pages(void) {
  static const unsigned char fillers[] = {0, 1, 255};
  for (int i = 0; i < PAGES; ++i) {
    void *at = (void *)(FIRST_PAGE + 2UL * PAGE * i);
    if (mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        at)
      fail("page");
    memset(at, fillers[i % 3], PAGE);
  }
}

static function at(void *library, const char *name) {
  function found = (function)dlsym(library, name);
  if (!found)
    fail(name);
  return found;
}

static long call(void *cuda, const char *name, void *a, void *b, long c) {
  return (int)at(cuda, name)((long)a, (long)b, c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* A context, a stream, an event, a module, its kernel, a graph and memory. */
static void make_handles(void *cuda, uint64_t *made) {
  static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                            ".visible .entry k(.param .u64 x, .param .u32 n) { ret; }\n";
  if (call(cuda, "cuInit", 0, 0, 0) || call(cuda, "cuDevicePrimaryCtxRetain", made, 0, 0) ||
      call(cuda, "cuCtxSetCurrent", (void *)made[0], 0, 0) ||
      call(cuda, "cuStreamCreate", made + 1, (void *)1, 0) ||
      call(cuda, "cuEventCreate", made + 2, 0, 0) ||
      call(cuda, "cuModuleLoadData", made + 3, (void *)ptx, 0) ||
      call(cuda, "cuModuleGetFunction", made + 4, (void *)made[3], (long)"k") ||
      call(cuda, "cuGraphCreate", made + 5, 0, 0) ||
      call(cuda, "cuMemAlloc_v2", made + 6, (void *)PAGE, 0))
    fail("handles");
}

static void fork_calls(struct call *calls, long count, volatile long *place) {
  int status = 0;
  if (!fork()) {
    call_all(calls, count, place, 0);
    _exit(0);
  }
  wait(&status);
  if (status) {
    fprintf(stderr, "the child ends with %#x\n", status);
    _exit(99);
  }
}

int main(int argument_count, char **arguments) {
  uint64_t made[HANDLES] = {0};
  const char *way = arguments[2];
  if (argument_count != 3 || chdir(arguments[1]))
    fail("FOLDER WAY");
  int file = open("plan", O_RDONLY);
  long count = lseek(file, 0, SEEK_END) / (long)sizeof(struct planned);
  const struct planned *plan = mapped("plan", count * sizeof *plan, MAP_PRIVATE);
  volatile long *place = mapped("place", PAGE, MAP_SHARED);
  struct call *calls = calloc(count, sizeof *calls);
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  map_pages();
  make_handles(cuda, made);
  for (long i = 0; i < count; ++i) {
    calls[i].called = at(dlopen(plan[i].library, RTLD_NOW), plan[i].symbol);
    for (int k = 0; k < 16; ++k) {
      uint64_t value = plan[i].arguments[k];
      calls[i].arguments[k] = value - FIRST_HANDLE < HANDLES ? made[value - FIRST_HANDLE] : value;
    }
  }
  if (!strcmp(way, "exit"))
    call_at_exit(calls, count, place);
  else if (!strcmp(way, "fork"))
    fork_calls(calls, count, place);
  else if (!strcmp(way, "hosted"))
    return (int)call_in_host_function(calls, count, place, (void *)at(cuda, "cuLaunchHostFunc"),
                                      (void *)made[1]);
  else
    call_all(calls, count, place, !strcmp(way, "thread"));
  return 0;
}
