// A clean program in a library that a program opens for itself alone, as Python opens its modules: the SYCL runtime and its loader
// are then in nobody's search order but the library's.
#include "ipc_app.hpp"

using namespace app;

extern "C" int share() {
  Gpu gpu;
  Export exported = export_pattern(gpu, 1 << 20, 21);
  put(exported.handle, gpu);
  sycl::free(exported.memory, gpu.context);
  return 0;
}
