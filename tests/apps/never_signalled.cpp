// The violation: a process waits for a shared event whose other process (the child) exits before the signal. The child makes the event, or,
// with "of_maker", opens it. With "lingering", the waiting process ends when its input does.
#include "event_app.hpp"
#include "sleeper.hpp"

#include <optional>

using namespace app;

namespace {

// The handle data must live until the other process has opened them.
struct Shared {
  sycl::event event;
  std::optional<Handle> handle;
};

Shared make(const Gpu &gpu, const Peer &other) {
  Shared made{make_shared_event(gpu), std::nullopt};
  made.handle = ipc_event::get(made.event);
  other.send(made.handle->data());
  return made;
}

Shared open(const Gpu &gpu, const Peer &other) { return {ipc_event::open(other.receive(), gpu.context), std::nullopt}; }

void put(Shared &shared, const Gpu &gpu) {
  if (shared.handle) ipc_event::put(*shared.handle, gpu.context);
}

bool is_of_maker() { return argument(0) == "of_maker"; }

void signals(Peer &other) {
  Gpu gpu;
  Shared shared = is_of_maker() ? open(gpu, other) : make(gpu, other);
  Gate gate(gpu);
  experimental::enqueue_signal_event(gpu.queue, shared.event);
  other.say("enqueued");
  other.await("waiting");
  put(shared, gpu);
  if (!is_fixed()) _exit(0); // The gate is never opened.
  gate.open();
  gpu.queue.wait();
}

void waits(Peer &other) {
  Gpu gpu;
  Shared shared = is_of_maker() ? make(gpu, other) : open(gpu, other);
  other.await("enqueued");
  Sleeper waiter([&] {
    shared.event.wait();
    print("the event was signalled");
  });
  other.say("waiting");
  require(other.wait_for_end() == 0, "the other process failed");
  if (is_fixed()) return waiter.thread.join(), put(shared, gpu);
  char byte;
  while (argument(0) == "lingering" && read(STDIN_FILENO, &byte, 1) > 0) {}
  print("consumer gives up");
  _exit(0);
}

} // namespace

int main(int argc, char **argv) { return run(argc, argv, waits, signals); }
