// A clean program: two gets of one physical memory, and one put for each. What happens to a descriptor that the program opens
// in between depends on the driver.
#include "ipc_app.hpp"

#include "physical_app.hpp"

#include <fcntl.h>

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    physical_mem memory = make_shared_memory(gpu, granularity(gpu));
    auto first = ipc_physical::get(memory);
    auto second = ipc_physical::get(memory);
    ipc_physical::put(first, gpu.context);
    // It gets the lowest free number.
    const int own = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ipc_physical::put(second, gpu.context);
    print(fcntl(own, F_GETFD) >= 0 ? "the program's own descriptor is open" : "the program's own descriptor is closed");
    ::close(own);
  });
}
