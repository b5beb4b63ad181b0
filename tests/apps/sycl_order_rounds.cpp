// The rounds of order_rounds.hpp in SYCL.
#include "ipc_app.hpp"
#include "order_rounds.hpp"

#include <map>
#include <optional>

using namespace app;

namespace {

class Device {
public:
  explicit Device(size_t size) : memory(gpu.allocate(size)), got(get(memory, gpu)) {}
  explicit Device(const Bytes &handle) : memory(open(handle, gpu)) {}

  Bytes handle() const { return got->data(); }
  void close() { app::close(memory, gpu), gpu.free(own); }
  void free() { put(*got, gpu), gpu.free(memory), gpu.free(own); }

  void enqueue(const std::string &queue, bool writes, size_t at, size_t size) {
    sycl::queue &on = queues.at(queue);
    if (writes) latest = at / stride % 2 ? on.memset(memory + at, 7, size) : on.memcpy(memory + at, own, size);
    else latest = on.memcpy(own, memory + at, size);
  }

  void wait(const std::string &queue, const std::string &how) {
    sycl::queue &on = queues.at(queue);
    if (how == "queue") on.wait();
    else if (how == "event") latest.wait();
    else if (how == "barrier") on.ext_oneapi_submit_barrier().wait();
    else if (how == "elsewhere") gpu.queue.ext_oneapi_submit_barrier({latest}).wait();
    else if (how == "behind") on.memset(own, 1, 64, latest).wait();
    else if (how == "polled") while (!is_complete()) {}
    else require(false, "there is no such wait: " + how);
  }

private:
  bool is_complete() const {
    return latest.get_info<sycl::info::event::command_execution_status>() == sycl::info::event_command_status::complete;
  }

  Gpu gpu;
  std::byte *const memory, *const own = gpu.allocate(2 * stride);
  std::optional<Handle> got;
  std::map<std::string, sycl::queue> queues{{"first", {gpu.context, gpu.device, sycl::property::queue::in_order{}}},
                                            {"second", {gpu.context, gpu.device}},
                                            {"third", {gpu.context, gpu.device}}};
  sycl::event latest;
};

} // namespace

int main(int argc, char **argv) { return run_rounds<Device>(argc, argv); }
