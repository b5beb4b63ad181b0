// A preloaded library that takes the place of two functions of Level Zero, for `scripts/bench overhead`: with TRACEPOINTS, each call has two
// tracepoints of LTTng, the least that a tool on LTTng can cost; compiled with -pg, it shows each call to uftrace.
#include "if_tracepoints.hpp"

#include <cstdint>
#include <cstring>

#include <dlfcn.h>

namespace {

struct Handle { char data[64]; };

uint32_t (*get)(void *, const void *, Handle *);
uint32_t (*put)(void *, Handle);

} // namespace

extern "C" {

uint32_t zeMemGetIpcHandle(void *context, const void *memory, Handle *handle) {
  lttng_ust_tracepoint(bench, entry, 0, context, memory);
  const uint32_t result = get(context, memory, handle);
  lttng_ust_tracepoint(bench, exit, 0, result);
  return result;
}

uint32_t zeMemPutIpcHandle(void *context, Handle handle) {
  lttng_ust_tracepoint(bench, entry, 1, context, *reinterpret_cast<void **>(handle.data));
  const uint32_t result = put(context, handle);
  lttng_ust_tracepoint(bench, exit, 1, result);
  return result;
}

// The program finds the functions by name.
__attribute__((no_instrument_function)) void *dlsym(void *library, const char *name) noexcept {
  static const auto real = reinterpret_cast<void *(*)(void *, const char *) noexcept>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  if (std::strcmp(name, "zeMemGetIpcHandle") == 0) {
    get = reinterpret_cast<decltype(get)>(real(library, name));
    return get ? reinterpret_cast<void *>(zeMemGetIpcHandle) : nullptr;
  }
  if (std::strcmp(name, "zeMemPutIpcHandle") == 0) {
    put = reinterpret_cast<decltype(put)>(real(library, name));
    return put ? reinterpret_cast<void *>(zeMemPutIpcHandle) : nullptr;
  }
  return real(library, name); // A jump: what RTLD_NEXT means depends on the caller.
}
}
