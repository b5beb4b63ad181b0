// Calls of C functions with wrong arguments, in child processes. What each answers is printed, or the signal that it ends with.
//
//   bad_calls_... FUNCTIONS COUNT
//
// A line of FUNCTIONS has the name of a function and, for each parameter, its name, its role and its size in words. Each function is called
// COUNT times.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bad_calls {

// An address at which there is nothing.
inline constexpr uint64_t NOWHERE = 0xdead0000;

// Right arguments by the role or the name of a parameter.
using Right = std::map<std::string, uint64_t>;

// Memory that calls may read and write, followed by a page that they may not.
class Memory {
public:
  Memory() {
    void *pages = mmap(nullptr, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(static_cast<char *>(pages) + SIZE, SIZE, PROT_NONE);
    words = static_cast<uint64_t *>(pages);
  }
  // Zeros, ones, and a structure whose pNext leads nowhere.
  std::vector<uint64_t> addresses() {
    const size_t part = SIZE / 4 / sizeof *words;
    memset(words, 0, SIZE);
    memset(words + part, 0xff, SIZE / 4);
    words[2 * part] = 0x15;
    words[2 * part + 1] = NOWHERE;
    return {at(0), at(part), at(2 * part)};
  }
  // Where answers may be written.
  uint64_t answer() { return at(3 * SIZE / 4 / sizeof *words); }

private:
  static constexpr size_t SIZE = 1 << 16;
  uint64_t at(size_t place) { return reinterpret_cast<uint64_t>(words + place); }
  uint64_t *words;
};

struct Parameter {
  std::string name, role;
  size_t words;
};

// Numbers that a seed determines.
class Numbers {
public:
  explicit Numbers(const std::string &seed) {
    for (const char letter : seed) state = (state ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  uint64_t below(uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  }

private:
  uint64_t state = 0xcbf29ce484222325;
};

// System V ABI for x86-64: six words in registers, the others and larger arguments on the stack.
inline int call(void *function, const std::vector<Parameter> &parameters, const std::vector<uint64_t> &arguments) {
  uint64_t registers[6] = {}, stack[20] = {};
  size_t in_registers = 0, on_stack = 0, next = 0;
  for (const Parameter &parameter : parameters)
    for (size_t word = 0; word < parameter.words; ++word) {
      const uint64_t argument = arguments[next++];
      if (parameter.words <= 2 && in_registers < 6) registers[in_registers++] = argument;
      else stack[on_stack++] = argument;
    }
  using Word = uint64_t;
  using Function = int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word,
                           Word, Word, Word, Word, Word, Word, Word);
  const auto &[a, b, c, d, e, f] = registers;
  const auto &s = stack;
  return reinterpret_cast<Function>(function)(a, b, c, d, e, f, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12],
                                              s[13], s[14], s[15], s[16], s[17], s[18], s[19]);
}

inline bool contains_any(const std::string &text, std::initializer_list<const char *> words) {
  for (const char *word : words)
    if (text.find(word) != std::string::npos) return true;
  return false;
}

struct Function {
  std::string name;
  void *address;
  std::vector<Parameter> parameters;
};

// The arguments of a call, some of them right. The first calls have none that is.
inline std::vector<uint64_t> some_arguments(const Function &function, int number, const Right &right, Memory &memory) {
  Numbers numbers(function.name + std::to_string(number));
  const std::vector<uint64_t> small = {0, 1, 2, 64, 4096};
  std::vector<uint64_t> wrong = memory.addresses();
  wrong.insert(wrong.end(), {0, 1, 2, 64, 4096, NOWHERE, NOWHERE, ~uint64_t{0}});
  // What the others use stays.
  const bool ends = contains_any(function.name, {"Destroy", "Free", "Close", "Release", "Reset", "Unmap"});
  std::vector<uint64_t> arguments;
  for (const auto &[name, role, size] : function.parameters)
    for (size_t word = 0; word < size; ++word) {
      auto known = right.find(role);
      if (known == right.end()) known = right.find(name);
      // What large ones take is time.
      const bool is_amount = contains_any(role, {"Length", "Words", "Halves", "Count", "Timeout"}) || contains_any(name, {"size", "count", "height"});
      const bool is_right = number > 1 && !ends && size == 1 && numbers.below(4) != 0;
      if (is_right && role.compare(0, 3, "Out") == 0) arguments.push_back(memory.answer());
      else if (is_right && known != right.end()) arguments.push_back(known->second);
      else if (number == 0) arguments.push_back(0);
      else if (is_amount) arguments.push_back(small[numbers.below(small.size())]);
      else arguments.push_back(number == 1 ? NOWHERE : wrong[numbers.below(wrong.size())]);
    }
  return arguments;
}

struct Answer {
  int number, result;
};

// Makes the calls of a function from a number on, until one does not return.
[[noreturn]] inline void call_until_it_ends(const Function &function, int number, int count, const std::function<Right()> &set_up,
                                            const std::function<void()> &settle, int to) {
  const Right right = set_up();
  Memory memory;
  // It leaves no core file, which would take long.
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, [](int its) { _exit(its); });
  const rlimit second = {1, 2};
  setrlimit(RLIMIT_CPU, &second);
  for (; number < count; ++number) {
    alarm(30);
    const Answer answer = {number, call(function.address, function.parameters, some_arguments(function, number, right, memory))};
    settle();
    if (write(to, &answer, sizeof answer) != sizeof answer) _exit(1);
  }
  _exit(0);
}

// `set_up` is called in each child process, and `settle` after each call: it waits for what that has enqueued.
inline void make(void *library, char **argv, const std::function<Right()> &set_up, const std::function<void()> &settle = [] {}) {
  std::ifstream functions(argv[1]);
  const int count = atoi(argv[2]);
  for (std::string line; std::getline(functions, line);) {
    std::istringstream words(line);
    Function function;
    words >> function.name;
    for (std::string parameter; words >> parameter;) {
      std::istringstream parts(parameter);
      Parameter made;
      std::string size;
      std::getline(parts, made.name, ':') && std::getline(parts, made.role, ':') && std::getline(parts, size);
      made.words = std::stoul(size);
      function.parameters.push_back(made);
    }
    function.address = dlsym(library, function.name.c_str());
    if (function.address == nullptr) continue;
    for (int number = 0; number < count;) {
      int answers[2];
      if (pipe(answers) != 0) _exit(3);
      if (fork() == 0) call_until_it_ends(function, number, count, set_up, settle, answers[1]);
      close(answers[1]);
      for (Answer answer; read(answers[0], &answer, sizeof answer) == sizeof answer; number = answer.number + 1)
        printf("%s/%d %d\n", function.name.c_str(), answer.number, answer.result);
      close(answers[0]);
      int status = 0;
      wait(&status);
      if (number == count) break;
      printf("%s/%d signal %d\n", function.name.c_str(), number, WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
      ++number;
    }
    fflush(stdout);
  }
}

} // namespace bad_calls
