// Programs without SYCL: they link the UR loader and share memory through its C interface. The first argument names the function that does
// it; "list" prints the names. Results are printed as ur_result_t.
#include "ur_cases.hpp"

#include <malloc.h>

#include <array>
#include <map>

using namespace app;

namespace {

std::string number(ur_result_t result) { return std::to_string(result); }

// Larger than what the adapters serve from a pool.
constexpr size_t large = 8 << 20;

// --- Correct ------------------------------------------------------------------------------------------------------

constexpr uint64_t word = 42;
void open_directly(Peer &producer) {
  Ur ur;
  void *memory = ur.open(producer.receive());
  uint64_t read = 0;
  ur.copy(&read, memory, sizeof read);
  print("consumer read " + std::to_string(read));
  ur.close(memory);
  producer.say("closed");
}
PARENT_MODE(direct, open_directly, consumer) {
  Ur ur;
  void *memory = ur.allocate(1 << 20);
  ur.copy(memory, &word, sizeof word);
  const Data got = ur.get(memory);
  print("producer wrote " + std::to_string(word));
  consumer.send(got.copy());
  consumer.await("closed");
  ur.put(got);
  ur.free(memory);
}

void open_without_rights(Peer &producer) {
  give_up_the_right_to_trace();
  Ur ur;
  Bytes data = producer.receive();
  void *memory = nullptr;
  const ur_result_t result = ur.try_open(data, &memory);
  print("open answered " + number(result) + (memory == nullptr ? ", nothing" : ""));
  // With another size it is refused because of the size.
  data.pop_back();
  print("a byte less answered " + number(ur.try_open(data, &memory)));
  producer.say("done");
}
// The producer must not be traced, and the consumer has no right to trace any process: the kernel refuses the descriptor that the handle
// data name.
PARENT_MODE(no_permission, open_without_rights, consumer) {
  const Untraceable untraceable;
  Ur ur;
  void *memory = ur.allocate(large);
  const Data got = ur.get(memory);
  consumer.send(got.copy());
  consumer.await("done");
  ur.put(got);
  ur.free(memory);
}

// An open that fails because the producer was killed: the result, and what is left in its variable.
void share_until_killed(Peer &consumer) {
  Ur ur;
  consumer.send(ur.get(ur.allocate(large)).copy());
  consumer.receive_word(); // No message ever arrives.
}
PARENT_MODE(missing_open, share_until_killed, producer) {
  Ur ur;
  const Bytes data = producer.receive();
  producer.kill();
  void *const before = &ur, *memory = before;
  const ur_result_t result = ur.try_open(data, &memory);
  print("open: " + number(result) + (memory == before ? " untouched" : " touched"));
}

// A program under a filter of system calls that kills it for statx, which it does not make by then.
ALONE(no_statx) {
  Ur ur;
  void *memory = ur.allocate(1 << 16);
  const auto share = [&](int times) {
    for (int i = 0; i < times; i++) ur.put(ur.get(memory));
  };
  // The software device makes the call when it is first used.
  share(1);
  filter(SYS_statx, SECCOMP_RET_KILL_PROCESS);
  // So often that the file of a trace grows.
  share(5000);
  // The trace of a child begins under the filter.
  const pid_t child = fork();
  if (child == 0) {
    share(1);
    _exit(0);
  }
  require_end(child, "the child did not end well");
  ur.free(memory);
  print("shared memory without statx");
}

// --- Wrong --------------------------------------------------------------------------------------------------------

// The consumer closes memory of which rows are still copied, and tells the producer, which uses the memory for something else. Fixed, the
// consumer waits for the copy first. Its device is slowed, so that the copy always comes late.
constexpr size_t row = 256, rows = 64, size = row * rows;
Bytes filled(unsigned char value) { return Bytes(size, std::byte{value}); }
void use_for_something_else(Peer &consumer) {
  Ur ur;
  void *memory = ur.allocate(size);
  ur.copy(memory, filled(41).data(), size);
  const Data got = ur.get(memory);
  consumer.send(got.copy());
  consumer.await("closed");
  CHECK(urEnqueueUSMMemcpy2D(ur.queue, true, memory, row, filled(42).data(), row, row, rows, 0, nullptr, nullptr));
  // No adapter need have this one; a fill of rows is recorded all the same.
  const unsigned char pattern = 42;
  urEnqueueUSMFill2D(ur.queue, memory, row, 1, &pattern, row, rows, 0, nullptr, nullptr);
  CHECK(urQueueFinish(ur.queue));
  consumer.say("used again");
  ur.put(got);
  ur.free(memory);
}
CHILD_MODE(rows_in_use, use_for_something_else, producer) {
  setenv("ZE_SOFT_DELAY", "4s", 1);
  Ur ur;
  void *memory = ur.open(producer.receive());
  Bytes data(size);
  CHECK(urEnqueueUSMMemcpy2D(ur.queue, false, data.data(), row, memory, row, row, rows, 0, nullptr, nullptr));
  if (is_fixed()) CHECK(urQueueFinish(ur.queue));
  ur.close(memory);
  producer.say("closed");
  producer.await("used again");
  CHECK(urQueueFinish(ur.queue));
  print(data == filled(41) ? "consumer has what was sent" : "consumer has something else");
}

// The consumer copies a part of shared memory, and says that it is done before that is so; its device is slowed. The producer then writes
// another part. The second argument says which; "waited" waits for the copy, and "apart" and "rows" do not touch.
struct Part { size_t offset, length; bool is_rows; };
const std::map<std::string, std::array<Part, 2>> parts = {
    {"overwritten", {{{0, 16, false}, {0, size, false}}}},
    {"waited", {{{0, 16, false}, {0, size, false}}}},
    {"apart", {{{0, size / 2, false}, {size / 2, size / 2, false}}}},
    {"one_byte", {{{0, size / 2 + 1, false}, {size / 2, size / 2, false}}}},
    {"rows", {{{0, row / 2, true}, {row / 2, row / 2, true}}}},
    {"rows_that_meet", {{{0, row / 2 + 1, true}, {row / 2, row / 2, true}}}},
};
std::string which_parts() { return argument(1).empty() ? "waited" : argument(1); }
void copy_part(const Ur &ur, void *to, const void *from, const Part &part) {
  auto *const target = static_cast<std::byte *>(to) + part.offset;
  const auto *const source = static_cast<const std::byte *>(from) + part.offset;
  if (part.is_rows) CHECK(urEnqueueUSMMemcpy2D(ur.queue, false, target, row, source, row, part.length, rows, 0, nullptr, nullptr));
  else CHECK(urEnqueueUSMMemcpy(ur.queue, false, target, source, part.length, 0, nullptr, nullptr));
}
void read_part(Peer &producer) {
  setenv("ZE_SOFT_DELAY", "2s", 1);
  Ur ur;
  void *memory = ur.open(producer.receive());
  Bytes data(size);
  copy_part(ur, data.data(), memory, parts.at(which_parts())[0]);
  if (which_parts() == "waited") CHECK(urQueueFinish(ur.queue));
  producer.say("done");
  CHECK(urQueueFinish(ur.queue));
  print("consumer read " + std::to_string(static_cast<int>(data[0])));
  ur.close(memory);
  producer.say("closed");
}
PARENT_MODE(race, read_part, consumer) {
  Ur ur;
  void *memory = ur.allocate(size);
  const Data got = ur.get(memory);
  consumer.send(got.copy());
  consumer.await("done");
  const Bytes data = filled(42);
  copy_part(ur, memory, data.data(), parts.at(which_parts())[1]);
  CHECK(urQueueFinish(ur.queue));
  consumer.await("closed");
  ur.put(got);
  ur.free(memory);
}

// Puts the same handle data many times, opens other handle data as often without closing it, and measures by how much the
// memory of the process grows. Less than a byte for each counts as no memory: glibc must keep no freed memory in caches of the
// threads (glibc.malloc.tcache_count=0), which mallinfo2(3) counts as used.
//
// Runs only where violations are refused: the adapters would free the handle data each time. The second argument is the count.
ALONE(repeated_violations) {
  const auto times = argument(1).empty() ? size_t{1000} : std::stoul(argument(1));
  const auto repeat = [&](const char *what, const std::function<void()> &violation) {
    for (size_t i = 0; i < times / 10; ++i) violation();
    const size_t earlier = mallinfo2().uordblks;
    for (size_t i = 0; i < times; ++i) violation();
    const size_t later = mallinfo2().uordblks;
    print(std::string(what) + ": " + (later < earlier + times ? "no memory more" : std::to_string(later - earlier) + " bytes more"));
  };
  Ur ur;
  const Data got = ur.get(ur.allocate(large));
  const auto is_refused = [](ur_result_t result, ur_result_t as, const char *what) { require(result == as, what); };
  const auto invalid = UR_RESULT_ERROR_INVALID_ARGUMENT, null = UR_RESULT_ERROR_INVALID_NULL_POINTER;
  void *mapping = nullptr;
  repeat("opens", [&] { CHECK(urIPCOpenMemHandleExp(ur.context, ur.device, got.data, got.size, &mapping)); });
  ur.put(got);
  repeat("second puts", [&] { is_refused(urIPCPutMemHandleExp(ur.context, got.data), invalid, "a second put was accepted"); });
  repeat("closes of nothing", [&] { is_refused(urIPCCloseMemHandleExp(ur.context, &ur), invalid, "an unknown pointer was closed"); });
  repeat("null handles", [&] { is_refused(urIPCPutMemHandleExp(ur.context, nullptr), null, "null was put"); });
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
