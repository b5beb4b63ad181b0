// A clean program in a library that is opened with RTLD_LOCAL, as Python opens its modules: only the library finds the symbols
// of the SYCL runtime and its loader.
#include "ipc_app.hpp"

using namespace app;

extern "C" int share() {
  Gpu gpu;
  Export exported = export_pattern(gpu, 1 << 20, 21);
  put(exported.handle, gpu);
  sycl::free(exported.memory, gpu.context);
  return 0;
}
