// The consumer (the child here) has closed all that it opened, and dies of the signal that the argument names; with 0 it exits.
#include "ipc_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, unpooled, 21);
  consumer.send(handle.data());
  const int status = consumer.wait_for_end();
  require((WIFSIGNALED(status) ? WTERMSIG(status) : status) == std::stoi(argument(0)), "the child ended otherwise");
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  close(open(producer.receive(), gpu), gpu);
  if (const int number = std::stoi(argument(0))) {
    // A runtime may have a handler for it.
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
