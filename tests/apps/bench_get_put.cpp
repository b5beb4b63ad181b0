// Measures a get and a put of one allocation. `bench_get_put ROUNDS PAIRS` prints the nanoseconds for one pair, one line per
// round. The adapter serves both calls from its cache, so no calls are cheaper.
#include "ipc_app.hpp"

#include <chrono>

using namespace app;

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const int pairs = argc > 2 ? std::atoi(argv[2]) : 100000;
  return run_alone([=] {
    Gpu gpu;
    std::byte *memory = gpu.allocate(1 << 20);
    put(get(memory, gpu), gpu);
    for (int round = 0; round < rounds; round++) {
      const auto begin = std::chrono::steady_clock::now();
      for (int pair = 0; pair < pairs; pair++) {
        Handle handle = ipc::get(memory, gpu.context);
        ipc::put(handle, gpu.context);
      }
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
      print(std::to_string(took.count() / pairs));
    }
    gpu.free(memory);
  });
}
