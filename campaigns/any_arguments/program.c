/* A program without Python that makes the calls of a plan: `program FOLDER WAY`. */

#include "calls.c"

#include <sys/wait.h>

static void call_in_child(void) {
  int status = 0;
  if (!fork()) {
    call_all();
    _exit(0);
  }
  wait(&status);
  if (status) {
    fprintf(stderr, "the child ends with %#x\n", status);
    _exit(99);
  }
}

int main(int argument_count, char **arguments) {
  static const struct {
    const char *name;
    void (*call)(void);
  } ways[] = {{"plain", call_all},
              {"thread", call_in_thread},
              {"hosted", call_in_host_function},
              {"exit", call_at_exit},
              {"fork", call_in_child}};
  if (argument_count != 3 || chdir(arguments[1]))
    fail("FOLDER WAY");
  prepare();
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i)
    if (!strcmp(ways[i].name, arguments[2]))
      ways[i].call();
  return 0;
}
