// Runs a script of steps of several processes, as `tests/src/hunt` generates them: hunt SCRIPT.
//
// The main process is process 0. It starts the others as the script says: by fork and exec, or by fork alone. The script fixes
// the order of all steps. Nothing is destroyed unless a step says so, so that what a script leaves open stays open.
#include "ipc_app.hpp"

#include "async_app.hpp"
#include "event_app.hpp"
#include "hunt_sites.hpp"
#include "scenario_steps.hpp"
#include "physical_app.hpp"

#include <map>
#include <memory>
#include <optional>
#include <thread>

using namespace app;

// What a process has, by the numbers in the script. A forked child has a copy.
struct Registers {
  static constexpr unsigned count = 256;
  std::unique_ptr<Gpu> contexts[count];
  std::byte *memory[count] = {};
  std::optional<Handle> handles[count];
  Bytes bytes[count];
  std::unique_ptr<async::memory_pool> pools[count];
  std::unique_ptr<physical_mem> physical[count];
  std::unique_ptr<Addresses> mapped[count];
  std::unique_ptr<sycl::event> events[count];
  pid_t children[count] = {};
};

static Registers &registers = *new Registers;
static const char *script_file;
static const Script *script;
static Turns *turns;

static void run_process(unsigned process);

// One call into the runtime, from the line of the step's site.
static void call(const Step &step, const std::function<void()> &call) {
  try {
    at(step.site, call);
  } catch (const sycl::exception &) {
    if (!step.may_be_refused) throw;
  }
}

static Gpu &gpu(unsigned number) {
  auto &context = registers.contexts[number];
  require(context != nullptr, "no context " + std::to_string(number));
  return *context;
}
template <typename T> static T &present(T &value, const char *what) {
  require(static_cast<bool>(value), std::string("there is no such ") + what);
  return value;
}

constexpr size_t probe = 64; // Bytes that are written and compared.

static void write(const Step &step, std::byte *to, unsigned context, unsigned seed) {
  call(step, [&] { gpu(context).write(to, pattern(probe, seed)); });
}
static void compare(const Step &step, const std::byte *from, unsigned context, unsigned seed) {
  Bytes found;
  call(step, [&] { found = gpu(context).read(from, probe); });
  require(found == pattern(probe, seed), "read other bytes than were written");
}

static void keep_memory(unsigned number, void *memory) {
  require(memory != nullptr, "no memory");
  registers.memory[number] = static_cast<std::byte *>(memory);
}

static void keep_handle(const Step &step, Handle handle) {
  const bool empty = handle.data().empty();
  require(step.may_be_refused || !empty, "get returned an empty handle");
  if (!empty) registers.handles[step[0]] = handle;
}

// A process ends without any cleaning up of the runtime, as a forked child must.
[[noreturn]] static void end_at_once(int code) { _exit(code); }

static pid_t start(unsigned process) {
  char self[4096] = {};
  require(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot find this program");
  const std::string number = std::to_string(process), descriptor = turns->descriptor();
  char *const arguments[] = {self, const_cast<char *>(script_file), const_cast<char *>(number.c_str()),
                             const_cast<char *>(descriptor.c_str()), nullptr};
  pid_t pid = 0;
  require(posix_spawn(&pid, self, nullptr, nullptr, arguments, environ) == 0, "cannot start a process");
  return pid;
}

using Operation = std::function<void(const Step &)>;

static const std::map<std::string, Operation> memory_operations = {
    {"context", [](auto &step) { registers.contexts[step[0]] = std::make_unique<Gpu>(); }},
    {"drop-context", [](auto &step) { call(step, [&] { registers.contexts[step[0]].reset(); }); }},
    {"alloc", [](auto &step) { call(step, [&] { registers.memory[step[0]] = gpu(step[1]).allocate(step[2]); }); }},
    // The memory must take the address of memory that was just freed.
    {"alloc-at",
     [](auto &step) {
       call(step, [&] { registers.memory[step[0]] = gpu(step[1]).allocate(step[2]); });
       require(registers.memory[step[0]] == registers.memory[step[3]], "the pool hands out another address");
     }},
    {"free", [](auto &step) { call(step, [&] { gpu(step[1]).free(registers.memory[step[0]]); }); }},
    {"write", [](auto &step) { write(step, registers.memory[step[0]] + step[3], step[1], step[2]); }},
    {"compare", [](auto &step) { compare(step, registers.memory[step[0]] + step[3], step[1], step[2]); }},
    {"get",
     [](auto &step) {
       call(step, [&] { keep_handle(step, ipc::get(registers.memory[step[1]] + step[3], gpu(step[2]).context)); });
     }},
    {"put", [](auto &step) { call(step, [&] { put(*present(registers.handles[step[0]], "handle"), gpu(step[1])); }); }},
    {"put-null",
     [](auto &step) {
       call(step, [&] { put(with_data_at(*present(registers.handles[step[0]], "handle"), nullptr), gpu(step[1])); });
     }},
    // A copy at another address. The adapters trust the word in front of it, so the copy includes that.
    {"put-copy",
     [](auto &step) {
       alignas(64) static std::byte foreign[4096];
       const Handle handle = *present(registers.handles[step[0]], "handle");
       std::byte *data;
       std::memcpy(&data, &handle, sizeof data); // The pointer is its first member.
       std::memcpy(foreign + 64 - sizeof(size_t), data - sizeof(size_t), sizeof(size_t) + handle.data().size());
       call(step, [&] { put(with_data_at(handle, foreign + 64), gpu(step[1])); });
     }},
    {"open",
     [](auto &step) {
       std::byte *&opened = registers.memory[step[0]];
       opened = nullptr;
       call(step, [&] {
         Gpu &where = gpu(step[2]);
         opened = static_cast<std::byte *>(ipc::open(registers.bytes[step[1]], where.context, where.device));
       });
       require(opened != nullptr || step.may_be_refused, "open returned no pointer");
     }},
    {"close", [](auto &step) { call(step, [&] { close(registers.memory[step[0]] + step[2], gpu(step[1])); }); }},
    {"churn",
     [](auto &step) {
       Gpu &where = gpu(step[1]);
       for (unsigned i = 0; i < step[2]; ++i) call(step, [&] { put(get(registers.memory[step[0]], where), where); });
     }},
};

// Memory that a command of a queue allocates and frees, memory of a pool, and memory that cannot be shared.
static const std::map<std::string, Operation> other_memory_operations = {
    {"alloc-queued",
     [](auto &step) {
       call(step, [&] {
         Gpu &where = gpu(step[1]);
         keep_memory(step[0], async::async_malloc(where.queue, sycl::usm::alloc::device, step[2]));
         where.queue.wait();
       });
     }},
    {"make-pool",
     [](auto &step) {
       call(step, [&] {
         registers.pools[step[0]] = std::make_unique<async::memory_pool>(gpu(step[1]).queue, sycl::usm::alloc::device);
       });
     }},
    {"drop-pool", [](auto &step) { call(step, [&] { registers.pools[step[0]].reset(); }); }},
    {"alloc-from",
     [](auto &step) {
       call(step, [&] {
         Gpu &where = gpu(step[1]);
         auto &pool = *present(registers.pools[step[3]], "pool");
         keep_memory(step[0], async::async_malloc_from_pool(where.queue, step[2], pool));
         where.queue.wait();
       });
     }},
    {"free-queued",
     [](auto &step) {
       call(step, [&] {
         async::async_free(gpu(step[1]).queue, registers.memory[step[0]]);
         gpu(step[1]).queue.wait();
       });
     }},
    {"alloc-host",
     [](auto &step) {
       call(step, [&] { keep_memory(step[0], sycl::malloc_host(step[2], gpu(step[1]).context)); });
     }},
    {"alloc-shared",
     [](auto &step) {
       call(step, [&] {
         keep_memory(step[0], sycl::malloc_shared(step[2], gpu(step[1]).device, gpu(step[1]).context));
       });
     }},
    {"get-put", [](auto &step) { call(step, [&] { put(get(registers.memory[step[0]], gpu(step[1])), gpu(step[1])); }); }},
};

static const std::map<std::string, Operation> physical_operations = {
    {"make-physical",
     [](auto &step) {
       call(step, [&] {
         Gpu &where = gpu(step[1]);
         registers.physical[step[0]].reset(new physical_mem(make_shared_memory(where, granularity(where) * step[2])));
       });
     }},
    {"open-physical",
     [](auto &step) {
       call(step, [&] {
         Gpu &where = gpu(step[2]);
         registers.physical[step[0]].reset(
             new physical_mem(ipc_physical::open(registers.bytes[step[1]], where.context, where.device)));
       });
     }},
    {"drop-physical", [](auto &step) { call(step, [&] { registers.physical[step[0]].reset(); }); }},
    {"get-physical",
     [](auto &step) {
       call(step, [&] { keep_handle(step, ipc_physical::get(*present(registers.physical[step[1]], "memory"))); });
     }},
    {"put-physical",
     [](auto &step) {
       call(step, [&] { ipc_physical::put(*present(registers.handles[step[0]], "handle"), gpu(step[1]).context); });
     }},
    {"map",
     [](auto &step) {
       physical_mem &memory = *present(registers.physical[step[0]], "memory");
       registers.mapped[step[0]] = std::make_unique<Addresses>(gpu(step[1]), memory.size());
       registers.mapped[step[0]]->map(memory, 0, memory.size());
     }},
    {"unmap",
     [](auto &step) {
       registers.mapped[step[0]]->unmap(0, registers.physical[step[0]]->size());
       registers.mapped[step[0]].reset();
     }},
    {"write-physical", [](auto &step) { write(step, registers.mapped[step[0]]->pointer(), step[1], step[2]); }},
    {"compare-physical", [](auto &step) { compare(step, registers.mapped[step[0]]->pointer(), step[1], step[2]); }},
};

static const std::map<std::string, Operation> event_operations = {
    {"make-event",
     [](auto &step) {
       call(step, [&] { registers.events[step[0]].reset(new sycl::event(make_shared_event(gpu(step[1])))); });
     }},
    {"open-event",
     [](auto &step) {
       call(step, [&] {
         registers.events[step[0]].reset(
             new sycl::event(ipc_event::open(registers.bytes[step[1]], gpu(step[2]).context)));
       });
     }},
    {"drop-event", [](auto &step) { call(step, [&] { registers.events[step[0]].reset(); }); }},
    {"get-event",
     [](auto &step) {
       call(step, [&] { keep_handle(step, ipc_event::get(*present(registers.events[step[1]], "event"))); });
     }},
    {"put-event",
     [](auto &step) {
       call(step, [&] { ipc_event::put(*present(registers.handles[step[0]], "handle"), gpu(step[1]).context); });
     }},
    {"signal",
     [](auto &step) {
       sycl::queue &queue = gpu(step[1]).queue;
       call(step, [&] { experimental::enqueue_signal_event(queue, *registers.events[step[0]]); });
       queue.wait();
     }},
    {"wait", [](auto &step) { call(step, [&] { present(registers.events[step[0]], "event")->wait(); }); }},
};

static const std::map<std::string, Operation> process_operations = {
    {"send",
     [](auto &step) {
       const Bytes data = present(registers.handles[step[0]], "handle")->data();
       auto &slot = turns->slot(step[1]);
       require(data.size() <= sizeof slot.data, "the handle data are too long");
       std::memcpy(slot.data, data.data(), slot.size = data.size());
     }},
    {"receive",
     [](auto &step) {
       const auto &slot = turns->slot(step[1]);
       registers.bytes[step[0]].assign(slot.data, slot.data + slot.size);
     }},
    {"forward",
     [](auto &step) {
       auto &slot = turns->slot(step[1]);
       const Bytes &data = registers.bytes[step[0]];
       std::memcpy(slot.data, data.data(), slot.size = data.size());
     }},
    {"cut", [](auto &step) { registers.bytes[step[0]].resize(step[1]); }},
    {"overwrite", [](auto &step) { registers.bytes[step[0]] = pattern(registers.bytes[step[0]].size(), step[1]); }},
    {"spawn", [](auto &step) { registers.children[step[0]] = start(step[0]); }},
    {"fork",
     [](auto &step) {
       const pid_t pid = fork();
       require(pid >= 0, "cannot fork");
       if (pid == 0) run_process(step[0]);
       registers.children[step[0]] = pid;
     }},
    {"join",
     [](auto &step) {
       int status = 0;
       require(waitpid(registers.children[step[0]], &status, 0) == registers.children[step[0]], "cannot wait");
       registers.children[step[0]] = 0;
     }},
};

// A child that failed takes its turns with it: then the script has failed.
static void look_after_children() {
  for (pid_t child : registers.children) {
    siginfo_t ended = {};
    if (child == 0 || waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    const bool killed_itself = ended.si_code == CLD_KILLED && ended.si_status == SIGKILL;
    require(ended.si_pid == 0 || killed_itself || (ended.si_code == CLD_EXITED && ended.si_status == 0),
            "a child ended with " + std::to_string(ended.si_status));
  }
}

static void execute(const Step &step) {
  for (auto *operations : {&memory_operations, &other_memory_operations, &physical_operations, &event_operations,
                           &process_operations})
    if (const auto found = operations->find(step.operation); found != operations->end()) return found->second(step);
  require(false, "no operation '" + step.operation + "'");
}

// The ends of a process take their turn first: what follows must not wait for a process that is gone.
static bool ends(const Step &step) {
  if (step.operation == "exec") {
    turns->done(step);
    const std::string number = std::to_string(step[0]), descriptor = turns->descriptor();
    execl("/proc/self/exe", "hunt", script_file, number.c_str(), descriptor.c_str(), nullptr);
    require(false, "cannot exec");
  }
  if (step.operation == "exit" || step.operation == "kill" || step.operation == "end") turns->done(step);
  if (step.operation == "kill") raise(SIGKILL);
  if (step.operation == "end") end_at_once(0);
  return step.operation == "exit";
}

static void run_thread(unsigned process, unsigned thread) {
  for (const Step &step : script->steps) {
    if (step.process != process || step.thread != thread) continue;
    try {
      turns->await(step, thread == 0 ? look_after_children : [] {});
      if (ends(step)) return;
      execute(step);
      turns->done(step);
    } catch (const std::exception &error) {
      turns->fail();
      fprintf(stderr, "hunt: line %u, %s: %s\n", step.line, step.operation.c_str(), error.what());
      end_at_once(3);
    }
  }
}

static void run_process(unsigned process) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::map<unsigned, std::thread> others;
  for (const Step &step : script->steps)
    if (step.process == process && step.thread != 0 && others.count(step.thread) == 0)
      others.emplace(step.thread, std::thread(run_thread, process, step.thread));
  run_thread(process, 0);
  for (auto &other : others) other.second.join();
}

int main(int argc, char **argv) {
  return guarded([&] {
    require(argc == 2 || argc == 4, "usage: hunt SCRIPT");
    script_file = argv[1];
    script = new Script(script_file);
    turns = new Turns(*script, argc == 4 ? std::atoi(argv[3]) : -1);
    run_process(argc == 4 ? static_cast<unsigned>(std::atoi(argv[2])) : 0);
  });
}
