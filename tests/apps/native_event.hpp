// A Level Zero event that the host signals, as any program may share one with its runtime.
#pragma once

#include "peer.hpp"

#include <dlfcn.h>

namespace app {

class NativeEvent {
public:
  // `context` is a ze_context_handle_t.
  explicit NativeEvent(void *context) {
    const PoolDesc pool_desc = {0x10, nullptr, 1, 1}; // ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, ZE_EVENT_POOL_FLAG_HOST_VISIBLE
    const EventDesc event_desc = {0x11, nullptr, 0, 4, 4}; // ZE_STRUCTURE_TYPE_EVENT_DESC, ZE_EVENT_SCOPE_FLAG_HOST
    call("zeEventPoolCreate", context, &pool_desc, 0u, static_cast<void *>(nullptr), &pool);
    call("zeEventCreate", pool, &event_desc, &event);
  }
  NativeEvent(const NativeEvent &) = delete;
  ~NativeEvent() {
    call("zeEventDestroy", event);
    call("zeEventPoolDestroy", pool);
  }

  void signal() { call("zeEventHostSignal", event); }

  // A ze_event_handle_t.
  void *get() const { return event; }

private:
  struct PoolDesc {
    uint32_t stype;
    const void *next;
    uint32_t flags, count;
  };
  struct EventDesc {
    uint32_t stype;
    const void *next;
    uint32_t index, signal, wait;
  };

  template <typename... Arguments> static void call(const char *name, Arguments... arguments) {
    void *loader = dlopen("libze_loader.so.1", RTLD_NOW);
    auto *function = reinterpret_cast<uint32_t (*)(Arguments...)>(loader ? dlsym(loader, name) : nullptr);
    require(function && function(arguments...) == 0, std::string(name) + " failed");
  }

  void *pool = nullptr;
  void *event = nullptr;
};

} // namespace app
