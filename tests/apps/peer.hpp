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

// Requires a condition for the program to continue.
inline void require(bool holds, const std::string &what) {
  if (!holds) throw std::runtime_error(what);
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
  int wait_for_end() const {
    int status = 0;
    require(waitpid(pid, &status, 0) == pid, "cannot wait for the child");
    return status;
  }
  // Waits for the same, and leaves its status to a later call.
  void await_end() const {
    siginfo_t gone = {};
    require(waitid(P_PID, static_cast<id_t>(pid), &gone, WEXITED | WNOWAIT) == 0, "cannot wait for the child");
  }
  void kill() const { require(::kill(pid, SIGKILL) == 0, "cannot kill the child"); }

private:
  int socket;
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

// Starts this very program again as the child; it finds its socket in the arguments.
inline Peer start_child() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "no socket pair");
  require(fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0, "cannot keep a socket from the child");
  char self[4096] = {};
  require(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot find this program");
  const std::string socket = std::to_string(ends[1]);
  char role[] = "child";
  char *const arguments[] = {self, role, const_cast<char *>(socket.c_str()), nullptr};
  pid_t pid = 0;
  require(posix_spawn(&pid, self, nullptr, nullptr, arguments, environ) == 0, "cannot start the child");
  close(ends[1]);
  return Peer(ends[0], pid);
}

// A program of two processes. The child's end is checked by the parent, unless the parent has done so itself.
inline int run(int argc, char **argv, const Role &parent, const Role &child, bool wait_for_child = true) {
  if (argc == 3 && std::string(argv[1]) == "child") {
    Peer other(std::atoi(argv[2]));
    return guarded([&] { child(other); });
  }
  return guarded([&] {
    Peer other = start_child();
    parent(other);
    if (wait_for_child) require(other.wait_for_end() == 0, "the child failed");
  });
}

// A program of one process.
inline int run_alone(const std::function<void()> &role) { return guarded(role); }

} // namespace app
