// The violation: a handle is never put. The process becomes another program, which makes no call, or fails to. The argument names
// the function by which it does, or another way; "list" prints all names. The other program checks its arguments and its environment.
#include "ipc_app.hpp"

#include <cerrno>

using namespace app;

static const char *const shell = "/bin/sh";
// More arguments than registers hold.
static const char *const check = "test \"$#$1$2$3$4$5$6$7\" = 7abcdefg -a \"$GIVEN\" = yes && echo another program";

#define WORDS "sh", "-c", check, "sh", "a", "b", "c", "d", "e", "f", "g", static_cast<char *>(nullptr)

static const char *const given[] = {WORDS};
static char *const *const words = const_cast<char *const *>(given);
static char *environment[] = {const_cast<char *>("GIVEN=yes"), nullptr};

static void fail() { require(execl("/nowhere/sh", WORDS) == -1 && errno == ENOENT, "a program that does not exist cannot be executed"); }

static const struct {
  const char *name;
  void (*become)();
} ways[] = {
    {"execl", [] { execl(shell, WORDS); }},
    {"execle", [] { execle(shell, WORDS, environment); }},
    {"execlp", [] { execlp("sh", WORDS); }},
    {"execv", [] { execv(shell, words); }},
    {"execve", [] { execve(shell, words, environment); }},
    {"execveat", [] { execveat(AT_FDCWD, shell, words, environment, 0); }},
    {"execvp", [] { execvp("sh", words); }},
    {"execvpe", [] { execvpe("sh", words, environment); }},
    {"fexecve", [] { fexecve(open(shell, O_RDONLY | O_CLOEXEC), words, environment); }},
    // It does not become another program, and is killed.
    {"failed", [] { fail(), raise(SIGKILL); }},
    // A child that shares its memory becomes another program. The process itself is killed.
    {"vfork",
     [] {
       const pid_t child = vfork();
       if (child == 0) {
         execl(shell, WORDS);
         _exit(1);
       }
       require_end(child, "the child was to become another program");
       raise(SIGKILL);
     }},
};

int main(int argc, char **argv) {
  const std::string chosen = argc > 1 ? argv[1] : "";
  setenv("GIVEN", "yes", 1);
  for (const auto &[name, become] : ways) {
    if (chosen == "list") std::puts(name);
    if (chosen != name) continue;
    return guarded([become = become] {
      Gpu gpu;
      export_pattern(gpu, 1 << 20, 3);
      become();
      require(false, "the process was to become another program");
    });
  }
  return chosen == "list" ? 0 : 2;
}
