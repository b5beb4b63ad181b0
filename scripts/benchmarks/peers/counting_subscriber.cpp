// A subscriber of XPTI that only counts the calls of the Unified Runtime, for `scripts/bench overhead`: the least that a tool on the
// runtime's own tracing layer costs. At its end it prints the number of calls that began and ended to stderr. With TRACEPOINTS, each of
// them is a tracepoint of LTTng, too.
#include "if_tracepoints.hpp"

#include <xpti/xpti_trace_framework.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace {

std::atomic<unsigned long> events{0};

void count(uint16_t point, xpti::trace_event_data_t *, xpti::trace_event_data_t *, uint64_t, const void *data) {
  events.fetch_add(1, std::memory_order_relaxed);
  [[maybe_unused]] const auto *call = static_cast<const xpti::function_with_args_t *>(data);
  if (point == static_cast<uint16_t>(xpti::trace_point_type_t::function_with_args_begin)) {
    lttng_ust_tracepoint(bench, entry, call->function_id, call->args_data, call->user_data);
  } else {
    lttng_ust_tracepoint(bench, exit, call->function_id, *static_cast<const uint32_t *>(call->ret_data));
  }
}

} // namespace

XPTI_CALLBACK_API void xptiTraceInit(unsigned int, unsigned int, const char *, const char *stream) {
  if (std::strcmp(stream, "ur.call") != 0)
    return;
  const uint8_t id = xptiRegisterStream(stream);
  for (auto point : {xpti::trace_point_type_t::function_with_args_begin, xpti::trace_point_type_t::function_with_args_end})
    xptiRegisterCallback(id, static_cast<uint16_t>(point), count);
}

XPTI_CALLBACK_API void xptiTraceFinish(const char *) {}

__attribute__((destructor)) static void report() { std::fprintf(stderr, "counted %lu events\n", events.load()); }
