// Calls of C functions in a thread that C makes, one after the other.
#include <pthread.h>

typedef int (*function)(long, long, long, long, long, long);
struct call { function called; long arguments[6]; long result; };
struct calls { struct call *first; long count; };

static void *run(void *given) {
  struct calls *calls = given;
  for (long i = 0; i < calls->count; ++i) {
    struct call *c = calls->first + i;
    long *a = c->arguments;
    c->result = c->called(a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  return 0;
}

// Each element is the work of one thread. They run together if `together`, else in turn.
void in_threads(struct calls *threads, long count, long together) {
  pthread_t made[64];
  for (long i = 0; i < count; ++i) {
    pthread_create(&made[i], 0, run, threads + i);
    if (!together) pthread_join(made[i], 0);
  }
  for (long i = 0; together && i < count; ++i) pthread_join(made[i], 0);
}
