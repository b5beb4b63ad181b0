// The violation: the consumer never releases the event that it opened.
#include "ipc_app.hpp"

#include "event_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  sycl::event event = make_shared_event(gpu);
  Handle handle = ipc_event::get(event);
  consumer.send(handle.data());
  consumer.await("open");
  ipc_event::put(handle, gpu.context);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  // The object is never destroyed, and the end of the process does not destroy it either.
  auto *event = new sycl::event(ipc_event::open(producer.receive(), gpu.context));
  print("consumer keeps an event that is " + status(*event));
  producer.say("open");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
