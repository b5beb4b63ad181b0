// For the programs that share events.
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

inline bool is_complete(const sycl::event &event) {
  const auto now = event.get_info<sycl::info::event::command_execution_status>();
  return now == sycl::info::event_command_status::complete;
}

} // namespace app
