// Processes in odd circumstances, which share memory as any other. The argument chooses one; "list" prints their names.
#include "interruptions.hpp"
#include "rights.hpp"
#include "ur_app.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/resource.h>
#include <thread>

using namespace app;

namespace {

// Memory of a process, whose handle is got and put again and again.
struct Work {
  Ur ur;
  void *memory = ur.allocate(1 << 20);

  ~Work() { ur.free(memory); }
  void get_and_put(int times = 1) const {
    for (; times > 0; times--) ur.put(ur.get(memory));
  }
};

// More calls than the first size of a trace has room for.
constexpr int many = 8000;

// A filter refuses what the trace takes to get its name.
ALONE(without_rename) {
  filter(SYS_rename, SECCOMP_RET_ERRNO | EPERM);
  Work{}.get_and_put(many);
}

// A filter refuses what the trace does not need.
ALONE(without_fchmod) {
  filter(SYS_fchmod, SECCOMP_RET_ERRNO | EPERM);
  Work{}.get_and_put(many);
}

ALONE(in_reach) { Work{}.get_and_put(many); }

// Stopped and continued twice, as by a debugger, while so many threads make calls that one is in the middle of one.
ALONE(stopped_in_a_call) {
  const Ur ur;
  const std::string me = std::to_string(getpid());
  const std::string stops = "for i in 1 2; do sleep 0.1; kill -STOP " + me + "; sleep 0.6; kill -CONT " + me + "; done";
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      void *memory = ur.allocate(1 << 20);
      for (int cycles = 0; cycles < 100 || !is_over; ++cycles) ur.put(ur.get(memory));
      ur.free(memory);
    });
  }
  require(std::system(stops.c_str()) == 0, "no shell");
  is_over = true;
  for (std::thread &thread : threads) thread.join();
  print("stopped twice");
}

void change_root() {
  const auto empty = std::filesystem::temp_directory_path() / ("urscope-empty-" + std::to_string(getpid()));
  std::filesystem::create_directory(empty);
  require(chroot(empty.c_str()) == 0 && chdir("/") == 0, "cannot change the root");
}

ALONE(out_of_reach) {
  const Work work;
  work.get_and_put(10);
  change_root();
  work.get_and_put(many);
}

ALONE(out_of_reach_and_killed) {
  const Work work;
  work.get_and_put(10);
  change_root();
  work.get_and_put(many);
  raise(SIGKILL);
}

ALONE(without_address_space) {
  const Work work;
  work.get_and_put(10);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit little = {static_cast<rlim_t>(pages) * 4096 + (64 << 10), RLIM_INFINITY};
  require(setrlimit(RLIMIT_AS, &little) == 0, "no limit");
  work.get_and_put(many);
}

// Standard streams that are closed, and to which two threads write while others call.
ALONE(closed_streams) {
  const Work work;
  const int said = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  std::atomic<bool> stop{false};
  std::atomic<long> written{0};
  std::vector<std::thread> writers, callers;
  for (int i = 0; i < 2; i++)
    writers.emplace_back([&] {
      while (!stop)
        for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
          if (write(stream, "written", 7) >= 0) written++;
    });
  for (int i = 0; i < 3; i++) callers.emplace_back([&] { work.get_and_put(4 * many); });
  for (auto &caller : callers) caller.join();
  // The device makes descriptors for memory, and the backend for handles.
  for (int i = 0; i < 100; i++) {
    void *memory = work.ur.allocate(1 << 20);
    const Data data = work.ur.get(memory);
    work.ur.put(data);
    work.ur.free(memory);
  }
  stop = true;
  for (auto &writer : writers) writer.join();
  dup2(said, STDOUT_FILENO);
  print("writes to closed streams that succeeded: " + std::to_string(written));
}

// Counts the calls that change errno, from new places and threads.
[[gnu::noinline]] int changed_at_depth(int depth, const Work &work) {
  if (depth > 0) {
    const int changed = changed_at_depth(depth - 1, work);
    asm volatile("");
    return changed;
  }
  constexpr int unchanged = 1234;
  int changed = 0;
  const auto keeps = [&](auto call) {
    errno = unchanged;
    call();
    changed += errno != unchanged;
  };
  Data data;
  keeps([&] { data = work.ur.get(work.memory); });
  keeps([&] { work.ur.put(data); });
  return changed;
}

ALONE(keeps_errno) {
  const Work work;
  int changed = 0;
  for (int depth = 0; depth < 50; depth++)
    std::thread([&] { changed += changed_at_depth(depth, work); }).join();
  for (int call = 0; call < many; call++) changed += changed_at_depth(call % 3, work);
  print("calls that changed errno: " + std::to_string(changed));
}

// --- An end beside a thread that waits for the lock of malloc(3) ------------------------------------------------

// The thread stops at this allocation of the tracer, counted from its first call.
std::atomic<long> stops_at{0};
thread_local bool is_counted = false;
std::atomic<int> stopped_or_done{0};

void count_allocation(const void *caller) {
  if (!is_counted) return;
  const auto place = reinterpret_cast<uintptr_t>(caller) - tracer.begin;
  if (place >= tracer.end - tracer.begin || --stops_at > 0) return;
  stopped_or_done = 1;
  for (;;) pause();
}

// Ends by _exit(2) while a thread of it has stopped in its first call. Says on the descriptor in its argument when it ends, and whether
// the thread had come to its end before.
ALONE(ends_beside_allocation) {
  tracer.find();
  const std::string what = argument(1);
  const int told = std::stoi(argument(2));
  static Work *work = what == "thread" ? new Work : nullptr;
  if (work != nullptr) work->get_and_put();
  stops_at = std::stol(argument(3));
  std::thread([] {
    is_counted = true;
    if (work == nullptr) work = new Work;
    work->get_and_put();
    is_counted = false;
    stopped_or_done = 2;
    for (;;) pause();
  }).detach();
  while (stopped_or_done == 0) usleep(100);
  const char done = stopped_or_done == 2 ? 'd' : 's';
  require(write(told, &done, 1) == 1, "nobody waits");
  _exit(0);
}

// Has a process end beside each allocation in turn; counts the ends that had to wait.
void end_beside_each(const std::string &what, long step) {
  int late = 0;
  bool done = false;
  for (long at = 1; !done; at += step) {
    int ends[2];
    require(pipe(ends) == 0, "no pipe");
    const pid_t pid = start_self({"ends_beside_allocation", what, std::to_string(ends[1]), std::to_string(at)});
    ::close(ends[1]);
    char byte = 0;
    require(read(ends[0], &byte, 1) == 1, "the process did not come to its end");
    done = byte == 'd';
    pollfd end = {ends[0], POLLIN, 0};
    // The locks of the tracer are waited for for 3 s.
    if (poll(&end, 1, 2500) == 0) late++, kill(pid, SIGKILL);
    int status = 0;
    require(waitpid(pid, &status, 0) == pid, "cannot wait");
    ::close(ends[0]);
  }
  print("processes that ended late: " + std::to_string(late));
}

ALONE(end_beside_each_of_a_thread) { end_beside_each("thread", 1); }
ALONE(end_beside_some_of_a_process) { end_beside_each("process", 7); }

} // namespace

// The program's functions come before those of the C library.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void *malloc(size_t size) {
  count_allocation(__builtin_return_address(0));
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  count_allocation(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
  count_allocation(__builtin_return_address(0));
  return __libc_realloc(memory, size);
}
}

int main(int argc, char **argv) { return run_modes(argc, argv); }
