// Cases for Unified Runtime: each is a few calls, and a line with their results, "<case>: <results>".
//
// A result is a ur_result_t, or a word for what was found. A case that may crash runs in a process of its own.
#pragma once

#include "rights.hpp"
#include "ur_app.hpp"

#include <algorithm>
#include <utility>

namespace app {

// The results of one case, in the order of the calls.
class Answers {
public:
  Answers &operator<<(ur_result_t result) { return *this << std::to_string(result); }
  Answers &operator<<(const std::string &word) {
    text += " " + word;
    return *this;
  }
  const std::string &line() const { return text; }
  // For what is more than one call, without the space in front.
  operator std::string() const { return text.substr(1); }

private:
  std::string text;
};

struct Case {
  std::string name;
  std::function<void(Ur &, Answers &)> run;
  // Functions of the device that fail meanwhile, in the syntax of ZE_SOFT_FAIL; for a process of its own.
  std::string faults = {};
};

// A case of two processes. The child is started for it; the process that adds results prints them.
struct CaseOfTwo {
  std::string name;
  void (*parent)(Ur &, Peer &child, Answers &);
  void (*child)(Ur &, Peer &parent, Answers &);
};

// In a list of cases, the function of one; and the two of one for two processes, of which the parent adds results.
#define RUNS []([[maybe_unused]] Ur & ur, Answers & answers)
#define PARENT [](Ur & ur, Peer & child, [[maybe_unused]] Answers & answers)
#define CHILD []([[maybe_unused]] Ur & ur, Peer & parent, [[maybe_unused]] Answers & answers)

// The cases of a program.
struct Cases {
  std::vector<Case> alone;
  std::vector<CaseOfTwo> of_two = {};
  // Each in a process of its own.
  std::vector<Case> apart = {};
  // Run only where undefined behaviour is refused.
  std::vector<Case> misuse = {};
  // Each in a process of its own.
  std::vector<Case> faults = {};
};

inline void run_case(const Case &test_case, Ur &ur) {
  Answers answers;
  test_case.run(ur, answers);
  print(test_case.name + ":" + answers.line());
}

template <typename Role> void run_side(const std::string &name, Role role, Ur &ur, Peer &other) {
  Answers answers;
  role(ur, other, answers);
  if (!answers.line().empty()) print(name + ":" + answers.line());
}

// Runs one case in another process, which may crash.
inline void run_apart(const Case &test_case) {
  require(setenv("ZE_SOFT_FAIL", test_case.faults.c_str(), 1) == 0, "cannot set ZE_SOFT_FAIL");
  const pid_t pid = start_self({"only", test_case.name});
  int status = 0;
  require(waitpid(pid, &status, 0) == pid, "cannot wait for the child");
  if (WIFSIGNALED(status)) print(test_case.name + ": signal " + std::to_string(WTERMSIG(status)));
}

template <typename T> const T &find(const std::vector<T> &cases, const std::string &name) {
  const auto test_case = std::find_if(cases.begin(), cases.end(), [&](const T &test_case) { return test_case.name == name; });
  require(test_case != cases.end(), "no such case: " + name);
  return *test_case;
}

// Concatenates two lists.
template <typename T> std::vector<T> both(std::vector<T> first, const std::vector<T> &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A program of cases. The arguments select some: "alone", "of-two", "apart", "misuse" or "faults"; or one of one process,
// by "only" and its name.
inline int run_cases(int argc, char **argv, const Cases &cases) {
  const std::string what = argc > 1 ? argv[1] : "";
  return guarded([&] {
    if (what == "alone" || what == "misuse") {
      Ur ur;
      for (const auto &test_case : what == "alone" ? cases.alone : cases.misuse) run_case(test_case, ur);
    } else if (what == "of-two") {
      Ur ur;
      for (const auto &test_case : cases.of_two) {
        Peer child = start_child();
        child.say(test_case.name);
        run_side(test_case.name, test_case.parent, ur, child);
        require(child.wait_for_end() == 0, "the child failed");
      }
    } else if (what == "child") {
      Peer parent(std::atoi(argv[2]));
      const auto &test_case = find(cases.of_two, parent.receive_word());
      Ur ur;
      run_side(test_case.name, test_case.child, ur, parent);
    } else if (what == "apart" || what == "faults") {
      for (const auto &test_case : what == "apart" ? cases.apart : cases.faults) run_apart(test_case);
    } else if (what == "only") {
      Ur ur;
      run_case(find(both(both(cases.alone, cases.apart), cases.faults), argv[2]), ur);
    } else {
      require(false, "which cases? alone, of-two, apart, misuse or faults");
    }
  });
}

// Bytes that somebody else owns.
class View {
public:
  View(const Bytes &bytes) : View(bytes.data(), bytes.size()) {}
  View(const std::byte *begin, size_t length) : begin(begin), length(length) {}
  const std::byte *data() const { return begin; }
  size_t size() const { return length; }

private:
  const std::byte *begin;
  size_t length;
};

// What a call that fails leaves in its result.
inline const char *left(const Data &data) { return data.data == nullptr && data.size == 0 ? "untouched" : "touched"; }

// Fills memory that the device can access with one byte, and compares it.
inline void fill(Ur &ur, void *start, size_t size, uint8_t byte) { ur.copy(start, std::vector<uint8_t>(size, byte).data(), size); }
inline std::string compare(Ur &ur, const void *start, size_t size, uint8_t byte) {
  std::vector<uint8_t> data(size);
  ur.copy(data.data(), start, size);
  return data == std::vector<uint8_t>(size, byte) ? "same" : "other";
}

// During its lifetime, only processes with the right to trace any process can fetch our descriptors.
class Untraceable {
public:
  Untraceable() { require(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "cannot become undumpable"); }
  Untraceable(const Untraceable &) = delete;
  ~Untraceable() { prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
};

} // namespace app
