// A signal handler calls at each instruction of the library that traces this program, one after the other, that a thread comes to while
// it frees memory that it has shared: the adapter puts its handle then. In a loop it does so a few times only.

#include "violent_victim.hpp"

using namespace app;

namespace {

const Caller *caller = nullptr;
void *memory_of_handler = nullptr;

constexpr unsigned char enough = 3;
// How often the thread has come to each byte of the library.
std::vector<unsigned char> times;

void call_in_tracer(int, siginfo_t *, void *context) {
  if (!tracer.is_interrupted(context)) return;
  unsigned char &here = times[tracer.place(context)];
  if (here == enough) return;
  here++;
  caller->get_and_put(memory_of_handler);
}

// Sets or clears the flag of the processor with which each instruction ends in a SIGTRAP.
[[gnu::noinline]] void step(bool on) {
  if (on) asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  else asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

void share_and_step() {
  Ur ur;
  const Caller calls{ur};
  Process uncounted = {};
  slot = &uncounted.add_slot();
  caller = &calls;
  memory_of_handler = calls.allocate(1 << 20);
  tracer.find();
  times.resize(tracer.end - tracer.begin);
  handle(SIGTRAP, call_in_tracer);
  // The first time is another one: much is made then. Memory of this size does not stay in the adapter's pool.
  for (const bool steps : {false, true}) {
    void *memory = calls.allocate(8 << 20);
    calls.get_and_put(memory);
    step(steps);
    calls.free(memory);
    step(false);
    calls.get_and_put(memory_of_handler);
  }
  calls.free(memory_of_handler);
  print("stepped");
}

} // namespace

int main() { return guarded(share_and_step); }
