// The clean program for event IPC: one event in two processes, in as many orders as it can be signalled and waited for.
//
// The argument selects the order; the consumer receives it as its first message.
#include "ipc_app.hpp"

#include "event_app.hpp"

#include <map>
#include <optional>

using namespace app;

// Shares an event, from the producer's side, until the consumer has opened it.
static Handle hand_over(Side &producer, const sycl::event &event) {
  Handle handle = ipc_event::get(event);
  producer.peer.send(handle.data());
  producer.peer.await("open");
  return handle;
}
static sycl::event take_over(Side &consumer) {
  sycl::event event = ipc_event::open(consumer.peer.receive(), consumer.gpu.context);
  consumer.peer.say("open");
  return event;
}

// The signal of one side waits behind a gate until the other side reports that it is about to wait.
static void signal_when_awaited(Side &side, sycl::event &event, uint32_t seed) {
  Gate gate(side.gpu);
  side.write_and_signal(event, seed);
  side.peer.say("pending");
  side.peer.await("waiting");
  gate.open();
  side.gpu.queue.wait();
}
static void wait_on_host(Side &side, sycl::event &event) {
  side.peer.await("pending");
  side.say_status(event);
  side.peer.say("waiting");
  event.wait();
  side.say_status(event);
  side.read();
}

struct Mode {
  void (*producer)(Side &);
  void (*consumer)(Side &);
};

static void wait_for_past_signal(Side &consumer) {
  sycl::event event = take_over(consumer);
  event.wait();
  consumer.say_status(event);
  consumer.read();
}

static const std::map<std::string, Mode> modes = {
    {"signalled_before_get",
     {[](Side &producer) {
        sycl::event event = make_shared_event(producer.gpu);
        producer.write_and_signal(event, 2);
        event.wait();
        Handle handle = hand_over(producer, event);
        ipc_event::put(handle, producer.gpu.context);
      },
      wait_for_past_signal}},

    {"signalled_after_get",
     {[](Side &producer) {
        sycl::event event = make_shared_event(producer.gpu);
        Handle handle = ipc_event::get(event);
        producer.write_and_signal(event, 2);
        event.wait();
        producer.peer.send(handle.data());
        producer.peer.await("open");
        ipc_event::put(handle, producer.gpu.context);
      },
      wait_for_past_signal}},

    {"signalled_after_open",
     {[](Side &producer) {
        sycl::event event = make_shared_event(producer.gpu);
        Handle handle = hand_over(producer, event);
        signal_when_awaited(producer, event, 2);
        ipc_event::put(handle, producer.gpu.context);
      },
      [](Side &consumer) {
        sycl::event event = take_over(consumer);
        wait_on_host(consumer, event);
      }}},

    {"waited_in_queue",
     {[](Side &producer) {
        sycl::event event = make_shared_event(producer.gpu);
        Handle handle = hand_over(producer, event);
        signal_when_awaited(producer, event, 2);
        ipc_event::put(handle, producer.gpu.context);
      },
      [](Side &consumer) {
        sycl::event event = take_over(consumer);
        consumer.peer.await("pending");
        experimental::enqueue_wait_event(consumer.gpu.queue, event);
        Bytes copy(Side::size);
        sycl::event copied = consumer.gpu.queue.memcpy(copy.data(), consumer.memory, copy.size());
        print("consumer finds its copy " + status(copied));
        consumer.peer.say("waiting");
        copied.wait();
        print("consumer read " + checksum(copy));
      }}},

    {"consumer_signals",
     {[](Side &producer) {
        sycl::event event = make_shared_event(producer.gpu);
        Handle handle = hand_over(producer, event);
        wait_on_host(producer, event);
        ipc_event::put(handle, producer.gpu.context);
      },
      [](Side &consumer) {
        sycl::event event = take_over(consumer);
        signal_when_awaited(consumer, event, 2);
      }}},

    {"two_signals",
     {[](Side &producer) {
        sycl::event event = make_shared_event(producer.gpu);
        Handle handle = hand_over(producer, event);
        for (uint32_t seed : {2, 3}) {
          signal_when_awaited(producer, event, seed);
          producer.peer.await("read");
        }
        ipc_event::put(handle, producer.gpu.context);
      },
      [](Side &consumer) {
        sycl::event event = take_over(consumer);
        for (int signal = 0; signal < 2; ++signal) {
          wait_on_host(consumer, event);
          consumer.peer.say("read");
        }
      }}},

    // SYCL 2026.2 keeps the handle until its event is destroyed, so what the adapter sees is what it saw before.
    {"put_before_wait",
     {[](Side &producer) {
        sycl::event event = make_shared_event(producer.gpu);
        Handle handle = hand_over(producer, event);
        ipc_event::put(handle, producer.gpu.context);
        signal_when_awaited(producer, event, 2);
      },
      [](Side &consumer) {
        sycl::event event = take_over(consumer);
        wait_on_host(consumer, event);
      }}},

    {"import_outlives",
     {[](Side &producer) {
        std::optional<sycl::event> event = make_shared_event(producer.gpu);
        producer.write_and_signal(*event, 2);
        event->wait();
        Handle handle = hand_over(producer, *event);
        ipc_event::put(handle, producer.gpu.context);
        event.reset();
        producer.peer.say("gone");
      },
      [](Side &consumer) {
        sycl::event event = take_over(consumer);
        consumer.peer.await("gone");
        event.wait();
        consumer.say_status(event);
        consumer.read();
        // From now on it is an ordinary event.
        consumer.write_and_signal(event, 3);
        event.wait();
        consumer.say_status(event);
        consumer.read();
      }}},
};

static void producer(Peer &consumer, const std::string &mode) {
  consumer.say(mode);
  Side side{"producer", consumer};
  auto [memory, handle] = export_pattern(side.gpu, Side::size, 1);
  side.memory = memory;
  consumer.send(handle.data());
  consumer.await("read");
  modes.at(mode).producer(side);
  consumer.await("closed");
  put(handle, side.gpu);
  side.gpu.free(memory);
}

static void consumer(Peer &producer) {
  const std::string mode = producer.receive_word();
  Side side{"consumer", producer};
  side.memory = open_and_read(producer, side.gpu, Side::size);
  producer.say("read");
  modes.at(mode).consumer(side);
  close(side.memory, side.gpu);
  producer.say("closed");
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  return run(argc, argv, [&](Peer &other) { producer(other, mode); }, consumer);
}
