// Wrong arguments for Unified Runtime, in a process that shares memory (bad_calls.hpp). Its adapters check
// little: many calls do not return.
#include "bad_calls.hpp"
#include "ur_app.hpp"

using namespace app;

int main(int, char **argv) {
  const Ur ur;
  const auto word = [](const auto *handle) { return reinterpret_cast<uint64_t>(handle); };
  void *memory = ur.allocate(1 << 20);
  ur.get(memory);
  const bad_calls::Right right = {{"Context", word(ur.context)}, {"Device", word(ur.device)}, {"Queue", word(ur.queue)},
                                  {"Pointer", word(memory)}, {"Accessed", word(memory)}, {"CopiedFrom", word(memory)}, {"Length", 4096},
                                  {"Count", 1}, {"Adapter", word(ur.adapters[0])}};
  bad_calls::make(RTLD_DEFAULT, argv, [&] { return right; });
}
