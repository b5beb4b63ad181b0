// A clean program that finds urIPC* by name at run time, as a program must that also runs where they do not exist.
//
// It links nothing of the library that may be preloaded.
#include "ur_app.hpp"

#include <dlfcn.h>

using namespace app;

template <typename Function> static Function *find(Function &, const char *name) {
  auto *found = reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
  require(found != nullptr, std::string("there is no ") + name);
  return found;
}
#define FIND(name) const auto name##_found = find(name, #name)

int main() {
  return guarded([] {
    Ur ur;
    FIND(urEventCreateExp);
    FIND(urIPCGetEventHandleExp);
    FIND(urIPCPutEventHandleExp);
    FIND(urIPCOpenEventHandleExp);

    const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, UR_EXP_EVENT_FLAG_IPC_EXP};
    ur_event_handle_t event = nullptr, imported = nullptr;
    CHECK(urEventCreateExp_found(ur.context, ur.device, &desc, &event));
    void *data = nullptr;
    size_t size = 0;
    CHECK(urIPCGetEventHandleExp_found(event, &data, &size));
    CHECK(urIPCOpenEventHandleExp_found(ur.context, data, size, &imported));
    CHECK(urIPCPutEventHandleExp_found(ur.context, data));
    CHECK(urEventWait(1, &imported));
    CHECK(urEventRelease(imported));
    CHECK(urEventRelease(event));
    print("opened an event by name");
  });
}
