// Measures a copy of 64 bytes on an in-order queue. `bench_commands ROUNDS COPIES [shared|resident]` prints the nanoseconds for one copy, one
// line per round. The host waits after every 1,000 copies. With "shared", the process has handle data of the memory. With "resident", it
// prints last the most memory that it had resident, in KiB.
#include "ipc_app.hpp"

#include <chrono>
#include <fstream>
#include <optional>
#include <string>

using namespace app;

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const int copies = argc > 2 ? std::atoi(argv[2]) : 100000;
  const std::string choice = argc > 3 ? argv[3] : "";
  const bool shared = choice == "shared";
  return run_alone([=] {
    Gpu gpu;
    std::byte *memory = gpu.allocate(1 << 20);
    std::optional<Handle> handle;
    if (shared) handle = get(memory, gpu);
    Bytes data(64);
    for (int round = 0; round < rounds; round++) {
      const auto begin = std::chrono::steady_clock::now();
      for (int copy = 0; copy < copies; copy++) {
        gpu.queue.memcpy(memory, data.data(), data.size());
        if (copy % 1000 == 999) gpu.queue.wait();
      }
      gpu.queue.wait();
      const auto took = std::chrono::steady_clock::now() - begin;
      print(std::to_string(std::chrono::duration<double, std::nano>(took).count() / copies));
    }
    if (handle) put(*handle, gpu);
    gpu.free(memory);
    if (choice == "resident") {
      std::ifstream status("/proc/self/status");
      for (std::string word; status >> word;)
        if (word == "VmHWM:" && status >> word) print(word);
    }
  });
}
