// Cases of invalid arguments that the header lists as errors of a function, and of some that only look invalid.
#include "ur_cases.hpp"

using namespace app;

// The four ways to query a property: three are errors according to the header.
template <typename Handle, typename What>
static std::string ask(ur_result_t (*get_info)(Handle, What, size_t, void *, size_t *), Handle handle, What what) {
  uint64_t value[64];
  size_t size = 0;
  return Answers() << get_info(handle, what, 0, value, nullptr) << get_info(handle, what, sizeof value, nullptr, &size)
                   << get_info(handle, what, 0, nullptr, nullptr) << get_info(handle, what, 0, nullptr, &size)
                   << get_info(handle, what, sizeof value, value, nullptr);
}

static ur_result_t allocate(Ur &ur, size_t size, ur_usm_advice_flags_t hints, uint32_t align) {
  const ur_usm_desc_t desc = {UR_STRUCTURE_TYPE_USM_DESC, nullptr, hints, align};
  void *memory = nullptr;
  const ur_result_t result = urUSMDeviceAlloc(ur.context, ur.device, &desc, nullptr, size, &memory);
  if (result == UR_RESULT_SUCCESS && memory != nullptr) urUSMFree(ur.context, memory);
  return result;
}

static ur_result_t make_context(Ur &ur, uint32_t count, ur_context_flags_t flags) {
  const ur_context_properties_t properties = {UR_STRUCTURE_TYPE_CONTEXT_PROPERTIES, nullptr, flags};
  ur_context_handle_t context = nullptr;
  const ur_result_t result = urContextCreate(count, &ur.device, &properties, &context);
  if (result == UR_RESULT_SUCCESS) urContextRelease(context);
  return result;
}

// A shared event.
struct Shared {
  explicit Shared(Ur &ur) : event(ur.make_event()) {}
  ~Shared() { urEventRelease(event); }
  ur_event_handle_t event;
};

static const std::vector<Case> alone = {
    {"info-of-a-device", RUNS { answers << ask(urDeviceGetInfo, ur.device, UR_DEVICE_INFO_NAME); }},
    {"info-of-support", RUNS { answers << ask(urDeviceGetInfo, ur.device, UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP); }},
    {"info-of-an-event", RUNS { answers << ask(urEventGetInfo, Shared(ur).event, UR_EVENT_INFO_REFERENCE_COUNT); }},
    {"wait-for-nothing", RUNS { Shared shared(ur); answers << urEventWait(0, &shared.event) << urEventWait(1, &shared.event); }},
    {"context-of-no-device", RUNS { answers << make_context(ur, 0, 0); }},
    {"context-with-undefined-flags", RUNS { answers << make_context(ur, 1, 2) << make_context(ur, 1, 0); }},
    {"memory-of-no-size", RUNS { answers << allocate(ur, 0, 0, 0); }},
    {"memory-with-undefined-hints", RUNS { answers << allocate(ur, 4096, 1u << 20, 0) << allocate(ur, 4096, 1u << 1, 0); }},
    {"memory-unevenly-aligned", RUNS {
       for (uint32_t align : {3, 48, 64}) answers << allocate(ur, 4096, 0, align);
     }},
    {"get-of-memory-into-nothing", RUNS {
       void *memory = ur.allocate(4096);
       answers << urIPCGetMemHandleExp(ur.context, memory, nullptr, nullptr);
       ur.free(memory);
     }},
    {"free-of-nothing", RUNS { answers << urUSMFree(ur.context, nullptr); }},
};

int main(int argc, char **argv) { return run_cases(argc, argv, {alone, {}, {}, {}}); }
