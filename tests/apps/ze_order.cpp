// What comes before what in lists and queues of Level Zero. One process writes shared memory, and the other one reads it. The first argument names
// the case; "list" prints the names. Those that begin with "right" are correct; in the others, nothing orders the two commands. A case runs on
// any device without a delay.
#include "ze_app.hpp"

using namespace app;

namespace {

constexpr size_t SIZE = 1 << 20;
constexpr uint32_t IN_ORDER = 2, SYNCHRONOUS = 1, ASYNCHRONOUS = 2;

// The shared memory, memory of the process's own, lists of each kind, and events.
struct Side {
  Side() : memory(static_cast<char *>(ze.allocate(SIZE))), got(ze.get(memory)) {}
  explicit Side(const Bytes &handle) : memory(static_cast<char *>(ze.open(fetched(handle)))) {}

  void write(ze_handle_t list, ze_handle_t signal = nullptr) {
    const char byte = 7;
    Ze::check(ze.zeCommandListAppendMemoryFill(list, memory, &byte, 1, SIZE, signal, 0, nullptr), "zeCommandListAppendMemoryFill");
  }
  void copy(ze_handle_t list, void *to, const void *from, size_t size, ze_handle_t signal = nullptr, ze_handle_t wait = nullptr) {
    Ze::check(ze.zeCommandListAppendMemoryCopy(list, to, from, size, signal, wait ? 1 : 0, wait ? &wait : nullptr), "zeCommandListAppendMemoryCopy");
  }
  void read(ze_handle_t list, ze_handle_t wait = nullptr) { copy(list, own, memory, SIZE, nullptr, wait); }
  void wait_for(ze_handle_t list) { ze.wait_for(list); }
  void wait_for_event(ze_handle_t of) { Ze::check(ze.zeEventHostSynchronize(of, UINT64_MAX), "zeEventHostSynchronize"); }
  ze_handle_t fence() {
    const ze_fence_desc_t desc = {0x12, nullptr, 0};
    ze_handle_t made = nullptr;
    Ze::check(ze.zeFenceCreate(listed.queue, &desc, &made), "zeFenceCreate");
    return made;
  }
  void wait_for_fence(ze_handle_t of) { Ze::check(ze.zeFenceHostSynchronize(of, UINT64_MAX), "zeFenceHostSynchronize"); }

  Ze ze;
  char *const memory;
  ze_ipc_mem_handle_t got{};
  char *const own = static_cast<char *>(ze.allocate(SIZE));
  const ze_handle_t in_order = ze.immediate_list(ASYNCHRONOUS, IN_ORDER), out_of_order = ze.immediate_list(ASYNCHRONOUS);
  const ze_handle_t other = ze.immediate_list(ASYNCHRONOUS, IN_ORDER), blocking = ze.immediate_list(SYNCHRONOUS, IN_ORDER);
  ListInQueue listed{ze}, more{ze};
  ze_handle_t event = ze.event(ze.pool(1)), second_event = ze.event(ze.pool(1));
};

using Told = std::function<void()>;

// Shares memory; `write` tells that it was written, unless this does; then waits for everything. A writer that does not wait does not free
// the memory either, because its command may still write there.
void write_first(Peer &reader, const std::function<void(Side &, const Told &)> &write, bool waits = true) {
  Side writer;
  reader.send(message(writer.got));
  reader.await("ready");
  bool is_told = false;
  const Told tell = [&] { is_told = true, reader.say("written"); };
  write(writer, tell);
  if (!is_told) tell();
  reader.await("read");
  if (waits) {
    for (ze_handle_t list : {writer.in_order, writer.out_of_order, writer.other}) writer.wait_for(list);
    writer.listed.wait();
  }
  reader.say("waited");
  reader.await("closed");
  if (waits) writer.ze.free(writer.memory);
}

// `prepare` is done before the memory is written.
void read_second(Peer &writer, const std::function<void(Side &)> &prepare, const std::function<void(Side &)> &read) {
  Side reader(writer.receive());
  prepare(reader);
  writer.say("ready");
  writer.await("written");
  read(reader);
  writer.say("read");
  writer.await("waited");
  reader.ze.close(reader.memory);
  writer.say("closed");
}

void read_at_once(Side &reader) { reader.read(reader.blocking); }

#define WRITES(name, ...)                                                                                                                    \
  ADD_MODE(name, [](Peer &reader) { write_first(reader, [](Side & writer, [[maybe_unused]] const Told &tell) __VA_ARGS__); },                \
           [](Peer &writer) { read_second(writer, [](Side &) {}, read_at_once); })

// The writer waits for its command before it tells. The reader has one function for what it does before, and one for what it does behind.
#define READS(name, ...)                                                                                                                     \
  ADD_MODE(name, [](Peer &reader) { write_first(reader, [](Side &writer, const Told &) { writer.write(writer.blocking); }); },                \
           [](Peer &writer) { read_second(writer, __VA_ARGS__); })

WRITES(right_list, { writer.write(writer.in_order), writer.wait_for(writer.in_order); });
WRITES(right_list_out_of_order, { writer.write(writer.out_of_order), writer.wait_for(writer.out_of_order); });
WRITES(right_blocking, { writer.write(writer.blocking); });
WRITES(right_event, { writer.write(writer.out_of_order, writer.event), writer.wait_for_event(writer.event); });
WRITES(right_event_behind, {
  writer.write(writer.in_order);
  writer.copy(writer.in_order, writer.own, writer.own + 64, 64, writer.event);
  writer.wait_for_event(writer.event);
});
WRITES(right_barrier, {
  writer.write(writer.out_of_order);
  Ze::check(writer.ze.zeCommandListAppendBarrier(writer.out_of_order, writer.event, 0, nullptr), "zeCommandListAppendBarrier");
  writer.wait_for_event(writer.event);
});
WRITES(right_barrier_without_event, {
  writer.write(writer.out_of_order);
  Ze::check(writer.ze.zeCommandListAppendBarrier(writer.out_of_order, nullptr, 0, nullptr), "zeCommandListAppendBarrier");
  writer.copy(writer.out_of_order, writer.own, writer.own + 64, 64, writer.event);
  writer.wait_for_event(writer.event);
});
WRITES(right_event_elsewhere, {
  writer.write(writer.out_of_order, writer.event);
  writer.copy(writer.other, writer.own, writer.own + 64, 64, nullptr, writer.event);
  writer.wait_for(writer.other);
});
WRITES(right_executed, {
  writer.write(writer.listed.list);
  writer.listed.close(), writer.listed.execute(), writer.listed.wait();
});
WRITES(right_fence, {
  const ze_handle_t fence = writer.fence();
  writer.write(writer.listed.list);
  writer.listed.close(), writer.listed.execute(fence), writer.wait_for_fence(fence);
});
WRITES(right_event_in_list, {
  writer.write(writer.listed.list, writer.event);
  writer.listed.close(), writer.listed.execute(), writer.wait_for_event(writer.event);
});
WRITES(right_list_behind_event, {
  writer.write(writer.out_of_order, writer.event);
  Ze::check(writer.ze.zeCommandListAppendWaitOnEvents(writer.listed.list, 1, &writer.event), "zeCommandListAppendWaitOnEvents");
  writer.listed.close(), writer.listed.execute(), writer.listed.wait();
});
WRITES(right_executed_again, {
  writer.write(writer.listed.list);
  writer.listed.close(), writer.listed.execute(), writer.listed.wait(), writer.listed.execute(), writer.listed.wait();
});
// What is in a list when the process begins to share memory is not recorded: another command may be a flag.
ADD_MODE(
    right_list_of_before,
    [](Peer &reader) {
      Ze ze;
      char *const memory = static_cast<char *>(ze.allocate(SIZE)), *const own = static_cast<char *>(ze.allocate(SIZE));
      ListInQueue before(ze);
      Ze::check(ze.zeCommandListAppendMemoryCopy(before.list, memory, own, SIZE / 2, nullptr, 0, nullptr), "zeCommandListAppendMemoryCopy");
      reader.send(message(ze.get(memory)));
      reader.await("ready");
      Ze::check(ze.zeCommandListAppendMemoryCopy(before.list, memory, own, SIZE, nullptr, 0, nullptr), "zeCommandListAppendMemoryCopy");
      before.close(), before.execute(), before.wait();
      reader.say("written");
      reader.await("read");
      reader.say("waited");
      reader.await("closed");
      ze.free(memory);
    },
    [](Peer &writer) { read_second(writer, [](Side &) {}, read_at_once); });
// What was taken out of the list is not executed.
WRITES(right_reset, {
  writer.write(writer.blocking);
  writer.write(writer.listed.list);
  writer.listed.reset();
  writer.copy(writer.listed.list, writer.own, writer.own + 64, 64);
  writer.listed.close(), writer.listed.execute();
  tell();
});

// The reader's copy waits for an event of a pool that they share, and that the writer's command signals.
constexpr uint32_t SHARED_AND_OF_HOST = 3;
ADD_MODE(
    right_shared_event,
    [](Peer &reader) {
      Side writer;
      const ze_handle_t pool = writer.ze.pool(SHARED_AND_OF_HOST), written = writer.ze.event(pool);
      ze_ipc_mem_handle_t shared = {};
      Ze::check(writer.ze.zeEventPoolGetIpcHandle(pool, &shared), "zeEventPoolGetIpcHandle");
      reader.send(message(writer.got));
      reader.send(message(shared));
      reader.await("ready");
      writer.write(writer.in_order, written);
      reader.say("enqueued");
      reader.await("closed");
      writer.wait_for(writer.in_order);
      writer.ze.free(writer.memory);
      Ze::check(writer.ze.zeEventPoolDestroy(pool), "zeEventPoolDestroy");
    },
    [](Peer &writer) {
      Side reader(writer.receive());
      ze_handle_t pool = nullptr;
      Ze::check(reader.ze.zeEventPoolOpenIpcHandle(reader.ze.context, fetched(writer.receive()), &pool), "zeEventPoolOpenIpcHandle");
      const ze_handle_t written = reader.ze.event(pool);
      writer.say("ready");
      writer.await("enqueued");
      reader.read(reader.in_order, written);
      reader.wait_for(reader.in_order);
      Ze::check(reader.ze.zeEventPoolCloseIpcHandle(pool), "zeEventPoolCloseIpcHandle");
      reader.ze.close(reader.memory);
      writer.say("closed");
    });

// What was added to a list before begins when the list is executed.
READS(
    right_list_made_before, [](Side &reader) { reader.read(reader.listed.list), reader.listed.close(); },
    [](Side &reader) { reader.listed.execute(), reader.listed.wait(); });

// The copy was enqueued before, and begins when the host signals an event: one that is new, was reset, or was made anew.
void signal(Side &reader) {
  Ze::check(reader.ze.zeEventHostSignal(reader.event), "zeEventHostSignal");
  reader.wait_for(reader.in_order);
  reader.listed.wait();
}
void use_event(Side &reader) {
  reader.copy(reader.other, reader.own, reader.own + 64, 64, reader.event);
  reader.wait_for(reader.other);
}
READS(right_gate, [](Side &reader) { reader.read(reader.in_order, reader.event); }, signal);
READS(
    right_gate_again,
    [](Side &reader) {
      use_event(reader);
      Ze::check(reader.ze.zeEventHostReset(reader.event), "zeEventHostReset");
      reader.read(reader.in_order, reader.event);
    },
    signal);
READS(
    right_gate_reset_by_list,
    [](Side &reader) {
      use_event(reader);
      Ze::check(reader.ze.zeCommandListAppendEventReset(reader.other, reader.event), "zeCommandListAppendEventReset");
      reader.wait_for(reader.other);
      reader.read(reader.in_order, reader.event);
    },
    signal);
READS(
    right_gate_made_anew,
    [](Side &reader) {
      use_event(reader);
      Ze::check(reader.ze.zeEventDestroy(reader.event), "zeEventDestroy");
      reader.event = reader.ze.event(reader.ze.pool(1));
      reader.read(reader.in_order, reader.event);
    },
    signal);
READS(
    right_gate_of_list,
    [](Side &reader) {
      reader.read(reader.listed.list, reader.event);
      reader.listed.close(), reader.listed.execute();
    },
    signal);

WRITES(told_first, {
  writer.write(writer.in_order);
  tell();
});
WRITES(other_list, { writer.write(writer.in_order), writer.wait_for(writer.other); });
WRITES(event_behind, {
  writer.write(writer.out_of_order);
  writer.copy(writer.out_of_order, writer.own, writer.own + 64, 64, writer.event);
  writer.wait_for_event(writer.event);
});
WRITES(other_event, {
  writer.copy(writer.other, writer.own, writer.own + 64, 64, writer.second_event);
  writer.write(writer.out_of_order, writer.event);
  writer.wait_for_event(writer.second_event);
});
WRITES(barrier_before, {
  Ze::check(writer.ze.zeCommandListAppendBarrier(writer.out_of_order, writer.event, 0, nullptr), "zeCommandListAppendBarrier");
  writer.write(writer.out_of_order);
  writer.wait_for_event(writer.event);
});
WRITES(executed_and_told, {
  writer.write(writer.listed.list);
  writer.listed.close(), writer.listed.execute();
  tell();
});
WRITES(executed_again_and_told, {
  writer.write(writer.listed.list);
  writer.listed.close(), writer.listed.execute(), writer.listed.wait(), writer.listed.execute();
  tell();
});
WRITES(fence_of_before, {
  const ze_handle_t fence = writer.fence();
  writer.copy(writer.more.list, writer.own, writer.own + 64, 64);
  writer.write(writer.listed.list);
  writer.more.close(), writer.listed.close();
  Ze::check(writer.ze.zeCommandQueueExecuteCommandLists(writer.listed.queue, 1, &writer.more.list, fence), "an execution");
  writer.listed.execute();
  writer.wait_for_fence(fence);
});
ADD_MODE(
    never_waited, [](Peer &reader) { write_first(reader, [](Side &writer, const Told &) { writer.write(writer.in_order); }, false); },
    [](Peer &writer) { read_second(writer, [](Side &) {}, read_at_once); });
READS(enqueued_before, [](Side &reader) { reader.read(reader.in_order); }, [](Side &reader) { reader.wait_for(reader.in_order); });

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
