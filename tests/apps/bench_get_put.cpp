// Measures a get and a put of one allocation. `bench_get_put ROUNDS PAIRS [THREADS [TURNS]]` prints the nanoseconds for one pair, one line
// per round. The adapter serves both calls from its cache, so no calls are cheaper. With several threads, each has an allocation of its own
// and makes PAIRS pairs; the figure is the time of the round divided by the pairs of all threads. Behind each call comes a loop of TURNS
// multiplications: what any work of a thread alone costs where the threads wait for each other in the runtime.
#include "ipc_app.hpp"

#include <atomic>
#include <chrono>
#include <thread>

using namespace app;

namespace {

int turns = 0;

void work() {
  uint64_t number = 3;
  // Each needs the result of the one before. The compiler may not leave them out.
  for (int turn = 0; turn < turns; turn++) asm volatile("imul %0, %0" : "+r"(number));
}

void pairs_of(std::byte *memory, Gpu &gpu, int pairs) {
  for (int pair = 0; pair < pairs; pair++) {
    Handle handle = ipc::get(memory, gpu.context);
    work();
    ipc::put(handle, gpu.context);
    work();
  }
}

// Starts a thread for each allocation. The clock runs from when all are ready until the last one is done.
double nanoseconds_of(const std::vector<std::byte *> &memories, Gpu &gpu, int pairs) {
  std::atomic<size_t> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (std::byte *memory : memories) {
    threads.emplace_back([&, memory] {
      // UR's CUDA adapter refuses a get in a thread that has done nothing else.
      gpu.write(memory, Bytes(1));
      ready++;
      while (!go) std::this_thread::yield();
      pairs_of(memory, gpu, pairs);
    });
  }
  while (ready < memories.size()) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  go = true;
  for (std::thread &thread : threads) thread.join();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const int pairs = argc > 2 ? std::atoi(argv[2]) : 100000;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  turns = argc > 4 ? std::atoi(argv[4]) : 0;
  return guarded([=] {
    Gpu gpu;
    std::vector<std::byte *> memories;
    for (int thread = 0; thread < threads; thread++) {
      // Allocations of a pool can share one allocation of the driver.
      memories.push_back(gpu.allocate(threads == 1 ? 1 << 20 : unpooled));
      put(get(memories.back(), gpu), gpu);
    }
    for (int round = 0; round < rounds; round++) {
      double took = 0;
      if (threads == 1) {
        const auto begin = std::chrono::steady_clock::now();
        pairs_of(memories[0], gpu, pairs);
        took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
      } else {
        took = nanoseconds_of(memories, gpu, pairs);
      }
      print(std::to_string(took / pairs / threads));
    }
    for (std::byte *memory : memories) gpu.free(memory);
  });
}
