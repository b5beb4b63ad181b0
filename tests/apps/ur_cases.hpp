// Cases for Unified Runtime: each is a few calls, and a line with their results, "<case>: <results>".
//
// A result is a ur_result_t, or a word for what was found. A case that may crash runs in a process of its own.
#pragma once

#include "rights.hpp"
#include "ur_app.hpp"

#include <algorithm>
#include <cstring>
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

private:
  std::string text;
};

struct Case {
  std::string name;
  void (*run)(Ur &, Answers &);
  // Functions of the device that fail meanwhile, in the syntax of ZE_SOFT_FAIL; for a process of its own.
  std::string faults = {};
};

// A case of two processes. The child is started for it; the process that adds results prints them.
struct CaseOfTwo {
  std::string name;
  void (*parent)(Ur &, Peer &child, Answers &);
  void (*child)(Ur &, Peer &parent, Answers &);
};

// The cases of a program.
struct Cases {
  std::vector<Case> alone;
  std::vector<CaseOfTwo> of_two;
  // Each in a process of its own.
  std::vector<Case> apart;
  // Run only where undefined behaviour is refused.
  std::vector<Case> misuse;
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
  char self[4096] = {};
  require(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot find this program");
  require(setenv("ZE_SOFT_FAIL", test_case.faults.c_str(), 1) == 0, "cannot set ZE_SOFT_FAIL");
  std::string role = "only", name = test_case.name;
  char *const arguments[] = {self, role.data(), name.data(), nullptr};
  pid_t pid = 0;
  int status = 0;
  require(posix_spawn(&pid, self, nullptr, nullptr, arguments, environ) == 0, "cannot start the child");
  require(waitpid(pid, &status, 0) == pid, "cannot wait for the child");
  if (WIFSIGNALED(status)) print(name + ": signal " + std::to_string(WTERMSIG(status)));
}

template <typename T> const T &find(const std::vector<T> &cases, const std::string &name) {
  const auto named = [&](const T &test_case) { return test_case.name == name; };
  const auto test_case = std::find_if(cases.begin(), cases.end(), named);
  require(test_case != cases.end(), "no such case: " + name);
  return *test_case;
}

// Concatenates two lists.
template <typename T> std::vector<T> both(std::vector<T> first, const std::vector<T> &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A program of cases. The arguments select some: "alone", "of-two", "apart", "misuse" or "faults".
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
      const auto all = both(cases.apart, cases.faults);
      const auto &test_case = find(all, argv[2]);
      Ur ur;
      run_case(test_case, ur);
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

// The result of a get.
struct Data {
  void *data = nullptr;
  size_t size = 0;

  Bytes copy() const {
    const auto *bytes = static_cast<const std::byte *>(data);
    return Bytes(bytes, bytes + size);
  }
};

// Fills memory that the device can access with one byte, and compares it.
inline void fill(Ur &ur, void *start, size_t size, uint8_t byte) {
  const std::vector<uint8_t> data(size, byte);
  CHECK(urEnqueueUSMMemcpy(ur.queue, true, start, data.data(), size, 0, nullptr, nullptr));
}
inline std::string compare(Ur &ur, const void *start, size_t size, uint8_t byte) {
  std::vector<uint8_t> data(size);
  CHECK(urEnqueueUSMMemcpy(ur.queue, true, data.data(), start, size, 0, nullptr, nullptr));
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
