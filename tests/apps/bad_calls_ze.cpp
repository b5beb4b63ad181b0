// Wrong arguments for Level Zero, in a process that shares memory and an event (bad_calls.hpp); and, with one argument, right calls whose
// structures have a pNext that leads nowhere.
#include "bad_calls.hpp"
#include "ze_app.hpp"

using namespace app;

struct Structure {
  uint32_t stype;
  uint64_t next;
  uint64_t words[8];
};

static void follow_nowhere(const Ze &ze) {
  const auto made = [](uint32_t stype, uint64_t first = 0) { return Structure{stype, bad_calls::NOWHERE, {first, 1 << 21}}; };
  const auto print = [](const char *what, uint32_t result) { printf("%s: %#x\n", what, result); };
  void *loader = dlopen("libze_loader.so.1", RTLD_LAZY);
  using Device = uint32_t (*)(ze_handle_t, const Structure *, size_t, size_t, ze_handle_t, void **);
  using Host = uint32_t (*)(ze_handle_t, const Structure *, size_t, size_t, void **);
  using Shared = uint32_t (*)(ze_handle_t, const Structure *, const Structure *, size_t, size_t, ze_handle_t, void **);
  using Properties = uint32_t (*)(ze_handle_t, const void *, Structure *, ze_handle_t *);
  using Physical = uint32_t (*)(ze_handle_t, ze_handle_t, const Structure *, ze_handle_t *);
  using Pool = uint32_t (*)(ze_handle_t, const Structure *, uint32_t, const ze_handle_t *, ze_handle_t *);
  const auto find = [&](const char *name, auto &function) { function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(loader, name)); };
  Device device;
  Host host;
  Shared shared;
  Properties properties;
  Physical physical;
  Pool pool;
  find("zeMemAllocDevice", device), find("zeMemAllocHost", host), find("zeMemAllocShared", shared);
  find("zeMemGetAllocProperties", properties), find("zePhysicalMemCreate", physical), find("zeEventPoolCreate", pool);
  Structure of_device = made(0x15), of_host = made(0x16), about = made(0x17), of_physical = made(0x19), of_pool = made(0x10, 3 | uint64_t{4} << 32);
  void *memory = nullptr;
  ze_handle_t object = nullptr;
  print("device", device(ze.context, &of_device, 1 << 20, 64, ze.device, &memory));
  print("properties", properties(ze.context, memory, &about, nullptr));
  print("host", host(ze.context, &of_host, 1 << 20, 64, &memory));
  print("shared", shared(ze.context, &of_device, &of_host, 1 << 20, 64, ze.device, &memory));
  print("physical", physical(ze.context, ze.device, &of_physical, &object));
  print("pool", pool(ze.context, &of_pool, 0, nullptr, &object));
}

static bad_calls::Right share() {
  const Ze &ze = *new Ze;
  const auto word = [](const auto *handle) { return reinterpret_cast<uint64_t>(handle); };
  void *memory = ze.allocate(1 << 20);
  ze.get(memory);
  const ze_handle_t pool = ze.pool(3), event = ze.event(pool), list = ze.immediate_list(1);
  ze_ipc_mem_handle_t of_pool = {};
  Ze::check(ze.zeEventPoolGetIpcHandle(pool, &of_pool), "zeEventPoolGetIpcHandle");
  return {{"Context", word(ze.context)}, {"QueueContext", word(ze.context)}, {"AnyDevice", word(ze.device)}, {"ZePool", word(pool)},
          {"Event", word(event)}, {"Queue", word(list)}, {"Pointer", word(memory)}, {"Accessed", word(memory)}, {"CopiedFrom", word(memory)},
          {"Length", 4096}, {"ListCount", 1}, {"Count", 1}, {"driver", word(ze.driver)}};
}

int main(int argc, char **argv) {
  if (argc > 1) bad_calls::make(dlopen("libze_loader.so.1", RTLD_LAZY), argv, share);
  else follow_nowhere(Ze());
}
