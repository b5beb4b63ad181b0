// A gate in a queue: the work behind it waits until the host opens it, however long that takes.
//
// So a program can look at an event that certainly has not been signalled yet, without any luck of timing. Made of a Level
// Zero event that the host signals, as any program may share one with its SYCL runtime.
#pragma once

#include "ipc_app.hpp"

#include <dlfcn.h>
#include <sycl/ext/oneapi/backend/level_zero.hpp>

namespace app {

class Gate {
public:
  // Behind everything in the queue so far, in front of everything later.
  explicit Gate(Gpu &gpu) {
    const PoolDesc pool_desc = {0x10, nullptr, 1, 1}; // ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, ZE_EVENT_POOL_FLAG_HOST_VISIBLE
    const EventDesc event_desc = {0x11, nullptr, 0, 4, 4}; // ZE_STRUCTURE_TYPE_EVENT_DESC, ZE_EVENT_SCOPE_FLAG_HOST
    void *context = sycl::get_native<level_zero>(gpu.context);
    call("zeEventPoolCreate", context, &pool_desc, 0u, static_cast<void *>(nullptr), &pool);
    call("zeEventCreate", pool, &event_desc, &native);
    using Native = sycl::backend_input_t<level_zero, sycl::event>;
    const Native input = {static_cast<ze_event_handle_t>(native), sycl::ext::oneapi::level_zero::ownership::keep};
    event = sycl::make_event<level_zero>(input, gpu.context);
    gpu.queue.ext_oneapi_submit_barrier({event});
  }
  Gate(const Gate &) = delete;

  void open() { call("zeEventHostSignal", native); }

  // To be destroyed when the queue has passed it.
  ~Gate() {
    event = {};
    call("zeEventDestroy", native);
    call("zeEventPoolDestroy", pool);
  }

private:
  static constexpr auto level_zero = sycl::backend::ext_oneapi_level_zero;

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
  void *native = nullptr;
  sycl::event event;
};

} // namespace app
