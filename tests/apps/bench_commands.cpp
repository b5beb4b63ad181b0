// Measures a copy of 64 bytes on an in-order queue. `bench_commands ROUNDS COPIES [shared|resident|launches|shared-launches]` prints the
// nanoseconds for one copy, one line per round. The host waits after every 1,000 copies. With "shared", the process has handle data of the
// memory. With "resident", it prints last how much memory it had resident behind its copies, where it could share something, and the most
// until its end, in KiB. With "launches", a kernel with one item takes the place of the copy; it needs an engine.
#include "kernel_app.hpp"

#include <chrono>
#include <fstream>
#include <optional>

using namespace app;

// A line of /proc/self/status with an amount of memory, in KiB.
static std::string kib(const std::string &line) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == line + ":" && status >> word) return word;
  return "0";
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const int copies = argc > 2 ? std::atoi(argv[2]) : 100000;
  const std::string choice = argc > 3 ? argv[3] : "";
  const bool shared = choice == "shared" || choice == "shared-launches";
  const bool launches = choice == "launches" || choice == "shared-launches";
  return guarded([=] {
    Gpu gpu;
    std::byte *memory = gpu.allocate(1 << 20);
    std::optional<Handle> handle;
    if (shared) handle = get(memory, gpu);
    Bytes data(64);
    std::optional<sycl::kernel> kernel;
    if (launches) kernel = scale_kernel(gpu.context);
    auto *numbers = reinterpret_cast<uint32_t *>(memory);
    const auto scale = [&](sycl::handler &handler) {
      handler.set_args(numbers, static_cast<const uint32_t *>(numbers), uint32_t{3});
      handler.parallel_for(sycl::range<1>(1), *kernel);
    };
    for (int round = 0; round < rounds; round++) {
      const auto begin = std::chrono::steady_clock::now();
      for (int copy = 0; copy < copies; copy++) {
        if (kernel) gpu.queue.submit(scale);
        else gpu.queue.memcpy(memory, data.data(), data.size());
        if (copy % 1000 == 999) gpu.queue.wait();
      }
      gpu.queue.wait();
      const auto took = std::chrono::steady_clock::now() - begin;
      print(std::to_string(std::chrono::duration<double, std::nano>(took).count() / copies));
    }
    if (choice == "resident") print(kib("VmRSS"));
    if (handle) put(*handle, gpu);
    gpu.free(memory);
    if (choice == "resident") print(kib("VmHWM"));
  });
}
