/* Calls of C functions with any arguments: now, in a thread, in a host function of a stream, or
   while the process ends. */

#include <pthread.h>
#include <stdlib.h>

typedef long (*function)(long, long, long, long, long, long, long, long, long, long, long, long,
                         long, long, long, long);
struct call {
  function called;
  long arguments[16];
  long result;
};

static struct {
  struct call *calls;
  long count;
  volatile long *place; /* of the running call, in a file that outlives the process */
} work, last;

static void *run(void *unused) {
  for (long at = 0; at < work.count; ++at) {
    struct call *each = work.calls + at;
    long *a = each->arguments;
    *work.place = at;
    each->result = each->called(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                                a[11], a[12], a[13], a[14], a[15]);
  }
  *work.place = work.count;
  return unused;
}

void call_all(struct call *calls, long count, volatile long *place, long in_thread) {
  pthread_t thread;
  work.calls = calls, work.count = count, work.place = place;
  if (!in_thread)
    run(0);
  else if (!pthread_create(&thread, 0, run, 0))
    pthread_join(thread, 0);
}

static void hosted(void *unused) { run(unused); }

/* The calls, by cuLaunchHostFunc, which is `launch`. */
long call_in_host_function(struct call *calls, long count, volatile long *place,
                           long (*launch)(void *, void *, void *), void *stream) {
  work.calls = calls, work.count = count, work.place = place;
  return launch(stream, (void *)hosted, 0);
}

static void handler(void) {
  if (last.calls)
    call_all(last.calls, last.count, last.place, 0);
}

__attribute__((destructor)) static void destructor(void) {
  if (last.calls)
    call_all(last.calls, last.count, last.place + 1, 1);
}

void call_at_exit(struct call *calls, long count, volatile long *place) {
  last.calls = calls, last.count = count, last.place = place;
  atexit(handler);
}
