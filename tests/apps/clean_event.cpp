// The clean program for event IPC: one event in two processes, in as many orders as it can be signalled and waited for. The argument
// selects the order.
#include "event_app.hpp"

#include <optional>

using namespace app;

static sycl::event take_over(Side &consumer) {
  sycl::event event = ipc_event::open(consumer.peer.receive(), consumer.gpu.context);
  consumer.peer.say("open");
  return event;
}

namespace {

// The signal of one side waits behind a gate until the other side reports that it is about to wait.
void signal_when_awaited(Side &side, sycl::event &event, uint32_t seed) {
  Gate gate(side.gpu);
  side.write_and_signal(event, seed);
  side.peer.say("pending");
  side.peer.await("waiting");
  gate.open();
  side.gpu.queue.wait();
}
void wait_on_host(Side &side, sycl::event &event) {
  side.peer.await("pending");
  side.say_status(event);
  side.peer.say("waiting");
  event.wait();
  side.say_status(event);
  side.read();
}

// What a side does in an order, with the event that it has made or opened.
using Step = std::function<void(Side &, sycl::event &)>;

void nothing(Side &, sycl::event &) {}
void signal_and_wait(Side &side, sycl::event &event) {
  side.write_and_signal(event, 2);
  event.wait();
}
void signal(Side &side, sycl::event &event) { signal_when_awaited(side, event, 2); }
void signal_twice(Side &side, sycl::event &event) {
  for (uint32_t seed : {2, 3}) {
    signal_when_awaited(side, event, seed);
    side.peer.await("read");
  }
}
void wait_for_past_signal(Side &side, sycl::event &event) {
  event.wait();
  side.say_status(event);
  side.read();
}
void wait_twice(Side &side, sycl::event &event) {
  for (int signal = 0; signal < 2; ++signal) {
    wait_on_host(side, event);
    side.peer.say("read");
  }
}
void wait_in_queue(Side &side, sycl::event &event) {
  side.peer.await("pending");
  experimental::enqueue_wait_event(side.gpu.queue, event);
  Bytes copy(Side::size);
  sycl::event copied = side.gpu.queue.memcpy(copy.data(), side.memory, copy.size());
  print("consumer finds its copy " + status(copied));
  side.peer.say("waiting");
  copied.wait();
  print("consumer read " + checksum(copy));
}
void use_when_gone(Side &side, sycl::event &event) {
  side.peer.await("gone");
  wait_for_past_signal(side, event);
  // From now on it is an ordinary event.
  side.write_and_signal(event, 3);
  wait_for_past_signal(side, event);
}

// An order: what the producer does before its get, between get and open, and after the open; and what the consumer does after it.
struct Order {
  const char *name;
  Step before_get, before_open, after_open, consumer;
  // The handle is put before the producer goes on after the open; and the event is gone before.
  bool puts_early = false, ends_early = false;

  void producer_does(Side &side) const {
    std::optional<sycl::event> event = make_shared_event(side.gpu);
    before_get(side, *event);
    Handle handle = ipc_event::get(*event);
    before_open(side, *event);
    side.peer.send(handle.data());
    side.peer.await("open");
    if (puts_early) ipc_event::put(handle, side.gpu.context);
    if (ends_early) {
      event.reset();
      side.peer.say("gone");
      return;
    }
    after_open(side, *event);
    if (!puts_early) ipc_event::put(handle, side.gpu.context);
  }
  void consumer_does(Side &side) const {
    sycl::event event = take_over(side);
    consumer(side, event);
  }
};

const Order orders[] = {
    {"signalled_before_get", signal_and_wait, nothing, nothing, wait_for_past_signal},
    {"signalled_after_get", nothing, signal_and_wait, nothing, wait_for_past_signal},
    {"signalled_after_open", nothing, nothing, signal, wait_on_host},
    {"waited_in_queue", nothing, nothing, signal, wait_in_queue},
    {"consumer_signals", nothing, nothing, wait_on_host, signal},
    {"two_signals", nothing, nothing, signal_twice, wait_twice},
    // SYCL 2026.2 keeps the handle until its event is destroyed, so what the adapter sees is what it saw before.
    {"put_before_wait", nothing, nothing, signal, wait_on_host, true},
    {"import_outlives", signal_and_wait, nothing, nothing, use_when_gone, true, true},
};

void produce(Peer &consumer, const Order &order) {
  Side side{"producer", consumer};
  auto [memory, handle] = export_pattern(side.gpu, Side::size, 1);
  side.memory = memory;
  consumer.send(handle.data());
  consumer.await("read");
  order.producer_does(side);
  consumer.await("closed");
  put(handle, side.gpu);
  side.gpu.free(memory);
}

void consume(Peer &producer, const Order &order) {
  Side side{"consumer", producer};
  side.memory = open_and_read(producer, side.gpu, Side::size);
  producer.say("read");
  order.consumer_does(side);
  close(side.memory, side.gpu);
  producer.say("closed");
}

} // namespace

int main(int argc, char **argv) {
  for (const Order &order : orders)
    modes().emplace_back(order.name, [&](Peer &consumer) { produce(consumer, order); }, [&](Peer &producer) { consume(producer, order); });
  return run_modes(argc, argv);
}
