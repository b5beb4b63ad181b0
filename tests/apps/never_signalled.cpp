// The violation: the consumer waits for a shared event whose producer (the child) exits before the signal.
#include "event_app.hpp"

#include <atomic>
#include <fstream>
#include <thread>

using namespace app;

// Whether a thread sleeps. It is then in its wait, because it does nothing else.
static bool sleeps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(status, line);
  const size_t name = line.rfind(") ");
  return name != std::string::npos && line.size() > name + 2 && line[name + 2] == 'S';
}

static void producer(Peer &consumer) {
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

static void consumer(Peer &producer) {
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

int main(int argc, char **argv) { return run(argc, argv, consumer, producer); }
