// What goes wrong with physical memory or an event that is shared by SYCL, where that is no scenario (tests/apps/mistakes). The first argument
// names the function that does it; "list" prints the names.
#include "event_app.hpp"
#include "physical_app.hpp"

#include <atomic>
#include <fstream>
#include <thread>

using namespace app;

namespace {

// No mistake: two gets of one physical memory, and one put for each. What happens to a descriptor that the program opens in between depends
// on the driver.
ALONE(physical_puts_of_one_descriptor) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  auto first = ipc_physical::get(memory);
  auto second = ipc_physical::get(memory);
  ipc_physical::put(first, gpu.context);
  // It gets the lowest free number.
  const int own = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ipc_physical::put(second, gpu.context);
  print(fcntl(own, F_GETFD) >= 0 ? "the program's own descriptor is open" : "the program's own descriptor is closed");
  ::close(own);
}

// Whether a thread sleeps. It is then in its wait, because it does nothing else.
bool sleeps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(status, line);
  const size_t name = line.rfind(") ");
  return name != std::string::npos && line.size() > name + 2 && line[name + 2] == 'S';
}

void exit_before_signal(Peer &consumer) {
  Gpu gpu;
  sycl::event event = make_shared_event(gpu);
  Gate gate(gpu);
  experimental::enqueue_signal_event(gpu.queue, event);
  Handle handle = ipc_event::get(event);
  consumer.send(handle.data());
  consumer.await("waiting");
  ipc_event::put(handle, gpu.context);
  _exit(0); // The gate is never opened.
}
// The consumer waits for an event whose producer (the child) exits before the signal.
PARENT_MODE(never_signalled, exit_before_signal, producer) {
  Gpu gpu;
  sycl::event event = ipc_event::open(producer.receive(), gpu.context);
  std::atomic<pid_t> waiting{0};
  std::thread waiter([&] {
    waiting = gettid();
    event.wait();
    print("the event was signalled");
  });
  while (waiting == 0 || !sleeps(waiting)) std::this_thread::yield();
  producer.say("waiting");
  require(producer.wait_for_end() == 0, "the producer failed");
  print("consumer gives up");
  _exit(0);
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
