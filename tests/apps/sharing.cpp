// Memory that is shared by SYCL in unusual circumstances. The first argument names the function that does it; "list" prints the names.
#include "ipc_app.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

using namespace app;

namespace {

constexpr size_t pooled = 1 << 20;

// A process that uses IPC forks, without exec. Its child makes calls of its own (of the kind that need no thread of the parent), or only
// exits.
void fork_child(bool calls) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, pooled, 17);
  const pid_t child = fork();
  require(child >= 0, "cannot fork");
  if (child == 0) {
    if (calls) {
      for (int i = 0; i < 3; i++) put(get(memory, gpu), gpu);
      // The driver refuses it in a child. The trace describes the device again all the same, without asking the adapter.
      require(sycl::malloc_device(4096, gpu.device, gpu.context) == nullptr, "memory in a child");
    }
    print(calls ? "child called get 3, put 3" : "child called nothing");
    _exit(0); // The device's threads live in the parent only: no teardown here.
  }
  require_end(child);
  put(handle, gpu);
  gpu.free(memory);
  print("parent called get 1, put 1");
}

ADD_MODE(fork_child, [] { fork_child(true); });
ADD_MODE(fork_idle_child, [] { fork_child(false); });

// A handle is put twice, and then another one stays out and open until the program's input ends.
ALONE(lingering) {
  Gpu gpu;
  auto [twice, handle] = export_pattern(gpu, pooled, 21);
  put(handle, gpu);
  print("second put " + outcome([handle = handle, &gpu] { put(handle, gpu); }));
  auto [memory, kept] = export_pattern(gpu, unpooled, 22);
  print("waiting");
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {}
  put(kept, gpu);
  gpu.free(memory);
  gpu.free(twice);
}

void keep_open(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  producer.say("open");
  producer.await("enough");
  close(memory, gpu);
  producer.say("closed");
}
// Both processes keep sharing until the file in the second argument exists, and then share more. Without one they do not wait.
PARENT_MODE(waits_sharing, keep_open, consumer) {
  Shared shared(pooled, 50);
  shared.send(consumer, "open");
  while (!argument(1).empty() && !std::filesystem::exists(argument(1))) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 0; i < 5; i++) put(get(shared.memory, shared.gpu), shared.gpu);
  consumer.say("enough");
  consumer.await("closed");
  shared.end();
}

void read_twice(Peer &producer) {
  unsetenv("ZE_SOFT_DELAY");
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  producer.say("open");
  producer.await("ready");
  const Bytes data = gpu.read(memory, pooled);
  print(data == pattern(pooled, 2) ? "then the new data" : data == pattern(pooled, 1) ? "then the old data" : "then a mixture");
  close(memory, gpu);
  producer.say("closed");
}
// The producer changes memory that the consumer has open, and says that it is ready; with "forgotten" behind, it does not wait for its copy
// before. The producer's device may be slowed; the consumer's is not.
PARENT_MODE(forgotten_wait, read_twice, consumer) {
  Shared shared;
  shared.send(consumer, "open");
  const Bytes data = pattern(pooled, 2);
  sycl::event copied = shared.gpu.queue.memcpy(shared.memory, data.data(), pooled);
  if (argument(1) != "forgotten") copied.wait();
  consumer.say("ready");
  consumer.await("closed");
  copied.wait();
  shared.end();
}

// Each of two processes fills a buffer and reads the other's, step by step; with "forgotten" behind, nobody tells the other one that it has
// read. The second process is slower.
void exchange_halos(Peer &other, const char *delay) {
  setenv("ZE_SOFT_DELAY", delay, 1);
  const auto together = [&](const char *word) { other.say(word), other.await(word); };
  Gpu gpu;
  std::byte *own = gpu.allocate(unpooled);
  const Handle handle = get(own, gpu);
  other.send(handle.data());
  std::byte *halo = open(other.receive(), gpu);
  Bytes seen(64);
  for (int step = 1; step <= 2; step++) {
    gpu.queue.memset(own, step, unpooled).wait();
    together("filled");
    gpu.queue.memcpy(seen.data(), halo, seen.size()).wait();
    if (argument(1) != "forgotten") together("read");
  }
  together("done");
  close(halo, gpu);
  together("closed");
  put(handle, gpu);
  gpu.free(own);
}
void exchange_halos_slowly(Peer &parent) { exchange_halos(parent, "1s"); }
PARENT_MODE(halo, exchange_halos_slowly, child) { exchange_halos(child, "100ms"); }

void open_by_v2(Peer &producer) {
  setenv("SYCL_UR_USE_LEVEL_ZERO_V2", "1", 1);
  Gpu gpu;
  const Bytes data = producer.receive();
  print("open " + outcome([&] { close(open(data, gpu), gpu); }));
  producer.say("closed");
}
// The consumer uses the v2 adapter, and its producer the v1 adapter, whose handle data has another size.
PARENT_MODE(other_adapter, open_by_v2, consumer) {
  setenv("SYCL_UR_USE_LEVEL_ZERO_V2", "0", 1);
  share_until_closed(consumer, unpooled, 26);
}

// The consumer runs with another backend than its producer: the one in the second argument.
void share(Peer &consumer) { share_until_closed(consumer); }
CHILD_MODE(other_backend, share, producer) {
  Gpu gpu;
  const Bytes data = producer.receive();
  // Twice, so that an adapter returns the same pointer again.
  std::byte *one = open(data, gpu), *other = open(data, gpu);
  for (std::byte *memory : {one, other}) {
    print("consumer read " + checksum(gpu.read(memory, pooled)));
    close(memory, gpu);
  }
  print("third close " + outcome([&] { close(other, gpu); }));
  producer.say("closed");
}

// Handle data that was damaged on the way: it must not be opened, and intact data must keep working.
void share_and_put(Peer &consumer) {
  Shared shared;
  shared.send(consumer, "closed");
  shared.put();
  consumer.say("put");
  consumer.await("done");
  shared.free();
}
CHILD_MODE(damaged_handle, share_and_put, producer) {
  Gpu gpu;
  const auto opened = [&](const Bytes &data) {
    const auto open = [&] { require(ipc::open(data, gpu.context, gpu.device) != nullptr, "a success without a pointer"); };
    return outcome(open) == "accepted";
  };
  const Bytes whole = producer.receive();
  size_t changed = 0, cut = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes data = whole;
    data[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    changed += opened(data);
  }
  print("opened with a bit changed: " + std::to_string(changed));
  for (size_t length = 0; length < whole.size(); ++length) cut += opened(Bytes(whole.begin(), whole.begin() + length));
  print("opened when cut short: " + std::to_string(cut));
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  print(std::string("with a byte too many ") + (opened(longer) ? "accepted" : "refused"));

  const Bytes handed_in = whole;
  std::byte *memory = open(handed_in, gpu);
  print("consumer read " + checksum(gpu.read(memory, pooled)));
  print(handed_in == whole ? "the data are untouched" : "the data were written to");
  close(memory, gpu);
  producer.say("closed");
  producer.await("put");
  print(std::string("after their put ") + (opened(whole) ? "accepted" : "refused"));
  producer.say("done");
}

// One byte is changed on the way, which no adapter need notice: the lowest of the offset in libumf's header.
template <bool is_altered> void open_one(Peer &producer) {
  Gpu gpu;
  Bytes data = producer.receive();
  if (is_altered) data.at(32) ^= std::byte{1};
  print("open " + outcome([&] {
    void *memory = ipc::open(data, gpu.context, gpu.device); // @open
    if (memory != nullptr) close(memory, gpu);
  }));
  producer.say("closed");
}
ADD_MODE(altered_byte, share, open_one<true>);
ADD_MODE(unaltered_byte, share, open_one<false>);

void produce_or_forward(Peer &parent) {
  if (parent.receive_word() == "produce") {
    Shared shared(unpooled, 25);
    shared.send(parent, "done");
    return shared.end();
  }
  Gpu gpu;
  Bytes bytes = parent.receive();
  // The adapter writes the number of its own descriptor into the bytes. Behind so many others, no other process has that number.
  for (int descriptor = 0; descriptor < 500; ++descriptor) require(dup(STDOUT_FILENO) >= 0, "no descriptor");
  const Bytes before = bytes;
  close(open(bytes, gpu), gpu);
  print(bytes == before ? "the bytes are unchanged" : "the bytes have changed");
  parent.send(bytes);
}
// A process that is not traced opens handle data, which the v1 adapter overwrites, and sends the same bytes on.
PARENT_MODE(overwritten_bytes, produce_or_forward, producer) {
  producer.say("produce");
  const Bytes bytes = producer.receive();
  unsetenv("LD_PRELOAD");
  Peer forwarder = start_child();
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

void produce_or_open(Peer &parent) {
  if (parent.receive_word() != "produce") return open_one<false>(parent);
  Shared shared(unpooled, 25);
  shared.send(parent, "done");
  shared.end();
}
// A process opens the bytes that it has received, and passes them on to its child, or does so in the other order. The v1 adapter would
// change the bytes that it opens.
template <bool opens_first> void pass_on(Peer &producer) {
  producer.say("produce");
  const Bytes bytes = producer.receive();
  Gpu gpu;
  const auto open_own = [&] { close(open(bytes, gpu), gpu); }; // @own
  if (opens_first) open_own();
  // The start of a process is known in ticks of 10 ms.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Peer consumer = start_child();
  consumer.say("open");
  consumer.send(bytes);
  consumer.await("closed");
  require(consumer.wait_for_end() == 0, "the child failed");
  if (!opens_first) open_own();
  producer.say("done");
}
ADD_MODE(opened_and_passed_on, pass_on<true>, produce_or_open);
ADD_MODE(passed_on_and_opened, pass_on<false>, produce_or_open);

} // namespace

int main(int argc, char **argv) {
  // This process has read its environment already; the consumer is about to.
  if (argc == 3 && argv[1] == std::string("other_backend")) setenv("URSCOPE_BACKEND", argv[2], 1);
  return run_modes(argc, argv);
}
