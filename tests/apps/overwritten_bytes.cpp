// The violation: a process that is not traced opens handle data, which the v1 adapter overwrites, and sends the same bytes on.
#include "ipc_app.hpp"

using namespace app;

static void produce(const Peer &parent) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, unpooled, 25);
  parent.send(handle.data());
  parent.await("done");
  put(handle, gpu);
  gpu.free(memory);
}

static void forward(const Peer &parent) {
  Gpu gpu;
  Bytes bytes = parent.receive();
  // The adapter writes the number of its own descriptor into the bytes. Behind so many others, no other process has that number.
  for (int descriptor = 0; descriptor < 500; ++descriptor) require(dup(STDOUT_FILENO) >= 0, "no descriptor");
  const Bytes before = bytes;
  close(open(bytes, gpu), gpu);
  print(bytes == before ? "the bytes are unchanged" : "the bytes have changed");
  parent.send(bytes);
}

static void child(const Peer &parent) {
  if (parent.receive_word() == "produce") {
    produce(parent);
  } else {
    forward(parent);
  }
}

static void parent(Peer &producer) {
  producer.say("produce");
  const Bytes bytes = producer.receive();
  unsetenv("LD_PRELOAD");
  const Peer forwarder = start_child();
  forwarder.say("forward");
  forwarder.send(bytes);
  const Bytes forwarded = forwarder.receive();
  require(forwarder.wait_for_end() == 0, "the forwarding process failed");
  Gpu gpu;
  void *memory = ipc::open(forwarded, gpu.context, gpu.device);
  print(memory == nullptr ? "open handed out no pointer" : "opened");
  if (memory != nullptr) close(memory, gpu);
  producer.say("done");
}

int main(int argc, char **argv) { return run(argc, argv, parent, child); }
