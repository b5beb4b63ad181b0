// The tracepoints of a call with TRACEPOINTS; without, they are nothing.
#ifdef TRACEPOINTS
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "call_tracepoints.hpp"
#else
#define lttng_ust_tracepoint(...)
#endif
