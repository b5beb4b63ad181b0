// Errors that SYCL reports before it calls an adapter, or because of the adapter's result.
#include "ipc_app.hpp"

#include "event_app.hpp"
#include "physical_app.hpp"

using namespace app;

static void try_to(const std::string &what, const std::function<void()> &call) { print(what + ": " + outcome(call)); }

static void say_aspects(const Gpu &gpu) {
  const auto has = [&](sycl::aspect aspect) { return std::string(gpu.device.has(aspect) ? "yes" : "no"); };
  print("memory: " + has(sycl::aspect::ext_oneapi_ipc_memory));
  print("physical memory: " + has(sycl::aspect::ext_oneapi_ipc_physical_memory));
  print("event: " + has(sycl::aspect::ext_oneapi_ipc_event));
}

int main() {
  return guarded([] {
    Gpu gpu;
    say_aspects(gpu);

    physical_mem plain(gpu.device, gpu.context, granularity(gpu));
    try_to("get of physical memory that is not shared", [&] { ipc_physical::get(plain); });
    try_to("open of physical memory from seven bytes", [&] { ipc_physical::open(Bytes(7), gpu.context, gpu.device); });
    try_to("open of physical memory from zeros", [&] { ipc_physical::open(Bytes(16), gpu.context, gpu.device); });

    sycl::event unshared = experimental::make_event(gpu.context);
    try_to("get of an event that is not shared", [&] { ipc_event::get(unshared); });
    try_to("get of an event of a command", [&] { ipc_event::get(gpu.queue.ext_oneapi_submit_barrier()); });
    try_to("open of an event from seven bytes", [&] { ipc_event::open(Bytes(7), gpu.context); });
    try_to("a shared event with profiling", [&] {
      experimental::make_event(gpu.context, experimental::properties{experimental::enable_ipc{true},
                                                                     experimental::enable_profiling{true}});
    });
    try_to("get of an imported event", [&] {
      sycl::event event = make_shared_event(gpu);
      Handle handle = ipc_event::get(event);
      sycl::event imported = ipc_event::open(handle.data(), gpu.context);
      ipc_event::put(handle, gpu.context);
      ipc_event::get(imported);
    });
  });
}
