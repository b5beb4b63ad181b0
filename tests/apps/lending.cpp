// A program that does everything through functions of its own, and makes each mistake in a function that calls them at several lines. As a
// library, it lends for a script.
#include "ipc_app.hpp"

using namespace app;

#define NOINLINE __attribute__((noinline))

// The program's own way to the runtime: no mistake is here.
NOINLINE void take_back(Gpu &gpu, Export &lent) {
  put(lent.handle, gpu);
  gpu.free(lent.memory);
}
NOINLINE std::byte *borrow(const Peer &lender, Gpu &gpu) { return open(lender.receive(), gpu); }
NOINLINE void give_back(std::byte *memory, Gpu &gpu) { close(memory, gpu); }

NOINLINE void wait_until_given_back(const Peer &borrower) {
  borrower.say("give back");
  borrower.await("given back");
}

NOINLINE void lend(const Peer &borrower) {
  Gpu gpu;
  Export morning = export_pattern(gpu, unpooled, 1), evening = export_pattern(gpu, unpooled, 2);
  borrower.send(morning.handle.data());
  borrower.await("borrowed");
  if (argument(0) != "early") wait_until_given_back(borrower);
  take_back(gpu, morning); // In the morning.
  if (argument(0) == "early") wait_until_given_back(borrower);
  borrower.send(evening.handle.data());
  borrower.await("borrowed");
  if (argument(0) != "late") wait_until_given_back(borrower);
  if (argument(0) == "kept") borrower.await_end();
  take_back(gpu, evening); // In the evening.
  if (argument(0) == "late") wait_until_given_back(borrower);
}

NOINLINE void use(const Peer &lender) {
  Gpu gpu;
  std::byte *morning = borrow(lender, gpu);
  lender.say("borrowed");
  lender.await("give back");
  give_back(morning, gpu);
  lender.say("given back");
  std::byte *evening = borrow(lender, gpu); // What is kept.
  lender.say("borrowed");
  lender.await("give back");
  if (argument(0) != "kept") give_back(evening, gpu);
  lender.say("given back");
}

ADD_MODE(early, lend, use);
ADD_MODE(late, lend, use);
ADD_MODE(kept, lend, use);
ADD_MODE(right, lend, use);

int main(int argc, char **argv) { return run_modes(argc, argv); }

// For a script. What it lends is never put.
static Gpu &of_script() {
  static Gpu *gpu = new Gpu;
  return *gpu;
}
extern "C" void *script_allocates(size_t size) { return of_script().allocate(size); }
extern "C" void script_lends(void *memory) { get(memory, of_script()); }
extern "C" void script_frees(void *memory) { of_script().free(memory); }
