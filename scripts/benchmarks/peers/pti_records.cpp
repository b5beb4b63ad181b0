// A preloaded library that has Intel's profiling library PTI record the calls of the runtime and of the driver, for `scripts/bench overhead`.
// At its end it prints the number of records of each to stderr.
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include <dlfcn.h>

namespace {

// Of pti/pti_view.h.
enum { DRIVER_API = 3, RUNTIME_API = 6 };

unsigned long records[16];
int (*next_record)(unsigned char *, size_t, const int **);
int (*flush)();

void give(unsigned char **buffer, size_t *size) {
  *size = 1 << 20;
  *buffer = static_cast<unsigned char *>(std::aligned_alloc(64, *size));
}

// A record begins with its view.
void take(unsigned char *buffer, size_t, size_t used) {
  const int *record = nullptr;
  while (used > 0 && next_record(buffer, used, &record) == 0) records[*record & 15]++;
  std::free(buffer);
}

template <typename Function> void find(void *library, const char *name, Function &function) {
  function = library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

__attribute__((constructor)) void begin() {
  void *library = dlopen("libpti_view.so.1", RTLD_NOW);
  int (*callbacks)(void (*)(unsigned char **, size_t *), void (*)(unsigned char *, size_t, size_t));
  int (*enable)(int);
  find(library, "ptiViewSetCallbacks", callbacks);
  find(library, "ptiViewEnable", enable);
  find(library, "ptiViewGetNextRecord", next_record);
  find(library, "ptiFlushAllViews", flush);
  if (!callbacks || !enable || !next_record || !flush || callbacks(give, take) != 0) return;
  for (int view : {DRIVER_API, RUNTIME_API}) enable(view);
}

__attribute__((destructor)) void end() {
  if (flush) flush();
  std::fprintf(stderr, "PTI recorded %lu calls of the driver and %lu of the runtime\n", records[DRIVER_API], records[RUNTIME_API]);
}

} // namespace
