// The rounds of order_rounds.hpp in SYCL.
#include "event_app.hpp"
#include "order_rounds.hpp"

#include <map>
#include <optional>

using namespace app;

namespace {

class Device {
public:
  explicit Device(size_t size) : memory(gpu.allocate(size)) {
    gpu.queue.memset(memory, 0, size).wait();
    got = get(memory, gpu);
  }
  explicit Device(const Bytes &handle) : memory(open(handle, gpu)) {}

  Bytes handle() const { return got->data(); }
  std::vector<Bytes> make_events() {
    mine = make_shared_event(gpu), theirs = make_shared_event(gpu);
    got_events = {ipc_event::get(*mine), ipc_event::get(*theirs)};
    return {got_events[0].data(), got_events[1].data()};
  }
  void open_events(const Bytes &of_theirs, const Bytes &of_mine) {
    theirs = ipc_event::open(of_theirs, gpu.context), mine = ipc_event::open(of_mine, gpu.context);
  }
  void close() { app::close(memory, gpu), gpu.free(own); }
  void free() {
    for (Handle &of_event : got_events) ipc_event::put(of_event, gpu.context);
    put(*got, gpu), gpu.free(memory), gpu.free(own);
  }

  void begin(const std::string &) {}
  void end(const std::string &) {}
  void enqueue(const std::string &queue, bool writes, size_t at, size_t size) {
    sycl::queue &on = queues.at(queue);
    if (writes) latest = at / stride % 2 ? on.memset(memory + at, 7, size) : on.memcpy(memory + at, own, size);
    else latest = on.memcpy(own, memory + at, size);
  }

  void signal(const std::string &queue) { experimental::enqueue_signal_event(queues.at(queue), *mine); }
  void await_event(const std::string &queue) { experimental::enqueue_wait_event(queues.at(queue), *theirs); }

  void write_flag(const std::string &queue, size_t at) { queues.at(queue).memset(memory + at, 1, 4, latest); }
  void write_flag_elsewhere(size_t at) { gpu.queue.memset(memory + at, 1, 4).wait(); }
  void await_flag(size_t at) {
    for (uint32_t word = 0; word == 0;) gpu.queue.memcpy(&word, memory + at, sizeof word).wait();
  }

  void wait(const std::string &queue, const std::string &how) {
    sycl::queue &on = queues.at(queue);
    if (how == "queue") on.wait();
    else if (how == "event") latest.wait();
    else if (how == "barrier") on.ext_oneapi_submit_barrier().wait();
    else if (how == "elsewhere") gpu.queue.ext_oneapi_submit_barrier({latest}).wait();
    else if (how == "behind") on.memset(own, 1, 64, latest).wait();
    else if (how == "polled") while (!is_complete(latest)) {}
    else require(false, "there is no such wait: " + how);
  }
  void wait_for_all() {
    for (auto &queue : queues) queue.second.wait();
  }

private:
  Gpu gpu;
  std::byte *const memory, *const own = gpu.allocate(2 * stride);
  std::optional<Handle> got;
  // The event that this process signals, and the one that the other process does.
  std::optional<sycl::event> mine, theirs;
  std::vector<Handle> got_events;
  std::map<std::string, sycl::queue> queues{{"first", {gpu.context, gpu.device, sycl::property::queue::in_order{}}},
                                            {"second", {gpu.context, gpu.device}},
                                            {"third", {gpu.context, gpu.device}}};
  sycl::event latest;
};

} // namespace

int main(int argc, char **argv) { return run_rounds<Device>(argc, argv); }
