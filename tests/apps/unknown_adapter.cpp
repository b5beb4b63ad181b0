// An adapter and its loader that urscope does not know: it must leave alone what it does not recognise.
//
// Compiled twice. With UNKNOWN defined, it is a library that exports an adapter's table getters, with the difference
// that the number selects; without, a program that calls an adapter as a loader of several adapters does: through the table that
// the first word of a handle points at.
//
//   1  implements a version of Unified Runtime that does not exist yet
//   2  has its dispatch table where no library has its data
//   3  has other functions in its dispatch table than its getters name
//   4  has the same functions in two places of its dispatch table
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <initializer_list>

using Function = int (*)(void *, void *, void **, size_t *);
using Getter = int (*)(uint32_t, void **);
using AdapterGet = int (*)(uint32_t, void ***, uint32_t *);

#ifdef UNKNOWN

static const uint32_t version = UNKNOWN == 1 ? 13 : 12;
static void *in_library[64];
static void **table = in_library;
static void *handle[1];

static int get(void *, void *, void **data, size_t *size) {
  static char bytes[16];
  *data = bytes;
  *size = sizeof bytes;
  return 0;
}
static int other(void *context, void *pointer, void **data, size_t *size) { return get(context, pointer, data, size); }
static int nothing() { return 0; }

static int adapter_get(uint32_t count, void ***adapters, uint32_t *total) {
  if (UNKNOWN == 2) table = static_cast<void **>(calloc(64, sizeof(void *)));
  table[8] = reinterpret_cast<void *>(UNKNOWN == 3 ? other : get);
  if (UNKNOWN == 4) table[20] = table[8];
  for (int slot : {9, 10, 11, 21, 22, 23}) table[slot] = reinterpret_cast<void *>(nothing);
  handle[0] = table;
  if (count > 0 && adapters) *adapters = handle;
  if (total) *total = 1;
  return 0;
}

extern "C" int urGetAdapterProcAddrTable(uint32_t asked, void **slots) {
  if (asked != version) return 43;
  slots[0] = reinterpret_cast<void *>(adapter_get);
  return 0;
}

extern "C" int urGetIPCExpProcAddrTable(uint32_t asked, void **slots) {
  if (asked != version) return 43;
  slots[0] = reinterpret_cast<void *>(get);
  for (int slot : {1, 2, 3}) slots[slot] = reinterpret_cast<void *>(nothing);
  return 0;
}

extern "C" uint32_t unknown_version() { return version; }

#else

int main(int, char **arguments) {
  void *adapter = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!adapter) return 10;
  auto symbol = [adapter](const char *name) { return dlsym(adapter, name); };
  uint32_t version = reinterpret_cast<uint32_t (*)()>(symbol("unknown_version"))();

  void *slots[16] = {}, *ipc[16] = {};
  if (reinterpret_cast<Getter>(symbol("urGetAdapterProcAddrTable"))(version, slots)) return 11;
  if (reinterpret_cast<Getter>(symbol("urGetIPCExpProcAddrTable"))(version, ipc)) return 12;
  void **handle = nullptr;
  if (reinterpret_cast<AdapterGet>(slots[0])(1, &handle, nullptr)) return 13;

  void *data = nullptr;
  size_t size = 0;
  int result = reinterpret_cast<Function>(static_cast<void **>(handle[0])[8])(handle, slots, &data, &size);
  printf("result %d, %zu bytes\n", result, size);
  return 0;
}

#endif
