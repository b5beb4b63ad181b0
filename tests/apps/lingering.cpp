// A violation, and then a handle that stays out and open until the program's input ends.
#include "ipc_app.hpp"

#include <unistd.h>

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    auto [twice, handle] = export_pattern(gpu, 1 << 20, 21);
    put(handle, gpu);
    print("second put " + outcome([handle = handle, &gpu] { put(handle, gpu); }));
    auto [memory, kept] = export_pattern(gpu, unpooled, 22);
    print("waiting");
    char byte;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {}
    put(kept, gpu);
    gpu.free(memory);
    gpu.free(twice);
  });
}
