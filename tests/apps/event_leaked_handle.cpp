// The violation: a handle to an event is never put.
//
// SYCL 2026.2 puts the handle only when the event is destroyed, and ignores a put by the program. So the event is leaked too.
#include "ipc_app.hpp"

#include "event_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    auto *event = new sycl::event(make_shared_event(gpu));
    ipc_event::get(*event);
    print("the handle stays");
  });
}
