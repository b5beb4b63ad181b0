// The script of a hunt, and the order of its steps across processes and threads.
//
// A line is one step: `[&] PROCESS.THREAD OPERATION[?] @SITE ARGUMENTS`, for example `1.0 open @17 m3 b5 c0`. `?` lets the runtime
// refuse the call, and `&` lets the step run at the same time as the step before it. `#` begins a comment. Letters in
// front of a number are for readers.
#pragma once

#include "peer.hpp"

#include <atomic>
#include <climits>
#include <ctime>
#include <fstream>
#include <sstream>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace app {

struct Step {
  unsigned line = 0, group = 0, process = 0, thread = 0, site = 0;
  std::string operation;
  bool may_be_refused = false;
  std::vector<unsigned> arguments;

  unsigned operator[](size_t index) const {
    require(index < arguments.size(), operation + " has too few arguments");
    return arguments[index];
  }
};

class Script {
public:
  std::vector<Step> steps;
  std::vector<unsigned> group_sizes;

  explicit Script(const char *file) {
    std::ifstream text(file);
    require(text.good(), std::string("cannot read ") + file);
    std::string line;
    for (unsigned number = 1; std::getline(text, line); ++number) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::string word;
      if (words >> word) add(number, word, words);
    }
  }

private:
  static unsigned number(const std::string &word) {
    const size_t digits = word.find_first_of("0123456789");
    require(digits != std::string::npos, "no number in '" + word + "'");
    return static_cast<unsigned>(std::stoul(word.substr(digits)));
  }

  void add(unsigned line, std::string word, std::istringstream &words) {
    Step step;
    step.line = line;
    const bool joins = word == "&";
    if (joins) words >> word;
    require(!joins || !steps.empty(), "the first step joins no other");
    step.process = number(word);
    step.thread = number(word.substr(word.find('.')));
    words >> step.operation;
    if (step.operation.back() == '?') {
      step.operation.pop_back();
      step.may_be_refused = true;
    }
    while (words >> word) {
      if (word[0] == '@') step.site = number(word);
      else step.arguments.push_back(number(word));
    }
    if (joins) ++group_sizes.back();
    else group_sizes.push_back(1);
    step.group = static_cast<unsigned>(group_sizes.size() - 1);
    steps.push_back(step);
  }
};

// What all processes share: whose turn it is, and the handle data that was sent.
class Turns {
public:
  struct Slot {
    size_t size;
    std::byte data[1016];
  };

  explicit Turns(const Script &script, int inherited = -1) : script(script), file(inherited) {
    if (file < 0) file = memfd_create("turns", 0);
    require(file >= 0 && ftruncate(file, sizeof(Shared)) == 0, "no shared memory");
    void *mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    require(mapped != MAP_FAILED, "the shared memory cannot be mapped");
    shared = static_cast<Shared *>(mapped);
    if (inherited < 0) shared->remaining = script.group_sizes.at(0);
  }

  // Sleeps until it is the step's turn.
  void await(const Step &step, const std::function<void()> &look_after_children) {
    const time_t limit = time(nullptr) + 60;
    for (unsigned now; (now = shared->turn) != step.group;) {
      require(!shared->failed, "another process failed");
      require(time(nullptr) < limit, "the turn of line " + std::to_string(step.line) + " does not come");
      look_after_children();
      const timespec pause = {0, 200'000'000};
      syscall(SYS_futex, &shared->turn, FUTEX_WAIT, now, &pause, nullptr, 0);
    }
  }

  void done(const Step &step) {
    if (--shared->remaining > 0) return;
    const unsigned next = step.group + 1;
    if (next < script.group_sizes.size()) shared->remaining = script.group_sizes[next];
    shared->turn = next;
    syscall(SYS_futex, &shared->turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  // Ends all processes of the script.
  void fail() { shared->failed = true; }

  Slot &slot(unsigned number) {
    require(number < slots, "no slot " + std::to_string(number));
    return shared->slots[number];
  }
  std::string descriptor() const { return std::to_string(file); }

private:
  static constexpr unsigned slots = 256;
  struct Shared {
    std::atomic<uint32_t> turn, remaining;
    std::atomic<bool> failed;
    Slot slots[Turns::slots];
  };

  const Script &script;
  int file;
  Shared *shared;
};

} // namespace app
