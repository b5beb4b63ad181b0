// A gate in a queue: the work behind it waits until the host opens it, however long that takes.
//
// So a program can query an event that certainly has not been signalled yet, independent of timing. It is a Level Zero event
// that the host signals, as any program may share one with its SYCL runtime.
#pragma once

#include "ipc_app.hpp"
#include "native_event.hpp"

#include <sycl/ext/oneapi/backend/level_zero.hpp>

namespace app {

class Gate {
public:
  // Behind everything in the queue so far, in front of everything later.
  explicit Gate(Gpu &gpu) : native(sycl::get_native<level_zero>(gpu.context)) {
    using Native = sycl::backend_input_t<level_zero, sycl::event>;
    const Native input = {static_cast<ze_event_handle_t>(native.get()), sycl::ext::oneapi::level_zero::ownership::keep};
    event = sycl::make_event<level_zero>(input, gpu.context);
    gpu.queue.ext_oneapi_submit_barrier({event});
  }
  Gate(const Gate &) = delete;

  void open() { native.signal(); }

private:
  static constexpr auto level_zero = sycl::backend::ext_oneapi_level_zero;

  // Destroy it after the queue has passed it, and the event around it first.
  NativeEvent native;
  sycl::event event;
};

} // namespace app
