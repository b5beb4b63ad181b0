// Plays a scenario of `rules/pages/src/scenario` in real processes on the real runtime: scenario FILE.
//
// Prints each step that happens alone, and whether the runtime refused it, but no end of a process. Exits with 4 if
// there are steps that a program in SYCL does not have, and with 3 if a step does not happen as it is written.
//
// The first process only starts the others and waits for their ends. The script fixes the order of all steps. Nothing
// is destroyed unless a step says so, so that what a script leaves open stays open.
#include "ipc_app.hpp"

#include "event_app.hpp"
#include "physical_app.hpp"
#include "scenario_steps.hpp"
#include "ze_app.hpp"

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <poll.h>
#include <sys/resource.h>
#include <sycl/ext/oneapi/backend/level_zero.hpp>
#include <sycl/ext/oneapi/experimental/async_alloc/async_alloc.hpp>
#include <sycl/ext/oneapi/experimental/async_alloc/memory_pool.hpp>

using namespace app;
namespace async = sycl::ext::oneapi::experimental;

// What a process has, by name. A forked child has a copy.
struct Objects {
  std::map<std::string, std::unique_ptr<Gpu>> contexts;
  std::map<std::string, std::byte *> memory;
  std::map<std::string, std::optional<Handle>> handles;
  std::map<std::string, std::unique_ptr<async::memory_pool>> pools;
  std::map<std::string, std::unique_ptr<physical_mem>> physical;
  std::map<std::string, std::unique_ptr<Addresses>> mapped;
  std::map<std::string, std::unique_ptr<sycl::event>> events;
  std::map<std::string, std::unique_ptr<Gate>> gates;
  std::map<std::string, Bytes> copies;
};

static Objects &objects = *new Objects;
static const char *script_file;
static const Script *script;
static Turns *turns;
static bool is_forked = false;
static thread_local bool refused; // Whether the runtime refused the last step of this thread.
// A copy of the last handle data, with the word in front of them, which the adapters trust.
alignas(64) static std::byte copied[4096];

static void run_process(unsigned process);

template <typename T> static T &named(std::map<std::string, T> &all, const std::string &name) {
  static std::mutex lock;
  const std::lock_guard held(lock);
  return all[name];
}
template <typename T> static T &present(std::map<std::string, T> &all, const std::string &name) {
  T &value = named(all, name);
  require(static_cast<bool>(value), "there is no " + name);
  return value;
}

// The context of a step. One that no step makes is made when it is first used.
static Gpu &gpu(const std::string &context) {
  auto &gpu = named(objects.contexts, context);
  if (gpu == nullptr) gpu = std::make_unique<Gpu>();
  return *gpu;
}
static Gpu &gpu(const Step &step) { return gpu(step.word("in")); }

// One call into the runtime, with a result or none.
static void make(const Step &step, bool expected, const std::function<bool()> &call) {
  bool has_result = false;
  try {
    at.at(step.line)([&] { has_result = call(); });
  } catch (const sycl::exception &) {
    if (!step.may_be_refused()) throw;
    refused = true;
    return;
  }
  require(!step.has("fails") || !has_result, "the runtime accepts the call");
  require(step.may_be_refused() || has_result == expected, expected ? "there is no result" : "there is a result");
}
static void call(const Step &step, const std::function<void()> &call) {
  make(step, true, [&] { return call(), true; });
}

// A name that is named again as a result has the same address again.
static bool keep(const std::string &name, void *address) {
  std::byte *&memory = named(objects.memory, name);
  require(memory == nullptr || address == nullptr || memory == address,
          name + " has another address than before: give it another name, in a loop with $");
  if (address != nullptr) memory = static_cast<std::byte *>(address);
  return address != nullptr;
}
static std::byte *address(const Step &step) { return named(objects.memory, step.object) + step.number("+"); }

// The bytes that are written and compared: 64 unless the step says otherwise.
static Bytes probe(const Step &step) { return pattern(step.number("sized", 64), step.number("seed")); }

static std::byte *data_of(const Handle &handle) {
  std::byte *data;
  std::memcpy(&data, &handle, sizeof data); // The pointer is its first member.
  return data;
}

static bool keep(const Step &step, const Handle &handle) {
  const Bytes data = handle.data();
  if (data.empty()) return false;
  named(objects.handles, step.word("->")) = handle;
  std::memcpy(copied + 64 - sizeof(size_t), data_of(handle) - sizeof(size_t), sizeof(size_t) + data.size());
  Turns::Slot &slot = *turns->slot(step.word("->"));
  require(data.size() <= sizeof slot.data, "the handle data are too long");
  std::memcpy(slot.data, data.data(), slot.size = data.size());
  return true;
}

// The handle to put. One that this process did not get is a copy at another address.
static Handle handle(const Step &step) {
  if (const auto &own = named(objects.handles, step.object)) return *own;
  for (auto &[name, any] : objects.handles)
    if (any) return with_data_at(*any, step.object == "null" ? nullptr : copied + 64);
  throw std::runtime_error("this process has no handle");
}

// The bytes to open. Those of a name that nobody got are as many as those of the first one, but wrong. Zeros are as many as the bytes of
// memory.
static Bytes received(const Step &step) {
  if (step.object == "zeros") return Bytes(120);
  const Turns::Slot *slot = turns->slot(step.object);
  const bool is_known = slot != nullptr;
  for (const Step &get : script->steps)
    if (slot == nullptr && get.verb == "get" + step.verb.substr(4) && get.has("ze") == step.has("ze"))
      slot = turns->slot(get.word("->"));
  require(slot != nullptr, "no bytes are known");
  Bytes bytes = is_known ? Bytes(slot->data, slot->data + slot->size) : pattern(slot->size, 1);
  if (step.has("sized")) bytes.resize(step.number("sized"));
  if (step.has("flipped")) bytes.at(step.number("flipped")) ^= std::byte(1);
  return bytes;
}

static void *allocate(const Step &step) {
  Gpu &where = gpu(step);
  const size_t size = step.number("sized");
  if (step.word("as") == "host") return sycl::malloc_host(size, where.context);
  if (step.word("as") == "shared") return sycl::malloc_shared(size, where.device, where.context);
  if (!step.has("queued")) return where.allocate(size);
  void *memory = step.has("from")
                     ? async::async_malloc_from_pool(where.queue, size, *present(objects.pools, step.word("from")))
                     : async::async_malloc(where.queue, sycl::usm::alloc::device, size);
  where.queue.wait();
  return memory;
}

template <typename T, typename Get> static void get_of(const Step &step, std::map<std::string, T> &all, Get get) {
  auto &object = *present(all, step.object);
  make(step, step.has("->"), [&] { return keep(step, get(object)); });
}
static void put_by(const Step &step, void (*put)(Handle &, const sycl::context &)) {
  Handle got = handle(step);
  call(step, [&] { put(got, gpu(step).context); });
}
static void reserve(const Step &step, const std::string &name, size_t size) {
  auto &mapped = named(objects.mapped, name);
  mapped = std::make_unique<Addresses>(gpu(step), size);
  named(objects.memory, name) = mapped->pointer();
}

// Level Zero, which the program calls itself, with the context and the device of SYCL.
class Raw : public Ze {
public:
  explicit Raw(const Step &step) : Ze(native(gpu(step).context)) { device = native(gpu(step).device); }
  static void accepted(uint32_t result) {
    if (result != 0) throw sycl::exception(sycl::make_error_code(sycl::errc::runtime), "Level Zero refuses the call");
  }

private:
  template <typename T> static ze_handle_t native(const T &object) {
    return reinterpret_cast<ze_handle_t>(sycl::get_native<sycl::backend::ext_oneapi_level_zero>(object));
  }
};

static ze_ipc_mem_handle_t raw_handle(const Step &step) {
  const Bytes bytes = received(step);
  ze_ipc_mem_handle_t handle;
  require(bytes.size() == sizeof handle, "the bytes are no handle of Level Zero");
  std::memcpy(&handle, bytes.data(), sizeof handle);
  return handle;
}

// A descriptor of this process for the one that a handle names in the process that got it.
static int descriptor_of(const Step &step, const ze_ipc_mem_handle_t &handle) {
  int number;
  std::memcpy(&number, &handle, sizeof number);
  for (const Step &get : script->steps) {
    if (get.verb != "get" || get.word("->") != step.object) continue;
    const int process = static_cast<int>(syscall(SYS_pidfd_open, turns->pid(get.process).load(), 0));
    const int own = static_cast<int>(syscall(SYS_pidfd_getfd, process, number, 0));
    require(own >= 0, "the descriptor cannot be got");
    ::close(process);
    return own;
  }
  throw std::runtime_error("nobody has got the handle");
}

static void get_raw(const Step &step) {
  const Raw raw(step);
  make(step, step.has("->"), [&] {
    ze_ipc_mem_handle_t handle;
    Raw::accepted(raw.zeMemGetIpcHandle(raw.context, address(step), &handle));
    Turns::Slot &slot = *turns->slot(step.word("->"));
    std::memcpy(slot.data, &handle, slot.size = sizeof handle);
    return true;
  });
}

static void open_raw(const Step &step) {
  const Raw raw(step);
  ze_ipc_mem_handle_t handle = raw_handle(step);
  const int own = step.has("replaced") ? descriptor_of(step, handle) : -1;
  if (own >= 0) std::memcpy(&handle, &own, sizeof own);
  void *memory = nullptr;
  make(step, step.has("->"), [&] {
    Raw::accepted(raw.try_open(handle, &memory));
    return keep(step.word("->"), memory);
  });
  if (own >= 0) ::close(own);
}

// Calls that the trace has no room for. It has grown by 2 MiB at once, and a call may take 32 bytes.
static void lose_calls() {
  Gpu gpu;
  sycl::free(sycl::malloc_host(64, gpu.context), gpu.context);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none = {0, RLIM_INFINITY};
  require(setrlimit(RLIMIT_FSIZE, &none) == 0, "no limit");
  for (int call = 0; call < 50000; ++call) sycl::free(sycl::malloc_host(64, gpu.context), gpu.context);
}

using Operation = std::function<void(const Step &)>;

static const std::map<std::string, Operation> operations = {
    {"context", [](auto &step) { gpu(step.object); }},
    {"release", [](auto &step) { call(step, [&] { present(objects.contexts, step.object).reset(); }); }},
    {"pool",
     [](auto &step) {
       auto &pool = named(objects.pools, step.object);
       call(step, [&] { pool.reset(new async::memory_pool(gpu(step).queue, sycl::usm::alloc::device)); });
     }},
    {"release-pool", [](auto &step) { call(step, [&] { present(objects.pools, step.object).reset(); }); }},
    {"alloc", [](auto &step) { make(step, true, [&] { return keep(step.object, allocate(step)); }); }},
    {"free",
     [](auto &step) {
       sycl::queue &queue = gpu(step).queue;
       std::byte *memory = address(step);
       call(step, [&] { step.has("queued") ? async::async_free(queue, memory) : gpu(step).free(memory); });
       if (step.has("queued")) queue.wait();
     }},
    {"write",
     [](auto &step) {
       static thread_local auto &all = *new std::list<Bytes>; // The device may read them later.
       const Bytes &data = all.emplace_back(probe(step));
       call(step, [&] {
         sycl::event written = gpu(step).queue.memcpy(address(step), data.data(), data.size());
         if (!step.has("queued")) written.wait();
       });
     }},
    // A copy that the program does not wait for, and its event.
    {"read",
     [](auto &step) {
       Bytes &data = named(objects.copies, step.word("->"));
       data.resize(step.number("sized"));
       sycl::queue &queue = gpu(step).queue;
       auto &event = named(objects.events, step.word("->"));
       call(step, [&] { event.reset(new sycl::event(queue.memcpy(data.data(), address(step), data.size()))); });
     }},
    {"compare",
     [](auto &step) {
       Bytes expected = probe(step), found = named(objects.copies, step.object);
       if (found.empty()) call(step, [&] { found = gpu(step).read(address(step), expected.size()); });
       require(found == expected, "read other bytes than were written");
     }},
    {"copy",
     [](auto &step) {
       static const Bytes &source = *new Bytes(1 << 20);
       call(step, [&] { gpu(step).queue.memcpy(address(step), source.data(), step.number("sized")); });
     }},
    {"host-waits",
     [](auto &) {
       for (auto &[name, gpu] : objects.contexts)
         if (gpu) gpu->queue.wait();
     }},
    {"get",
     [](auto &step) {
       if (step.has("ze")) return get_raw(step);
       make(step, step.has("->"), [&] { return keep(step, ipc::get(address(step), gpu(step).context)); });
     }},
    {"put",
     [](auto &step) {
       if (step.has("ze")) return call(step, [raw = Raw(step), &step] { Raw::accepted(raw.put(raw_handle(step))); });
       call(step, [&] { put(handle(step), gpu(step)); });
     }},
    {"open",
     [](auto &step) {
       if (step.has("ze")) return open_raw(step);
       const Bytes bytes = received(step);
       make(step, step.has("->"), [&] {
         return keep(step.word("->"), ipc::open(bytes, gpu(step).context, gpu(step).device));
       });
     }},
    {"close",
     [](auto &step) {
       if (step.has("ze"))
         return call(step, [raw = Raw(step), &step] { Raw::accepted(raw.zeMemCloseIpcHandle(raw.context, address(step))); });
       call(step, [&] { close(address(step), gpu(step)); });
     }},

    {"physical",
     [](auto &step) {
       Gpu &where = gpu(step);
       const size_t granule = granularity(where), size = std::max<size_t>(step.number("sized"), 1);
       auto &memory = named(objects.physical, step.object);
       call(step, [&] {
         memory.reset(new physical_mem(make_shared_memory(where, (size + granule - 1) / granule * granule)));
       });
     }},
    {"open-physical",
     [](auto &step) {
       const Bytes bytes = received(step);
       auto &memory = named(objects.physical, step.word("->"));
       call(step, [&] {
         memory.reset(new physical_mem(ipc_physical::open(bytes, gpu(step).context, gpu(step).device)));
       });
       require(memory == nullptr || memory->ipc_enabled(), "opened memory is not shared memory");
     }},
    {"release-physical", [](auto &step) { call(step, [&] { present(objects.physical, step.object).reset(); }); }},
    {"close-physical", [](auto &step) { call(step, [&] { present(objects.physical, step.object).reset(); }); }},
    {"get-physical", [](auto &step) { get_of(step, objects.physical, [](auto &it) { return ipc_physical::get(it); }); }},
    {"put-physical", [](auto &step) { put_by(step, ipc_physical::put); }},
    {"reserve", [](auto &step) { reserve(step, step.object, step.number("sized")); }},
    {"unreserve", [](auto &step) { present(objects.mapped, step.object).reset(); }},
    // At addresses of its own, or in those that were reserved: a part from an offset on, or all.
    {"map",
     [](auto &step) {
       physical_mem &memory = *present(objects.physical, step.object);
       const size_t length = step.number("sized", memory.size());
       auto &mapped = named(objects.mapped, step.word("->"));
       if (mapped == nullptr) reserve(step, step.word("->"), length);
       call(step, [&] { mapped->map(memory, step.number("+"), length, step.number("from")); });
     }},
    {"unmap",
     [](auto &step) {
       auto &mapped = present(objects.mapped, step.object);
       call(step, [&] { mapped->unmap(step.number("+"), step.number("sized", mapped->length())); });
       if (!step.has("sized")) mapped.reset();
     }},
    {"event",
     [](auto &step) {
       auto &event = named(objects.events, step.object);
       call(step, [&] { event.reset(new sycl::event(make_shared_event(gpu(step)))); });
     }},
    {"open-event",
     [](auto &step) {
       const Bytes bytes = received(step);
       auto &event = named(objects.events, step.word("->"));
       call(step, [&] { event.reset(new sycl::event(ipc_event::open(bytes, gpu(step).context))); });
     }},
    {"release-event", [](auto &step) { call(step, [&] { present(objects.events, step.object).reset(); }); }},
    {"get-event", [](auto &step) { get_of(step, objects.events, [](auto &it) { return ipc_event::get(it); }); }},
    {"put-event", [](auto &step) { put_by(step, ipc_event::put); }},
    {"signal",
     [](auto &step) {
       sycl::queue &queue = gpu(step).queue;
       call(step, [&] { experimental::enqueue_signal_event(queue, *present(objects.events, step.object)); });
       if (!step.has("queued")) queue.wait();
     }},
    {"wait",
     [](auto &step) {
       sycl::event &event = *present(objects.events, step.object);
       sycl::queue &queue = gpu(step).queue;
       call(step, [&] { step.has("queued") ? experimental::enqueue_wait_event(queue, event) : event.wait(); });
     }},
    {"pending", [](auto &step) { require(!is_complete(*present(objects.events, step.object)), "it is complete"); }},
    {"complete", [](auto &step) { require(is_complete(*present(objects.events, step.object)), "it is pending"); }},
    // What is in the queue behind it waits until it is opened.
    {"gate", [](auto &step) { named(objects.gates, step.object) = std::make_unique<Gate>(gpu(step)); }},
    {"open-gate",
     [](auto &step) {
       present(objects.gates, step.object)->open();
       gpu(step).queue.wait();
       named(objects.gates, step.object).reset();
     }},
    {"fork",
     [](auto &step) {
       signal(SIGCHLD, SIG_IGN); // Nobody waits for the child.
       const pid_t pid = fork();
       require(pid >= 0, "cannot fork");
       is_forked = is_forked || pid == 0;
       if (pid == 0) run_process(step.other);
       turns->pid(step.other) = pid;
     }},
};

// Null for the ends of processes.
static const Operation *operation(const Step &step) {
  if (const auto found = operations.find(step.verb); found != operations.end()) return &found->second;
  const bool is_end = step.verb == "exit" || step.verb == "exec" || step.verb == "killed" || step.verb == "incomplete";
  if (!is_end || (step.verb == "exec" && step.object.empty())) throw NoStep(step.verb);
  return nullptr;
}

// Ends the process if the step says so.
static bool ends(const Step &step) {
  if (step.verb == "exec") {
    turns->pid(step.other) = getpid();
    turns->done(step);
    const std::string number = std::to_string(step.other), descriptor = turns->descriptor();
    execl("/proc/self/exe", "scenario", script_file, number.c_str(), descriptor.c_str(), nullptr);
    require(false, "cannot exec");
  }
  if (step.verb == "killed") raise(SIGKILL);
  if (step.verb == "incomplete") return lose_calls(), true;
  // A forked child must not clean up the runtime.
  if (step.verb == "exit" && is_forked) _exit(0);
  return step.verb == "exit";
}

static void run_thread(unsigned process, unsigned thread) {
  for (const Step &step : script->steps) {
    if (step.process != process || step.thread != thread) continue;
    try {
      turns->await(step);
      if (ends(step)) return;
      refused = false;
      (*operation(step))(step);
      if (script->group_sizes[step.group] == 1) print(step.text + (refused ? ": refused" : ""));
      turns->done(step);
    } catch (const std::exception &error) {
      turns->fail();
      fprintf(stderr, "scenario: line %u, %s: %s\n", step.line, step.verb.c_str(), error.what());
      _exit(3);
    }
  }
}

static void run_process(unsigned process) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::map<unsigned, std::thread> others;
  for (const Step &step : script->steps)
    if (step.process == process && step.thread != 1 && others.count(step.thread) == 0)
      others.emplace(step.thread, std::thread(run_thread, process, step.thread));
  run_thread(process, 1);
  for (auto &other : others) other.second.join();
}

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

// A process that failed takes its turns with it: then the scenario has failed.
static void look_after_children() {
  siginfo_t ended = {};
  if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
  const bool killed_itself = ended.si_code == CLD_KILLED && ended.si_status == SIGKILL;
  require(killed_itself || (ended.si_code == CLD_EXITED && ended.si_status == 0),
          "a process ended with " + std::to_string(ended.si_status));
}

static void await_end(pid_t pid) {
  // A forked child is not ours. Its parent does not wait for it, so it is gone at once.
  pollfd process = {static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
  require(process.fd < 0 || poll(&process, 1, 60'000) == 1, "a process does not end");
  close(process.fd);
  look_after_children();
  waitpid(pid, nullptr, 0);
}

static void supervise() {
  for (const Step &step : script->steps) {
    const bool is_end = step.verb == "exit" || step.verb == "killed" || step.verb == "incomplete";
    if (step.begins_process || is_end) turns->await(step, look_after_children);
    if (step.begins_process) turns->pid(step.process) = start(step.process);
    if (is_end) await_end(turns->pid(step.process));
    if (is_end) turns->done(step);
  }
}

int main(int argc, char **argv) {
  return guarded([&] {
    require(argc == 2 || argc == 4, "usage: scenario FILE");
    script_file = argv[1];
    try {
      script = new Script(script_file);
      for (const Step &step : script->steps) operation(step);
    } catch (const NoStep &word) {
      fprintf(stderr, "scenario: a program in SYCL has no '%s'\n", word.what());
      _exit(4);
    }
    turns = new Turns(*script, argc == 4 ? std::atoi(argv[3]) : -1);
    if (argc == 4) return run_process(static_cast<unsigned>(std::atoi(argv[2])));
    try {
      supervise();
    } catch (...) {
      turns->fail();
      throw;
    }
  });
}
