// Calls of Unified Runtime that are counted before and after, in memory that outlives the process which makes them.
#pragma once

#include "ur_app.hpp"

#include <atomic>
#include <ctime>
#include <utility>

#include <sys/mman.h>
#include <sys/syscall.h>

namespace app {

enum Function { allocates, gets, puts_back, opens, closes, frees, functions };
constexpr const char *function_names[functions] = {"urUSMDeviceAlloc",      "urIPCGetMemHandleExp",   "urIPCPutMemHandleExp",
                                                   "urIPCOpenMemHandleExp", "urIPCCloseMemHandleExp", "urUSMFree"};

using Count = std::atomic<uint64_t>;
using Flag = std::atomic<uint32_t>;

// The calls of one thread, or those of its signal handlers.
struct Slot {
  Flag tid, of_handlers;
  Count begun[functions], returned[functions];
};

// The calls of one process, or of the program that it executed later.
struct Process {
  static constexpr int most = 20;
  Flag pid;
  // Records may be missing from a limit on; and after it was lifted none is.
  Flag limited, lifted;
  Flag used;
  Slot slots[most];

  Slot &add_slot(bool of_handlers = false) {
    const uint32_t index = used++;
    require(index < most, "too many threads");
    slots[index].tid = static_cast<uint32_t>(gettid());
    slots[index].of_handlers = of_handlers;
    return slots[index];
  }
};

// Handle data that a process offers to all others.
struct Offer {
  std::atomic<uint32_t> size;
  std::byte data[252];

  void set(const Data &got) {
    require(got.data != nullptr && got.size <= sizeof data, "no handle data");
    std::memcpy(data, got.data, got.size);
    size = static_cast<uint32_t>(got.size);
  }
};
struct Board {
  static constexpr int most = 4;
  Flag stop;
  Offer offers[most];
};

// Shared memory that programs inherit by its descriptor.
template <typename T> struct Shared {
  int descriptor = -1;
  T *value = nullptr;

  static Shared make() {
    const int descriptor = memfd_create("counts", MFD_CLOEXEC);
    require(descriptor >= 0 && ftruncate(descriptor, sizeof(T)) == 0, "no shared memory");
    return {descriptor, map(descriptor)};
  }
  static T *map(int descriptor) {
    void *memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    require(memory != MAP_FAILED, "cannot map shared memory");
    return static_cast<T *>(memory);
  }
};

// Starts this program again with descriptors of shared memory, each under a number that it knows.
inline pid_t start_with(std::vector<std::string> words, std::initializer_list<std::pair<int, int>> descriptors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (auto [own, known] : descriptors) posix_spawn_file_actions_adddup2(&actions, own, known);
  const pid_t pid = start_self(std::move(words), &actions);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

inline void pause_for(double microseconds) {
  const auto nanoseconds = static_cast<long>(microseconds * 1000);
  const timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  nanosleep(&time, nullptr);
}

// Where this thread counts.
inline thread_local Slot *slot = nullptr;

template <typename Call> ur_result_t counted(Function function, Call call) {
  slot->begun[function]++;
  const ur_result_t result = call();
  // In a forked child the slot may be another one by now.
  slot->returned[function]++;
  return result;
}

// The calls. A call may be refused, for example where a limit is reached.
struct Caller {
  Ur &ur;

  void *allocate(size_t size) const {
    void *memory = nullptr;
    counted(allocates, [&] { return urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, size, &memory); });
    return memory;
  }
  void free(void *memory) const { counted(frees, [&] { return urUSMFree(ur.context, memory); }); }
  Data get(void *memory) const {
    Data data;
    counted(gets, [&] { return urIPCGetMemHandleExp(ur.context, memory, &data.data, &data.size); });
    return data;
  }
  void put(const Data &data) const { counted(puts_back, [&] { return urIPCPutMemHandleExp(ur.context, data.data); }); }
  void *open(const Offer &offer) const {
    std::byte data[sizeof offer.data]; // An adapter may overwrite the bytes that it opens.
    std::memcpy(data, offer.data, sizeof data);
    void *memory = nullptr;
    const auto opened = [&] { return urIPCOpenMemHandleExp(ur.context, ur.device, data, offer.size, &memory); };
    return counted(opens, opened) == UR_RESULT_SUCCESS ? memory : nullptr;
  }
  void close(void *memory) const { counted(closes, [&] { return urIPCCloseMemHandleExp(ur.context, memory); }); }

  void get_and_put(void *memory) const {
    const Data data = get(memory);
    if (data.data != nullptr) put(data);
  }
  void open_and_close(const Offer &offer) const {
    void *memory = open(offer);
    if (memory != nullptr) close(memory);
  }
  void share_new_memory(size_t size) const {
    void *memory = allocate(size);
    if (memory == nullptr) return;
    get_and_put(memory);
    free(memory);
  }
};

// Prints the calls of a process that has made some, as a line of JSON that begins with `about`.
inline void print_counts(const std::string &about, const Process &process) {
  std::string line = "{" + about + ",\"pid\":" + std::to_string(process.pid) +
                     ",\"limited\":" + std::to_string(process.limited) + ",\"lifted\":" + std::to_string(process.lifted) +
                     ",\"slots\":[";
  for (const Slot &one : process.slots) {
    if (one.tid == 0) continue;
    if (line.back() == '}') line += ",";
    line += "{\"tid\":" + std::to_string(one.tid) + ",\"of_handlers\":" + std::to_string(one.of_handlers);
    const auto list = [&](const char *name, const Count *counts) {
      line += std::string(",\"") + name + "\":{";
      for (int function = 0; function < functions; function++) {
        if (function > 0) line += ",";
        line += std::string("\"") + function_names[function] + "\":" + std::to_string(counts[function]);
      }
      line += "}";
    };
    list("begun", one.begun);
    list("returned", one.returned);
    line += "}";
  }
  print(line + "]}");
}

} // namespace app
