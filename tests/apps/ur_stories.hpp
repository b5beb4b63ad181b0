// Stories told to Unified Runtime: each is a few calls, and a line with what was answered, "<story>: <answers>".
//
// An answer is a ur_result_t, or a word for what was found. A story that may end in a crash is told in a process of its own.
#pragma once

#include "ur_app.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/syscall.h>

namespace app {

// The answers of one story, in the order of the calls.
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

struct Story {
  const char *name;
  void (*tell)(Ur &, Answers &);
};

// A story of two processes. The child is started for it; whoever adds to the answers prints them.
struct StoryOfTwo {
  const char *name;
  void (*parent)(Ur &, Peer &child, Answers &);
  void (*child)(Ur &, Peer &parent, Answers &);
};

inline void tell(const Story &story, Ur &ur) {
  Answers answers;
  story.tell(ur, answers);
  print(std::string(story.name) + ":" + answers.line());
}

template <typename Role> void tell_side(const char *name, Role role, Ur &ur, Peer &other) {
  Answers answers;
  role(ur, other, answers);
  if (!answers.line().empty()) print(std::string(name) + ":" + answers.line());
}

// Tells one story in another process, which a crash may end.
inline void tell_apart(const char *name) {
  char self[4096] = {};
  require(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot find this program");
  char role[] = "only";
  char *const arguments[] = {self, role, const_cast<char *>(name), nullptr};
  pid_t pid = 0;
  int status = 0;
  require(posix_spawn(&pid, self, nullptr, nullptr, arguments, environ) == 0, "cannot start the child");
  require(waitpid(pid, &status, 0) == pid, "cannot wait for the child");
  if (WIFSIGNALED(status)) print(std::string(name) + ": signal " + std::to_string(WTERMSIG(status)));
}

// A program of stories. The arguments choose: "alone", "of-two" or "apart".
inline int tell_all(int argc, char **argv, const std::vector<Story> &alone, const std::vector<StoryOfTwo> &of_two,
                    const std::vector<Story> &apart) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto named = [](const std::string &name) { return [name](const auto &story) { return name == story.name; }; };
  return guarded([&] {
    if (what == "alone") {
      Ur ur;
      for (const auto &story : alone) tell(story, ur);
    } else if (what == "of-two") {
      Ur ur;
      for (const auto &story : of_two) {
        Peer child = start_child();
        child.say(story.name);
        tell_side(story.name, story.parent, ur, child);
        require(child.wait_for_end() == 0, "the child failed");
      }
    } else if (what == "child") {
      Peer parent(std::atoi(argv[2]));
      const std::string name = parent.hear();
      const auto story = std::find_if(of_two.begin(), of_two.end(), named(name));
      require(story != of_two.end(), "no such story: " + name);
      Ur ur;
      tell_side(story->name, story->child, ur, parent);
    } else if (what == "apart") {
      for (const auto &story : apart) tell_apart(story.name);
    } else if (what == "only") {
      const auto story = std::find_if(apart.begin(), apart.end(), named(argv[2]));
      require(story != apart.end(), std::string("no such story: ") + argv[2]);
      Ur ur;
      tell(*story, ur);
    } else {
      require(false, "which stories? alone, of-two or apart");
    }
  });
}

// What a get hands out.
struct Data {
  void *data = nullptr;
  size_t size = 0;

  Bytes copy() const {
    const auto *bytes = static_cast<const std::byte *>(data);
    return Bytes(bytes, bytes + size);
  }
};

// From now on nobody may fetch our descriptors but who has the right to trace any process.
inline void refuse_to_be_traced() { require(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "cannot become undumpable"); }

// Gives up that right, if we have it: for good, so this is for the last story of a process.
inline void give_up_the_right_to_trace() {
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0}; // _LINUX_CAPABILITY_VERSION_3, this thread
  const uint32_t none[6] = {};
  require(syscall(SYS_capset, &header, none) == 0, "cannot give up capabilities");
}

} // namespace app
