// Eight threads in each of two processes, a thousand cycles each or as many as the argument says, and no violation: the producer's
// threads get and put while the consumer's threads open and close. Prints how many calls each process has made.
#include "ipc_app.hpp"

#include <atomic>
#include <thread>

using namespace app;

constexpr int threads = 8;
static int cycles() { return arguments.empty() ? 1000 : std::stoi(argument(0)); }
constexpr size_t size = 1 << 20;

static void in_threads(const std::function<void(int)> &work) {
  std::atomic<int> failed{0};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; i++) running.emplace_back([&, i] { failed += guarded([&] { work(i); }); });
  for (auto &thread : running) thread.join();
  require(failed == 0, "a thread failed");
}

static void producer(Peer &consumer) {
  Gpu gpu;
  std::vector<Export> exports;
  for (int i = 0; i < threads; i++) exports.push_back(export_pattern(gpu, size, 20 + i));
  for (auto &exported : exports) consumer.send(exported.handle.data());

  consumer.await("ready");
  consumer.say("go");
  const int of_each = cycles();
  in_threads([&](int i) {
    for (int cycle = 0; cycle < of_each; cycle++) put(get(exports[i].memory, gpu), gpu);
  });
  consumer.await("closed");

  for (auto &exported : exports) put(exported.handle, gpu);
  for (auto &exported : exports) gpu.free(exported.memory);
  const int made = threads * cycles() + threads;
  print("producer called get " + std::to_string(made) + ", put " + std::to_string(made));
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::vector<Bytes> handles;
  for (int i = 0; i < threads; i++) handles.push_back(producer.receive());

  producer.say("ready");
  producer.await("go");
  const int of_each = cycles();
  in_threads([&](int i) {
    for (int cycle = 0; cycle < of_each; cycle++) close(open(handles[i], gpu), gpu);
  });
  const int made = threads * cycles();
  print("consumer called open " + std::to_string(made) + ", close " + std::to_string(made));
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
