// A Level Zero event that the host signals, as any program may share one with its runtime.
#pragma once

#include "ze_app.hpp"

namespace app {

class NativeEvent {
public:
  // `context` is a ze_context_handle_t.
  explicit NativeEvent(void *context) : ze(static_cast<ze_handle_t>(context)) {}
  NativeEvent(const NativeEvent &) = delete;
  ~NativeEvent() {
    Ze::check(ze.zeEventDestroy(event), "zeEventDestroy");
    Ze::check(ze.zeEventPoolDestroy(pool), "zeEventPoolDestroy");
  }

  void signal() const { Ze::check(ze.zeEventHostSignal(event), "zeEventHostSignal"); }

  // A ze_event_handle_t.
  void *get() const { return event; }

private:
  const Ze ze;
  const ze_handle_t pool = ze.pool(1), event = ze.event(pool); // ZE_EVENT_POOL_FLAG_HOST_VISIBLE
};

} // namespace app
