// The violation: a handle is never put, and its memory is never freed. The program still ends normally.
#include "ipc_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    export_pattern(gpu, 1 << 20, 3);
    print("the handle stays");
  });
}
