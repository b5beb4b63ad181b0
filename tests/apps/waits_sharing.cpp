// Correct and slow: both processes keep sharing until the file in the argument exists, and then share more. Without an
// argument they do not wait.
#include "ipc_app.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

using namespace app;

constexpr size_t size = 1 << 20;
constexpr int more = 5;

static std::string gate;

static void wait_at_the_gate() {
  using namespace std::chrono_literals;
  while (!gate.empty() && !std::filesystem::exists(gate)) std::this_thread::sleep_for(10ms);
}

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 50);
  consumer.send(handle.data());
  consumer.await("open");
  wait_at_the_gate();
  for (int i = 0; i < more; i++) put(get(memory, gpu), gpu);
  consumer.say("enough");
  consumer.await("closed");
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  producer.say("open");
  producer.await("enough");
  close(memory, gpu);
  producer.say("closed");
}

int main(int argc, char **argv) {
  if (argc == 2) gate = argv[1];
  return run(argc, argv, producer, consumer);
}
