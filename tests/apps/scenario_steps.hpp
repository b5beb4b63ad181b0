// The steps of a scenario, in the language of `rules/pages/src/scenario`, and their order across processes and threads.
#pragma once

#include "peer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace app {

struct Step {
  unsigned line = 0, group = 0, process = 0, thread = 1;
  unsigned other = 0; // The process that begins by a fork or an exec.
  bool begins_process = false;
  std::string text, verb, object;
  std::map<std::string, std::string> words;

  bool has(const std::string &word) const { return words.count(word) != 0; }
  std::string word(const std::string &word) const { return has(word) ? words.at(word) : ""; }
  size_t number(const std::string &word, size_t otherwise = 0) const {
    return has(word) ? std::stoul(words.at(word)) : otherwise;
  }
  bool may_be_refused() const { return has("may-fail") || has("fails"); }
};

// A word that is none of a program in SYCL.
struct NoStep : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Script {
public:
  std::vector<Step> steps;
  std::vector<unsigned> group_sizes;
  std::vector<std::string> processes;
  // The names of handle data.
  std::vector<std::string> handles;

  explicit Script(const char *file) {
    std::ifstream text(file);
    require(text.good(), std::string("cannot read ") + file);
    std::vector<std::pair<unsigned, std::string>> block;
    size_t times = 0;
    std::string line;
    for (unsigned number = 1; std::getline(text, line); ++number) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::string first, second;
      words >> first >> second;
      if (second == "times") {
        times = std::stoul(first);
      } else if (first == "end") {
        for (size_t time = 0; time < times; ++time)
          for (auto [at, again] : block) {
            for (size_t mark; (mark = again.find('$')) != std::string::npos;) again.replace(mark, 1, std::to_string(time));
            add(at, again);
          }
        block.clear();
        times = 0;
      } else if (!first.empty()) {
        if (times == 0) add(number, words.str());
        else block.emplace_back(number, words.str());
      }
    }
    for (unsigned process = 0; process < processes.size(); ++process)
      if (ended.count(process) == 0) add(0, processes[process] + ": exit");
  }

  static unsigned index(std::vector<std::string> &names, const std::string &name) {
    const auto known = std::find(names.begin(), names.end(), name);
    const auto index = static_cast<unsigned>(known - names.begin());
    if (known == names.end()) names.push_back(name);
    return index;
  }

private:
  std::set<unsigned> ended;

  void add(unsigned line, const std::string &text) {
    static const std::set<std::string> marks = {"ipc", "queued", "fails", "may-fail", "ze", "replaced"};
    // The steps that a program makes by Level Zero, in the context of SYCL.
    static const std::set<std::string> raw = {"get", "put", "open", "close"};
    static const std::set<std::string> valued = {"+", "->", "in", "as", "from", "sized", "flipped", "seed"};
    std::istringstream words(text);
    Step step;
    step.line = line;
    step.text = text;
    std::string who, word;
    words >> who;
    const bool joins = who == "&";
    if (joins) words >> who;
    require(who.back() == ':' && (!joins || !steps.empty()), "no step: " + text);
    who.pop_back();
    const size_t slash = who.find('/'), known = processes.size();
    if (slash != std::string::npos) step.thread = static_cast<unsigned>(std::stoul(who.substr(slash + 1)));
    step.process = index(processes, who.substr(0, slash));
    step.begins_process = step.process == known;
    words >> step.verb >> step.object;
    if (step.verb == "alloc") words >> step.words["sized"];
    while (words >> word) {
      const bool has_value = valued.count(word) != 0, is_result = step.may_be_refused() && isdigit(word[0]);
      if (!has_value && !is_result && marks.count(word) == 0) throw NoStep(word);
      std::string &value = step.words[word];
      if (has_value) words >> value;
    }
    if (step.has("ze") && raw.count(step.verb) == 0) throw NoStep("ze");
    const bool is_shared = step.verb != "physical" && step.verb != "event";
    if (who.find('@') != std::string::npos || !(is_shared || step.has("ipc"))) throw NoStep(text);
    if (step.verb == "fork" || step.verb == "exec") step.other = index(processes, step.object);
    if (step.verb == "exit" || step.verb == "exec" || step.verb == "killed" || step.verb == "incomplete") ended.insert(step.process);
    if (step.verb.rfind("get", 0) == 0) index(handles, step.word("->"));
    if (joins) ++group_sizes.back();
    else group_sizes.push_back(1);
    step.group = static_cast<unsigned>(group_sizes.size() - 1);
    steps.push_back(step);
  }
};

// What all processes share: whose turn it is, who they are, and the handle data that they got.
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
    require(script.handles.size() <= count && script.processes.size() <= count, "too many names");
    if (inherited < 0) shared->remaining = script.group_sizes.at(0);
  }

  // Sleeps until it is the step's turn.
  void await(const Step &step, const std::function<void()> &look_after_children = [] {}) {
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

  // The handle data of a name; null where no step gets any.
  Slot *slot(const std::string &name) {
    const auto known = std::find(script.handles.begin(), script.handles.end(), name);
    return known == script.handles.end() ? nullptr : &shared->slots[known - script.handles.begin()];
  }
  std::atomic<pid_t> &pid(unsigned process) { return shared->pids[process]; }
  std::string descriptor() const { return std::to_string(file); }

private:
  static constexpr unsigned count = 512;
  struct Shared {
    std::atomic<uint32_t> turn, remaining;
    std::atomic<bool> failed;
    std::atomic<pid_t> pids[count];
    Slot slots[count];
  };

  const Script &script;
  int file;
  Shared *shared;
};

// Calls from a function of its own for each line of a script, so that a finding shows by its call stack which step it means.
// The statement behind the call keeps the compiler from making one function of all.
template <size_t line> __attribute__((noinline)) void at_line(const std::function<void()> &call) {
  call();
  asm volatile("# line %0" ::"i"(line));
}

template <size_t... lines> constexpr auto callers(std::index_sequence<lines...>) { return std::array{at_line<lines>...}; }
constexpr auto at = callers(std::make_index_sequence<512>());

} // namespace app
