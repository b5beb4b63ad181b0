// Ends processes violently, one after the other, while their threads share memory with a process that stays. Afterwards it
// prints how many calls each of them had begun and how many had returned, a line of JSON for each.
//
//   violent_ends COUNT SEED [WAY]     the ends of the seeds SEED to SEED + COUNT - 1
//   violent_ends list                 the names of the ways to end
#include "violent_victim.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>

using namespace app;
namespace fs = std::filesystem;

namespace {

// What the main thread of a victim does to its process while the others call.
using Act = void (*)(const std::vector<pthread_t> &threads, const std::vector<void *> &memories);
using Threads = const std::vector<pthread_t> &;
using Memories = const std::vector<void *> &;

void fault(Threads, Memories) { *static_cast<volatile int *>(nullptr) = 1; }

template <pid_t (*make_child)()> void call_in_child(Threads, Memories memories) {
  if (make_child() == 0) call_as_child(memories[0]);
}

void execute(Threads, Memories) {
  char self[] = "/proc/self/exe", role[] = "executed", seed[] = "1";
  char *const arguments[] = {self, role, seed, nullptr};
  execv(self, arguments);
  abort();
}

void interrupt_without_harm(Threads, Memories) {
  std::signal(SIGALRM, [](int) {});
  const itimerval timer = {{0, 200}, {0, 200}};
  require(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "no timer");
}

void limit_files(Threads, Memories) {
  // By default the signal for a file that would be too large ends the process.
  if (victim->random.below(2) == 0) std::signal(SIGXFSZ, SIG_IGN);
  lower_for_a_while(RLIMIT_FSIZE, victim->random.below(8 << 20));
}
void limit_descriptors(Threads, Memories) { lower_for_a_while(RLIMIT_NOFILE, victim->random.below(8)); }

// What the program writes to the standard streams that it has closed must not land in the trace. It may land in what the runtime opens.
void write_to_closed_streams(Threads, Memories) {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  volatile int written = 0;
  while (!victim->page.stop && std::chrono::steady_clock::now() < until)
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      written = written + (write(stream, "written", 7) >= 0);
}

// A handler that has interrupted malloc(3) ends the process, while other threads make their first calls.
void exit_inside_malloc(Threads, Memories memories) {
  static Library c_library{"libc.so"};
  static void *memory = memories[0];
  c_library.find();
  handle(SIGALRM, [](int, siginfo_t *, void *context) {
    if (c_library.is_interrupted(context)) _exit(0);
  });
  constexpr int callers = 10;
  for (int i = 0; i < callers; i++) {
    pthread_t thread;
    const auto calls = [](void *) -> void * {
      call_until_stopped(1, memory);
      return nullptr;
    };
    require(pthread_create(&thread, nullptr, calls, nullptr) == 0, "no thread");
  }
  const itimerval timer = {{0, 100}, {0, static_cast<suseconds_t>(1 + victim->random.below(3000))}};
  require(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "no timer");
  std::vector<void *> all(64);
  for (uint64_t i = 0;; i++) {
    std::free(all[i % all.size()]);
    all[i % all.size()] = std::malloc(2000 + victim->random.below(30000));
  }
}

enum class End {
  by_signal,    // The controller sends `signal` to a victim that only calls.
  early,        // It is killed at any time from its start on.
  stopped,      // It is stopped, and then killed.
  of_its_own,   // The act ends it.
  later,        // It goes on after the act; then it is killed, or ends in order.
};

struct Way {
  const char *name;
  End end;
  int signal;
  // Only one thread calls.
  bool alone;
  Act act;
};

// The ways in which a handler of the only thread's signals does something.
template <Handler handler, bool once> void by_handler(Threads threads, Memories) { interrupt(threads[0], handler, once); }

const Way ways[] = {
    {"kill", End::by_signal, SIGKILL, false, nullptr},
    {"kill_early", End::early, SIGKILL, false, nullptr},
    {"terminate", End::by_signal, SIGTERM, false, nullptr},
    {"stop", End::stopped, SIGKILL, false, nullptr},
    {"abort", End::of_its_own, 0, false, [](Threads, Memories) { abort(); }},
    {"fault", End::of_its_own, 0, false, fault},
    {"exit_at_once", End::of_its_own, 0, false, [](Threads, Memories) { _exit(0); }},
    {"exit", End::of_its_own, 0, false, [](Threads, Memories) { exit(0); }},
    {"handler_exits", End::of_its_own, 0, true, by_handler<handler_ends<exit>, false>},
    {"handler_exits_at_once", End::of_its_own, 0, true, by_handler<handler_ends<_exit>, false>},
    {"handler_exits_inside_malloc", End::of_its_own, 0, false, exit_inside_malloc},
    {"handler_calls", End::later, SIGKILL, true, by_handler<handler_calls, true>},
    {"handler_forks", End::later, SIGKILL, true, by_handler<handler_forks, true>},
    {"fork", End::later, SIGKILL, false, call_in_child<fork>},
    {"fork_unnoticed", End::later, SIGKILL, false, call_in_child<_Fork>},
    {"clone", End::later, SIGKILL, false, call_in_child<bare_clone>},
    {"execute", End::later, SIGKILL, false, execute},
    {"cancel", End::later, SIGKILL, false, [](Threads threads, Memories) { pthread_cancel(threads[0]); }},
    {"interrupt", End::later, SIGKILL, false, interrupt_without_harm},
    {"limit_files", End::later, SIGKILL, false, limit_files},
    {"limit_descriptors", End::later, SIGKILL, false, limit_descriptors},
    {"close_streams", End::later, SIGKILL, false, write_to_closed_streams},
    {"full_disk", End::later, SIGKILL, false, [](Threads, Memories) {}},
    {"out_of_reach", End::later, SIGKILL, false, [](Threads, Memories) {}},
};

const Way &way_named(const std::string &name) {
  for (const Way &way : ways)
    if (way.name == name) return way;
  throw std::runtime_error("there is no way " + name);
}

// --- A victim --------------------------------------------------------------------------------------------------

struct Start {
  uint64_t seed;
  void *memory;
};

void *thread_calls(void *argument) {
  const auto *start = static_cast<Start *>(argument);
  call_until_stopped(start->seed, start->memory);
  return nullptr;
}

// A victim, or the program that it executes.
Process &become_victim(int which, uint64_t seed) {
  auto &page = *Shared<Page>::map(page_descriptor);
  Process &process = page.processes[which];
  process.pid = static_cast<uint32_t>(getpid());
  slot = &process.add_slot();
  victim = new Victim(page, *Shared<Board>::map(board_descriptor), seed);
  return process;
}

void be_victim(const Way &way, uint64_t seed) {
  Process &process = become_victim(itself, seed);
  std::vector<Start> starts(way.alone ? 1 : 1 + victim->random.below(4));
  std::vector<void *> memories;
  for (Start &start : starts) {
    start = {victim->random.next(), victim->caller.allocate(1 << 20)};
    require(start.memory != nullptr, "no memory");
    memories.push_back(start.memory);
  }
  victim->handler_memory = victim->caller.allocate(1 << 20);
  victim->handler_slot = &process.add_slot(true);
  std::vector<pthread_t> threads(starts.size());
  for (size_t i = 0; i < starts.size(); i++)
    require(pthread_create(&threads[i], nullptr, thread_calls, &starts[i]) == 0, "no thread");
  victim->page.ready = 1;
  if (way.act != nullptr) {
    pause_at_random(victim->random);
    way.act(threads, memories);
  }
  victim->page.done = 1;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  for (void *memory : memories) victim->caller.free(memory);
  victim->caller.free(victim->handler_memory);
  delete victim;
}

void be_executed() {
  become_victim(executed, 1);
  void *memory = victim->caller.allocate(1 << 20);
  victim->page.done = 1;
  for (int left = 20000; left > 0 && !victim->page.stop; left--) victim->cycle(victim->random, memory);
  victim->caller.free(memory);
  delete victim;
}

// --- The process that stays ------------------------------------------------------------------------------------

void be_exporter() {
  auto &board = *Shared<Board>::map(board_descriptor);
  Ur ur;
  Caller caller{ur};
  Process uncounted = {};
  slot = &uncounted.add_slot();
  std::vector<void *> memories;
  std::vector<Data> all;
  for (Offer &offer : board.offers) {
    memories.push_back(caller.allocate(8 << 20));
    all.push_back(caller.get(memories.back()));
    offer.set(all.back());
  }
  while (!board.stop) pause_for(1000);
  for (const Data &data : all) caller.put(data);
  for (void *memory : memories) caller.free(memory);
}

// --- The process that ends the others --------------------------------------------------------------------------

constexpr auto patience = std::chrono::seconds(60);

// Whether a condition came true in time.
template <typename Condition> bool wait_until(Condition holds) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    pause_for(100);
  }
  return true;
}

pid_t start(const std::vector<std::string> &words, const Shared<Board> &board, const Shared<Page> &page) {
  return start_with(words, {{board.descriptor, board_descriptor}, {page.descriptor, page_descriptor}});
}

void write_to(const char *file, const std::string &text) {
  const int descriptor = ::open(file, O_WRONLY);
  require(descriptor >= 0 && write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()), file);
  ::close(descriptor);
}

// Goes to a file system of its own, with so many bytes for the traces, which has room again later, or which another one hides for a
// while. Its files are copied to where traces belong when the victim has ended.
[[noreturn]] void be_disk(bool is_full, const std::vector<std::string> &arguments, const Shared<Board> &board, const Shared<Page> &page,
                          Random random) {
  const uid_t user = getuid();
  if (unshare(CLONE_NEWNS) != 0) {
    require(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "neither a mount namespace nor a user namespace is allowed here");
    write_to("/proc/self/setgroups", "deny");
    write_to("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  }
  const fs::path traces = getenv("URSCOPE_DIR"), folder = traces.parent_path() / ("disk-" + std::to_string(getpid()));
  fs::create_directory(folder);
  require(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "cannot make mounts private");
  const std::string size = is_full ? "size=" + std::to_string((64 << 10) + random.below(4 << 20)) : "size=256m";
  require(mount("none", folder.c_str(), "tmpfs", 0, size.c_str()) == 0, "cannot mount a file system");
  setenv("URSCOPE_DIR", folder.c_str(), 1);
  Process &process = page.value->processes[itself];
  process.limited = 1;
  const pid_t pid = start(arguments, board, page);
  pause_for(10000 + static_cast<double>(random.below(40000)));
  const bool is_lifted = random.below(4) != 0;
  if (!is_full) {
    // What could be written to the other one would go with it.
    require(mount("none", folder.c_str(), "tmpfs", MS_RDONLY, nullptr) == 0, "cannot hide a file system");
    pause_for(static_cast<double>(random.below(40000)));
  }
  const auto uncover = [&] { require(umount2(folder.c_str(), MNT_DETACH) == 0, "cannot uncover a file system"); };
  if (is_lifted) {
    if (!is_full) uncover();
    else require(mount("none", folder.c_str(), "tmpfs", MS_REMOUNT, "size=256m") == 0, "cannot enlarge a file system");
    process.lifted = 1;
  }
  int status = 0;
  require(waitpid(pid, &status, 0) == pid, "cannot wait for the victim");
  if (!is_full && !is_lifted) uncover();
  for (const auto &file : fs::directory_iterator(folder)) fs::copy_file(file, traces / file.path().filename());
  _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

// Copies the traces of a process as they are now.
void copy_traces(uint32_t pid) {
  const fs::path traces = getenv("URSCOPE_DIR"), copies = traces.parent_path() / "of-stopped";
  fs::create_directory(copies);
  const std::string part = "-" + std::to_string(pid) + "-";
  for (const auto &file : fs::directory_iterator(traces))
    if (file.path().filename().string().find(part) != std::string::npos)
      fs::copy_file(file, copies / file.path().filename());
}

struct Victims {
  uint64_t seed;
  const Way *way;
  Shared<Page> page;
  bool hung;
  int status;
};

// Waits for the end of a child; whether it came in time. Afterwards it has ended.
bool reap(pid_t pid, int &status) {
  if (wait_until([&] { return waitpid(pid, &status, WNOHANG) == pid; })) return true;
  kill(pid, SIGKILL);
  require(waitpid(pid, &status, 0) == pid, "cannot wait for a victim");
  return false;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit " + std::to_string(WEXITSTATUS(status));
}

Victims end_one(uint64_t seed, const std::string &name, const Shared<Board> &board) {
  Random random{seed * 0x9e3779b97f4a7c15u};
  Victims victims = {seed, &ways[random.below(std::size(ways))], Shared<Page>::make(), false, 0};
  if (!name.empty()) victims.way = &way_named(name);
  const Way &way = *victims.way;
  const bool in_order = random.below(3) == 0, child_first = random.below(2) == 0;
  Page &page = *victims.page.value;
  Process &process = page.processes[itself];
  const std::vector<std::string> arguments = {"victim", way.name, std::to_string(random.next())};
  const bool fills_disk = way.name == std::string("full_disk");
  const bool has_disk = fills_disk || way.name == std::string("out_of_reach");
  const pid_t started = has_disk ? fork() : start(arguments, board, victims.page);
  require(started >= 0, "cannot fork");
  if (started == 0) _exit(guarded([&] { be_disk(fills_disk, arguments, board, victims.page, random); }));
  const auto signal = [&](int number) { kill(has_disk ? static_cast<pid_t>(process.pid) : started, number); };

  const auto came = [&](int what) {
    siginfo_t news = {};
    return waitid(P_PID, static_cast<id_t>(started), &news, what | WNOHANG | WNOWAIT) == 0 && news.si_pid == started;
  };
  const auto ended = [&] { return came(WEXITED); };
  if (way.end == End::early) {
    pause_for(static_cast<double>(random.below(30000)));
    signal(SIGKILL);
  } else {
    victims.hung = !wait_until([&] { return page.ready || ended(); });
    if (way.end == End::later) victims.hung |= !wait_until([&] { return page.done || ended(); });
    if (has_disk) pause_for(static_cast<double>(random.below(40000)));
    if (way.end != End::of_its_own) pause_at_random(random);
  }
  if (victims.hung) signal(SIGKILL);
  switch (way.end) {
  case End::early:
  case End::of_its_own: break;
  case End::by_signal: signal(way.signal); break;
  case End::stopped:
    signal(SIGSTOP);
    // A copy that is made while a thread still writes may lack the beginning of a record and have its end.
    if (wait_until([&] { return came(WSTOPPED) || ended(); })) copy_traces(process.pid);
    else victims.hung = true;
    if (in_order) signal(SIGCONT), pause_at_random(random);
    signal(SIGKILL);
    break;
  case End::later:
    const auto child = static_cast<pid_t>(page.processes[forked].pid);
    if (child_first && child != 0) kill(child, SIGKILL), pause_at_random(random);
    if (in_order) page.stop = 1;
    else signal(SIGKILL);
    break;
  }
  victims.hung |= !reap(started, victims.status);
  // Before it is asked for a child: one that is not known yet then sees this before its first call, in which it could wait for a lock that
  // another thread of its parent held.
  page.stop = 1;
  const auto child = static_cast<pid_t>(page.processes[forked].pid);
  if (child != 0) kill(child, SIGKILL);
  return victims;
}

int end_many(uint64_t count, uint64_t seed, const std::string &way) {
  return guarded([&] {
    require(getenv("URSCOPE_DIR") != nullptr, "the program is not traced");
    require(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "cannot adopt children of victims");
    const auto board = Shared<Board>::make();
    const pid_t exporter = start_with({"exporter"}, {{board.descriptor, board_descriptor}});
    const auto &offers = board.value->offers;
    require(wait_until([&] { return std::all_of(offers, std::end(offers), [](const Offer &it) { return it.size > 0; }); }),
            "nothing is exported");
    // Victims and what comes from them have its end for writing, the exporter has not.
    int alive[2];
    require(pipe(alive) == 0, "no pipe");
    std::vector<Victims> all;
    for (uint64_t index = 0; index < count; index++) all.push_back(end_one(seed + index, way, board));
    ::close(alive[1]);
    pollfd gone = {alive[0], POLLIN, 0};
    // A child that was forked late may still open what is exported.
    require(poll(&gone, 1, std::chrono::milliseconds(patience).count()) == 1 && gone.revents == POLLHUP, "children do not end");
    // The children of victims are ours now. Only when they are gone may the memory that they had open be freed.
    int status = 0;
    std::map<pid_t, int> statuses;
    const auto is_gone = [&](const Victims &victims) {
      const auto child = static_cast<pid_t>(victims.page.value->processes[forked].pid);
      return child == 0 || statuses.count(child) > 0 || (kill(child, 0) == -1 && errno == ESRCH);
    };
    require(wait_until([&] {
              for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) statuses[ended] = status;
              return std::all_of(all.begin(), all.end(), is_gone);
            }),
            "children do not end");
    board.value->stop = 1;
    require(reap(exporter, status) && status == 0, "the exporter does not end in order");
    for (const Victims &victims : all)
      for (int which : {itself, forked, executed}) {
        const Process &process = victims.page.value->processes[which];
        const char *names[] = {"itself", "forked", "executed"};
        if (process.pid == 0 && which != itself) continue;
        const auto pid = static_cast<pid_t>(process.pid);
        status = which == forked && statuses.count(pid) > 0 ? statuses[pid] : victims.status;
        print_counts("\"seed\":" + std::to_string(victims.seed) + ",\"way\":\"" + victims.way->name + "\",\"process\":\"" +
                         names[which] + "\",\"ended\":\"" + how_it_ended(status) + "\",\"hung\":" + (victims.hung ? "true" : "false"),
                     process);
      }
  });
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto argument = [&](size_t index) { return index < arguments.size() ? arguments[index] : ""; };
  int code = 2;
  if (argument(0) == "list")
    for (const Way &way : ways) print(way.name), code = 0;
  else if (argument(0) == "victim") code = guarded([&] { be_victim(way_named(argument(1)), std::stoull(argument(2))); });
  else if (argument(0) == "executed") code = guarded([] { be_executed(); });
  else if (argument(0) == "exporter") code = guarded([] { be_exporter(); });
  else if (argc >= 3) code = end_many(std::stoull(argument(0)), std::stoull(argument(1)), argument(2));
  return code;
}
