// For the programs that share events: two sides with memory that both can access, and the shared event.
#pragma once

#include "gate.hpp"

#include <sycl/ext/oneapi/experimental/ipc_event.hpp>
#include <sycl/ext/oneapi/experimental/reusable_events.hpp>

namespace app {

namespace experimental = sycl::ext::oneapi::experimental;
namespace ipc_event = sycl::ext::oneapi::experimental::ipc::event;

inline sycl::event make_shared_event(const Gpu &gpu) {
  return experimental::make_event(gpu.context, experimental::properties{experimental::enable_ipc{true}});
}

inline std::string status(const sycl::event &event) {
  const auto now = event.get_info<sycl::info::event::command_execution_status>();
  return now == sycl::info::event_command_status::complete ? "complete" : "pending";
}

// One of the two processes. They share memory by memory IPC; its content shows whether a wait lasted.
struct Side {
  const char *name;
  Peer &peer;
  Gpu gpu{};
  std::byte *memory = nullptr;
  Bytes data{};

  void say_status(const sycl::event &event) { print(std::string(name) + " finds the event " + status(event)); }
  void read() { print(std::string(name) + " read " + checksum(gpu.read(memory, size))); }

  // Copies a new pattern to the shared memory, and signals the event after the copy. Waits for neither.
  void write_and_signal(sycl::event &event, uint32_t seed) {
    data = pattern(size, seed);
    print(std::string(name) + " writes " + checksum(data));
    gpu.queue.memcpy(memory, data.data(), data.size());
    experimental::enqueue_signal_event(gpu.queue, event);
  }

  static constexpr size_t size = 1 << 20;
};

} // namespace app
