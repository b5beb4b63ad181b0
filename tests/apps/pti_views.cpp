// Two processes share memory through Level Zero while Intel's profiling library PTI records what they do: it traces the loader, and has
// contexts and event pools of its own. The argument names what is right or wrong; "list" prints the names.
#include "ze_app.hpp"

#include <cstdlib>

using namespace app;

static constexpr size_t SIZE = 1 << 16;

// The views of PTI (pti/pti_view.h), found by name. From here on it records; `calls` says how many calls of the driver those were.
class Views {
public:
  Views() {
    library = dlopen("libpti_view.so.1", RTLD_NOW);
    require(library != nullptr, "there is no libpti_view.so.1");
    next_record = find<int(unsigned char *, size_t, const int **)>("ptiViewGetNextRecord");
    check(find<int(void (*)(unsigned char **, size_t *), void (*)(unsigned char *, size_t, size_t))>("ptiViewSetCallbacks")(give, take));
    for (int view : {GPU_KERNEL, DRIVER_API, RUNTIME_API, MEMORY_COPY, MEMORY_FILL}) check(find<int(int)>("ptiViewEnable")(view));
  }

  size_t calls() {
    check(find<int()>("ptiFlushAllViews")());
    return driver_calls;
  }

private:
  enum { GPU_KERNEL = 1, DRIVER_API = 3, RUNTIME_API = 6, MEMORY_COPY = 8, MEMORY_FILL = 9 };

  static void give(unsigned char **buffer, size_t *size) {
    *size = 1 << 16;
    *buffer = static_cast<unsigned char *>(std::aligned_alloc(64, *size));
  }
  // A record begins with its view.
  static void take(unsigned char *buffer, size_t, size_t used) {
    const int *record = nullptr;
    while (used > 0 && next_record(buffer, used, &record) == 0) driver_calls += *record == DRIVER_API;
    std::free(buffer);
  }

  template <typename Function> Function *find(const char *name) {
    auto *function = reinterpret_cast<Function *>(dlsym(library, name));
    require(function != nullptr, std::string("PTI has no ") + name);
    return function;
  }
  static void check(int result) { require(result == 0, "PTI refuses: " + std::to_string(result)); }

  void *library = nullptr;
  static inline int (*next_record)(unsigned char *, size_t, const int **) = nullptr;
  static inline size_t driver_calls = 0;
};

static void producer(Peer &consumer) {
  Views views;
  const Ze ze;
  void *memory = ze.allocate(SIZE);
  std::memset(memory, shared_byte, SIZE);
  ze_ipc_mem_handle_t handle = {};
  Ze::check(ze.zeMemGetIpcHandle(ze.context, memory, &handle), "zeMemGetIpcHandle");
  consumer.send(message(handle));
  consumer.await("closed");
  Ze::check(ze.zeMemPutIpcHandle(ze.context, handle), "zeMemPutIpcHandle");
  Ze::check(ze.zeMemFree(ze.context, memory), "zeMemFree");
  print(views.calls() > 0 ? "producer: recorded" : "producer: PTI recorded nothing");
}

static void consumer(Peer &producer, bool closes_twice) {
  Views views;
  const Ze ze;
  void *opened = nullptr;
  Ze::check(ze.zeMemOpenIpcHandle(ze.context, ze.device, fetched(producer.receive()), 0, &opened), "zeMemOpenIpcHandle");
  require_shared(opened, SIZE);
  Ze::check(ze.zeMemCloseIpcHandle(ze.context, opened), "zeMemCloseIpcHandle");
  if (closes_twice) ze.zeMemCloseIpcHandle(ze.context, opened);
  producer.say("closed");
  print(views.calls() > 0 ? "consumer: recorded" : "consumer: PTI recorded nothing");
}

int main(int argc, char **argv) {
  for (const char *what : {"right", "closed-twice"})
    modes().emplace_back(what, producer, [=](Peer &other) { consumer(other, std::string(what) == "closed-twice"); });
  return run_modes(argc, argv);
}
