// Two tracepoints of LTTng for a call: its name with two arguments, and its result. A source that includes this makes them, too.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "call_tracepoints.hpp"

#if !defined(CALL_TRACEPOINTS_HPP) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define CALL_TRACEPOINTS_HPP
#include <cstdint>

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(bench, entry, LTTNG_UST_TP_ARGS(uint64_t, function, const void *, first, const void *, second),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, function, function)
                                                   lttng_ust_field_integer_hex(uintptr_t, first, reinterpret_cast<uintptr_t>(first))
                                                       lttng_ust_field_integer_hex(uintptr_t, second, reinterpret_cast<uintptr_t>(second))))
LTTNG_UST_TRACEPOINT_EVENT(bench, exit, LTTNG_UST_TP_ARGS(uint64_t, function, uint64_t, result),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, function, function)
                                                   lttng_ust_field_integer(uint64_t, result, result)))
#endif

#include <lttng/tracepoint-event.h>
