// The violation: a handle is got and never put, and its memory never freed. The program ends normally all the same.
#include "ipc_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    export_pattern(gpu, 1 << 20, 3);
    print("the handle stays");
  });
}
