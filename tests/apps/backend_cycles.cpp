// Gets, opens, closes and puts memory, physical memory and events many times in one process, and counts its resources.
//
// The functions are looked up by name, as in a program that must also run where the runtime does not have them.
//
//   backend_cycles [TIMES [THREADS]]
#include "counts.hpp"
#include "ur_app.hpp"

#include <atomic>
#include <dlfcn.h>
#include <thread>

using namespace app;

// An object to share, and its four functions. `void **` and what is passed by value have the same shape in all releases.
struct Shared {
  const char *kind;
  std::function<ur_result_t(void **, size_t *)> get;
  std::function<ur_result_t(void *)> put;
  std::function<ur_result_t(const void *, size_t, void **)> open;
  std::function<ur_result_t(void *)> close;
};

template <typename Function> static Function *find(const std::string &name) {
  auto *function = reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name.c_str()));
  require(function != nullptr, "there is no " + name);
  return function;
}

// Memory and physical memory.
static Shared shared(Ur &ur, const std::string &kind, void *object) {
  const std::string end = kind + "HandleExp";
  auto *get = find<ur_result_t(void *, void *, void **, size_t *)>("urIPCGet" + end);
  auto *put = find<ur_result_t(void *, void *)>("urIPCPut" + end);
  auto *open = find<ur_result_t(void *, void *, const void *, size_t, void **)>("urIPCOpen" + end);
  auto *close = find<ur_result_t(void *, void *)>("urIPCClose" + end);
  return {kind == "Mem" ? "memory" : "physical memory", [=, &ur](void **data, size_t *size) { return get(ur.context, object, data, size); },
          [=, &ur](void *data) { return put(ur.context, data); },
          [=, &ur](const void *data, size_t size, void **out) { return open(ur.context, ur.device, data, size, out); },
          [=, &ur](void *opened) { return close(ur.context, opened); }};
}

static Shared shared_event(Ur &ur, void *event) {
  auto *get = find<ur_result_t(void *, void **, size_t *)>("urIPCGetEventHandleExp");
  auto *put = find<ur_result_t(void *, void *)>("urIPCPutEventHandleExp");
  auto *open = find<ur_result_t(void *, const void *, size_t, void **)>("urIPCOpenEventHandleExp");
  auto *release = find<ur_result_t(void *)>("urEventRelease");
  return {"event", [=](void **data, size_t *size) { return get(event, data, size); },
          [=, &ur](void *data) { return put(ur.context, data); },
          [=, &ur](const void *data, size_t size, void **out) { return open(ur.context, data, size, out); },
          [=](void *opened) { return release(opened); }};
}

// Two handles of an object, opened once each, and a put before they are closed. An extra put is possible only where no other
// thread can have received the same address since.
static void cycle(const Shared &object, bool alone) {
  void *data[2], *opened[2];
  size_t size = 0;
  for (void *&one : data) CHECK(object.get(&one, &size));
  for (int j : {0, 1}) CHECK(object.open(data[j], size, &opened[j]));
  CHECK(object.put(data[0]));
  if (alone) require(object.put(data[0]) == UR_RESULT_ERROR_INVALID_ARGUMENT, "a second put was accepted");
  for (void *one : opened) CHECK(object.close(one));
  CHECK(object.put(data[1]));
}

// A tenth more before anything is counted, so that caches are filled.
static void cycle_alone(const Shared &object, int times) {
  for (int i = 0; i < times / 10; ++i) cycle(object, true);
  const Holdings before;
  for (int i = 0; i < times; ++i) cycle(object, true);
  print(std::string(object.kind) + ": " + Holdings().more_than(before));
}

// All threads with all objects, each in an order of its own.
static void cycle_in_threads(const std::vector<Shared> &objects, int times, int threads) {
  std::vector<std::thread> running;
  std::atomic<int> ready{0}, failed{0};
  std::atomic<bool> counted{false}, over{false};
  const auto work = [&](int number, int rounds) {
    for (int i = 0; i < rounds && failed == 0; ++i)
      for (size_t j = 0; j < objects.size(); ++j) cycle(objects[(j + static_cast<size_t>(number)) % objects.size()], false);
  };
  for (int number = 0; number < threads; ++number)
    running.emplace_back([&, number] {
      failed += guarded([&] { work(number, times / 10); });
      ++ready;
      while (!counted) std::this_thread::yield();
      failed += guarded([&] { work(number, times); });
      ++ready;
      while (!over) std::this_thread::yield();
    });
  const auto all = [&](int turn) {
    while (ready < turn * threads) usleep(1000);
  };
  all(1);
  const Holdings before;
  counted = true;
  all(2);
  const std::string more = Holdings().more_than(before, false);
  over = true;
  for (auto &thread : running) thread.join();
  require(failed == 0, "a thread failed");
  print(std::to_string(threads) + " threads: " + more);
}

int main(int argc, char **argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  return guarded([=] {
    Ur ur;
    std::vector<Shared> objects;
    void *memory = ur.allocate(1 << 20);
    objects.push_back(shared(ur, "Mem", memory));
    ur_physical_mem_handle_t physical = ur.make_memory();
    objects.push_back(shared(ur, "PhysMem", physical));
    ur_event_handle_t event = nullptr;
    const bool events = ur.supports(UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP);
    if (events) {
      event = ur.make_event();
      objects.push_back(shared_event(ur, event));
    }

    if (threads > 1) cycle_in_threads(objects, times, threads);
    else
      for (const Shared &object : objects) cycle_alone(object, times);

    if (events) CHECK(urEventRelease(event));
    CHECK(urPhysicalMemRelease(physical));
    ur.free(memory);
  });
}
