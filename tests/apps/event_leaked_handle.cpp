// The violation: a handle to an event is got and never put.
//
// SYCL 2026.2 itself puts the handle when the event is destroyed, and not before: the program that asks for it is not heard.
// So the event has to be forgotten, too.
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
