// The violation: a handle to physical memory is never put. Its memory is released.
#include "ipc_app.hpp"

#include "physical_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    physical_mem memory = make_shared_memory(gpu, granularity(gpu));
    ipc_physical::get(memory);
    print("the handle stays");
  });
}
