// For the SYCL test programs: memory with a known pattern, and the names of the IPC functions. Not all of SYCL: that takes longer to compile.
#pragma once

#include "peer.hpp"
#include <cstring>
#include <sycl/detail/core.hpp>
#include <sycl/ext/oneapi/experimental/ipc_memory.hpp>
#include <sycl/properties/all_properties.hpp>
#include <sycl/usm.hpp>

namespace app {

// Release 2026.2 moved the functions; the older ones have the same functions under the older name.
#if __has_include(<sycl/ext/oneapi/experimental/detail/ipc_common.hpp>)
namespace ipc = sycl::ext::oneapi::experimental::ipc::memory;
using Handle = sycl::ext::oneapi::experimental::ipc::handle;
#else
namespace ipc = sycl::ext::oneapi::experimental::ipc_memory;
using Handle = ipc::handle;
#endif

// Above the size from which the adapters serve an allocation from a pool: it is the driver's own, and freeing it
// reaches the driver.
constexpr size_t unpooled = 8 << 20;

// The queue of a program. It is in-order, so copies run in the order of the source.
struct Gpu {
  sycl::device device{sycl::gpu_selector_v};
  sycl::context context{device};
  sycl::queue queue{context, device, sycl::property::queue::in_order{}};

  std::byte *allocate(size_t size) {
    auto *memory = static_cast<std::byte *>(sycl::malloc_device(size, device, context));
    require(memory != nullptr, "no device memory");
    return memory;
  }
  void free(void *memory) { sycl::free(memory, context); }

  // Only copies can access device memory.
  void write(void *device_memory, const Bytes &data) { queue.memcpy(device_memory, data.data(), data.size()).wait(); }
  Bytes read(const void *device_memory, size_t size) {
    Bytes data(size);
    queue.memcpy(data.data(), device_memory, size).wait();
    return data;
  }
};

// A pattern that depends on the position and on a seed.
inline Bytes pattern(size_t size, uint32_t seed) {
  Bytes data(size);
  uint32_t state = seed * 2654435761u + 1;
  for (auto &byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return data;
}

// FNV-1a: two runs that print the same sum copied the same bytes.
inline std::string checksum(const Bytes &data) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (std::byte byte : data) sum = (sum ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  char text[32];
  snprintf(text, sizeof text, "%zu bytes, %016llx", data.size(), static_cast<unsigned long long>(sum));
  return text;
}

// The v1 adapter reports success for a get or an open that failed, and returns nothing.
inline Handle get(void *memory, const Gpu &gpu) {
  Handle handle = ipc::get(memory, gpu.context);
  require(!handle.data().empty(), "get handed out an empty handle");
  return handle;
}
inline void put(Handle handle, const Gpu &gpu) { ipc::put(handle, gpu.context); }
inline std::byte *open(const Bytes &handle, const Gpu &gpu) {
  void *memory = ipc::open(handle, gpu.context, gpu.device);
  require(memory != nullptr, "open handed out no pointer");
  return static_cast<std::byte *>(memory);
}
inline void close(void *memory, const Gpu &gpu) { ipc::close(memory, gpu.context); }

// For a call that the runtime may refuse: whether it did.
inline std::string outcome(const std::function<void()> &call) {
  try {
    call();
    return "accepted";
  } catch (const sycl::exception &) {
    return "refused";
  }
}

// A copy of a handle, with its data at another address.
inline Handle with_data_at(Handle handle, std::byte *data) {
  static_assert(sizeof(Handle) == sizeof(std::byte *) + sizeof(size_t), "a handle is a pointer and a size");
  std::memcpy(static_cast<void *>(&handle), &data, sizeof data); // The pointer is its first member.
  return handle;
}

// The part of a consumer that is the same in most programs: opens what the producer sent, and prints what it reads.
inline std::byte *open_and_read(const Peer &producer, Gpu &gpu, size_t size) {
  std::byte *memory = open(producer.receive(), gpu);
  print("consumer read " + checksum(gpu.read(memory, size)));
  return memory;
}

// Its counterpart: memory with a pattern, and a handle to it.
struct Export {
  std::byte *memory;
  Handle handle;
};
inline Export export_pattern(Gpu &gpu, size_t size, uint32_t seed) {
  std::byte *memory = gpu.allocate(size);
  const Bytes data = pattern(size, seed);
  gpu.write(memory, data);
  print("producer wrote " + checksum(data));
  return {memory, get(memory, gpu)};
}

// What a producer shares: memory with a pattern, and handle data of it, which it ends itself.
struct Shared {
  Gpu gpu;
  Export exported;
  std::byte *const memory = exported.memory;
  const Bytes data = exported.handle.data();

  explicit Shared(size_t size = 1 << 20, uint32_t seed = 1) : exported(export_pattern(gpu, size, seed)) {}
  void put() const { app::put(exported.handle, gpu); }
  void free() { gpu.free(memory); }
  void end() { put(), free(); }
  // Sends the data, and waits until the consumer has said something.
  void send(const Peer &consumer, const char *until) const {
    consumer.send(data);
    consumer.await(until);
  }
};

// Shares it until the consumer has closed it, or has ended.
inline void share_until_closed(Peer &consumer, size_t size = 1 << 20, uint32_t seed = 1) {
  Shared shared(size, seed);
  shared.send(consumer, "closed");
  shared.end();
}
inline void share_until_ended(Peer &consumer) {
  Shared shared;
  consumer.send(shared.data);
  consumer.wait_for_end();
  shared.end();
}

// A command that reads shared memory, and whether it has got what was sent, once it has completed.
struct Reading {
  sycl::event event;
  std::function<bool()> is_right;
};

// A mistake: the consumer closes memory that its command still reads, and tells the producer, which uses the memory for something else.
// Fixed, the consumer waits for the command first. Its device is slowed, so that the command always comes late.
inline void use_for_something_else(Peer &consumer, const Bytes &sent, const Bytes &written_later) {
  Gpu gpu;
  std::byte *memory = gpu.allocate(sent.size());
  gpu.write(memory, sent);
  const Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  gpu.write(memory, written_later);
  consumer.say("used again");
  put(handle, gpu);
  gpu.free(memory);
}
inline void close_while_read(Peer &producer, const std::function<Reading(Gpu &, const std::byte *)> &read) {
  setenv("ZE_SOFT_DELAY", "4s", 1);
  Gpu gpu;
  std::byte *memory = open(producer.receive(), gpu);
  Reading reading = read(gpu, memory);
  if (is_fixed()) reading.event.wait();
  close(memory, gpu);
  producer.say("closed");
  producer.await("used again");
  reading.event.wait();
  print(reading.is_right() ? "consumer has what was sent" : "consumer has something else");
}

} // namespace app
