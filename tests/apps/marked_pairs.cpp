// Gets and puts the handle of one allocation, for a tracer that counts instructions. `marked_pairs UNMARKED MARKED` makes so many pairs
// without marks, in which libraries are bound and tables grow, and then so many with a mark before and after each.
#include "ipc_app.hpp"

using namespace app;

namespace {

// Stops a program that is traced, and ends one that is not. One place, so that a tracer recognizes it.
[[gnu::noinline]] void mark() { asm volatile("int3" ::: "memory"); }

void pair_of(std::byte *memory, Gpu &gpu) {
  Handle handle = ipc::get(memory, gpu.context);
  ipc::put(handle, gpu.context);
}

} // namespace

int main(int argc, char **argv) {
  const int unmarked = argc > 1 ? std::atoi(argv[1]) : 100;
  const int marked = argc > 2 ? std::atoi(argv[2]) : 0;
  return guarded([=] {
    Gpu gpu;
    std::byte *memory = gpu.allocate(1 << 20);
    put(get(memory, gpu), gpu);
    // One place, so that all pairs have the same call stacks.
    for (int pair = 0; pair < unmarked + marked; pair++) {
      if (pair >= unmarked) mark();
      pair_of(memory, gpu);
      if (pair >= unmarked) mark();
    }
    gpu.free(memory);
  });
}
