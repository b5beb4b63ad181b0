// A thread that sleeps in a call.
#pragma once

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <unistd.h>

namespace app {

// Starts a thread, and goes on when it sleeps. It is then in its call, because it does nothing else.
class Sleeper {
public:
  explicit Sleeper(const std::function<void()> &call) : thread([this, call] {
    id = gettid();
    call();
  }) {
    while (id == 0 || !sleeps()) std::this_thread::yield();
  }

private:
  std::atomic<pid_t> id{0};

  bool sleeps() const {
    std::ifstream status("/proc/self/task/" + std::to_string(id) + "/stat");
    std::string line;
    std::getline(status, line);
    const size_t name = line.rfind(") ");
    return name != std::string::npos && line.size() > name + 2 && line[name + 2] == 'S';
  }

public:
  std::thread thread;
};

} // namespace app
