// A program that urscope comes into while it runs: it opens the library that its first argument names, as a debugger can make a process
// do. By then the loader has the adapter's tables, and there are memory and a handle of it.
//
// With the last argument "twice" it puts a handle twice.
#include "ipc_app.hpp"

#include <dlfcn.h>

using namespace app;

int main(int argc, char **argv) {
  return guarded([&] {
    Gpu gpu;
    auto [memory, early] = export_pattern(gpu, 1 << 20, 61);
    if (argc > 1) require(dlopen(argv[1], RTLD_NOW) != nullptr, "the library cannot be opened");
    put(early, gpu);
    const Handle handle = app::get(memory, gpu);
    put(handle, gpu);
    if (strcmp(argv[argc - 1], "twice") == 0) print("second put " + outcome([&] { put(handle, gpu); }));
    print("program read " + checksum(gpu.read(memory, 1 << 20)));
    gpu.free(memory);
  });
}
