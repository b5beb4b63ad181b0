// The two processes of a test program, and the messages between them.
//
// A program is started once and starts itself a second time, as the child, before either of them has touched
// SYCL. The two communicate over a socket pair that keeps message boundaries. A process that waits for a message does
// nothing else, so the order of all calls and of all printed lines is the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace app {

using Bytes = std::vector<std::byte>;

// A line on standard output, in one write, so that lines of two processes never mix.
inline void print(const std::string &line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) std::abort();
}

// The words behind the name of the program, in both of its processes.
inline std::vector<std::string> arguments;
inline std::string argument(size_t at) { return at < arguments.size() ? arguments[at] : ""; }

// Whether the last word asks for the program without its mistake.
inline bool is_fixed() { return !arguments.empty() && arguments.back() == "fixed"; }

// Requires a condition for the program to continue.
inline void require(bool holds, const std::string &what) {
  if (!holds) throw std::runtime_error(what);
}

// Waits for a child that must end well.
inline void require_end(pid_t child, const char *otherwise = "the child failed") {
  int status = 0;
  require(child > 0 && waitpid(child, &status, 0) == child && status == 0, otherwise);
}

// The other process, as each of the two sees it.
class Peer {
public:
  explicit Peer(int socket, pid_t pid = 0) : socket(socket), pid(pid) {}

  void send(const Bytes &message) const {
    require(::send(socket, message.data(), message.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(message.size()),
            "the other process takes no message");
  }
  Bytes receive() const {
    Bytes message(4096);
    const ssize_t size = recv(socket, message.data(), message.size(), 0);
    require(size > 0, "the other process went away before it sent its message");
    message.resize(static_cast<size_t>(size));
    return message;
  }

  // Steps: `say` lets the other one go on from the `await` of the same word.
  void say(const std::string &word) const {
    const auto *begin = reinterpret_cast<const std::byte *>(word.data());
    send(Bytes(begin, begin + word.size()));
  }
  std::string receive_word() const {
    const Bytes message = receive();
    return std::string(reinterpret_cast<const char *>(message.data()), message.size());
  }
  void await(const std::string &word) const {
    const std::string received = receive_word();
    require(received == word, "expected '" + word + "' from the other process, got '" + received + "'");
  }

  // Waits until the other process has exited (only the parent can); returns its wait status.
  int wait_for_end() {
    int status = 0;
    require(waitpid(pid, &status, 0) == pid, "cannot wait for the child");
    has_ended = true;
    return status;
  }
  // Waits for the same, and leaves its status to a later call.
  void await_end() const {
    siginfo_t gone = {};
    require(waitid(P_PID, static_cast<id_t>(pid), &gone, WEXITED | WNOWAIT) == 0, "cannot wait for the child");
  }
  void kill() {
    require(::kill(pid, SIGKILL) == 0, "cannot kill the child");
    require_killed();
  }
  void require_killed() {
    const int status = wait_for_end();
    require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the child was to be killed");
  }

  // Whether it was waited for.
  bool has_ended = false;
  const int socket;

private:
  pid_t pid;
};

using Role = std::function<void(Peer &)>;

// Runs one role; an exception becomes a line on standard error and exit code 3.
inline int guarded(const std::function<void()> &role) {
  // The other process fetches our descriptors with pidfd_getfd, which requires the right to trace us.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  try {
    role();
    return 0;
  } catch (const std::exception &error) {
    fprintf(stderr, "test program: %s\n", error.what());
    return 3;
  }
}

// Starts this very program again, with other words behind its name.
inline pid_t start_self(std::vector<std::string> words, const posix_spawn_file_actions_t *actions = nullptr) {
  char self[4096] = {};
  require(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot find this program");
  std::vector<char *> pointers{self};
  for (std::string &word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  require(posix_spawn(&pid, self, actions, nullptr, pointers.data(), environ) == 0, "cannot start this program again");
  return pid;
}

// Starts it as the child, which finds its socket in front of the words.
inline Peer start_child() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "no socket pair");
  require(fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0, "cannot keep a socket from the child");
  std::vector<std::string> words{"child", std::to_string(ends[1])};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const pid_t pid = start_self(words);
  close(ends[1]);
  return Peer(ends[0], pid);
}

// A program of two processes. The child's end is checked by the parent, unless the parent has waited for it itself.
inline int run(int argc, char **argv, const Role &parent, const Role &child) {
  const bool is_child = argc > 2 && std::string(argv[1]) == "child";
  arguments.assign(argv + (is_child ? 3 : 1), argv + argc);
  return guarded([&] {
    Peer other = is_child ? Peer(std::atoi(argv[2])) : start_child();
    (is_child ? child : parent)(other);
    if (!is_child && !other.has_ended) require(other.wait_for_end() == 0, "the child failed");
  });
}

// splitmix64
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t mixed = state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }
  uint64_t below(uint64_t bound) { return next() % bound; }
};

// One of the things that a program can do, in two processes or in one.
struct Mode {
  Mode(const char *name, const Role &parent, const Role &child) : name(name), parent(parent), child(child) {}
  Mode(const char *name, const std::function<void()> &alone) : name(name), alone(alone) {}

  const char *name;
  Role parent, child;
  std::function<void()> alone;
};

inline std::vector<Mode> &modes() {
  static std::vector<Mode> all;
  return all;
}

// Defines a function that is a mode of its program: of one process; or as the parent or the child, with the other one's function behind its
// name.
#define ADD_MODE(name, ...) [[maybe_unused]] const bool name##_is_mode = (modes().emplace_back(#name, __VA_ARGS__), true)
#define ALONE(name) void name(); ADD_MODE(name, name); void name()
#define PARENT_MODE(name, other, child) void name(Peer &); ADD_MODE(name, name, other); void name(Peer &child)
#define CHILD_MODE(name, other, parent) void name(Peer &); ADD_MODE(name, other, name); void name(Peer &parent)

// A program that does what its first argument names. "list" prints the names.
inline int run_modes(int argc, char **argv) {
  const bool is_child = argc > 3 && std::string(argv[1]) == "child";
  const std::string chosen = argc > 1 ? argv[is_child ? 3 : 1] : "";
  for (const Mode &mode : modes()) {
    if (chosen == "list") print(mode.name);
    if (chosen != mode.name) continue;
    if (!mode.alone) return run(argc, argv, mode.parent, mode.child);
    arguments.assign(argv + 1, argv + argc);
    return guarded(mode.alone);
  }
  return chosen == "list" ? 0 : 2;
}

} // namespace app
