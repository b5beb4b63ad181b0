// Many processes with many threads that share with each other, of which some are killed at random points of their work, and some
// that stay make one mistake each. Prints the mistakes, and the calls of each process, a line of JSON for each.
//
//   killed_crowd PROCESSES THREADS CYCLES SEED
#include "counted_calls.hpp"

#include <thread>

using namespace app;

namespace {

constexpr int most_members = 64;

struct Crowd {
  // All offers are there; all who stay have made their calls.
  Flag go, finish;
  // The memory that is freed too early: offered, open elsewhere, freed.
  Flag held, freed;
  Offer early;
  struct Member {
    Flag ready, done;
    Offer offer;
    Process process;
  } members[most_members];
};
constexpr int crowd_descriptor = 200;

// The members that stay to the end. The first ones make a mistake each, in the middle of their work.
constexpr int stay = 8;
enum Mistake { leaks_handle, leaks_mapping, closes_unknown, frees_while_open, holds_open, puts_twice, no_mistake };
constexpr std::pair<Mistake, const char *> rules[] = {
    {leaks_handle, "leaked-handle"},
    {leaks_mapping, "leaked-mapping"},
    {closes_unknown, "close-of-unknown"},
    {frees_while_open, "freed-while-open"},
    {puts_twice, "double-put"},
};

struct Member {
  Ur ur;
  Caller caller{ur};
  Crowd &crowd;
  int index, members, cycles;
  void *early = nullptr;
  Data early_data = {};

  Process &process() { return crowd.members[index].process; }

  void make_mistake(void *memory) {
    switch (index) {
    case leaks_handle: caller.get(caller.allocate(4096)); break; // A free of the memory would end its handles.
    case leaks_mapping: caller.open(crowd.members[stay - 1].offer); break;
    case closes_unknown: caller.close(memory); break;
    case holds_open: {
      void *opened = caller.open(crowd.early);
      crowd.held = 1;
      while (!crowd.freed) pause_for(100);
      caller.close(opened);
      break;
    }
    case frees_while_open:
      while (!crowd.held) pause_for(100);
      caller.put(early_data);
      caller.free(early);
      crowd.freed = 1;
      break;
    default: break;
    }
  }

  void work(uint64_t seed, bool first) {
    slot = &process().add_slot();
    Random random{seed};
    void *memory = caller.allocate(4096);
    for (int cycle = 0; cycle < cycles; cycle++) {
      if (random.below(8) == 0) caller.open_and_close(crowd.members[random.below(static_cast<uint64_t>(members))].offer);
      else caller.get_and_put(memory);
      if (first && cycle == cycles / 2) make_mistake(memory);
    }
    caller.free(memory);
  }
};

void be_member(int index, int members, int threads, int cycles, uint64_t seed) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  Crowd &crowd = *Shared<Crowd>::map(crowd_descriptor);
  auto &me = crowd.members[index];
  me.process.pid = static_cast<uint32_t>(getpid());
  slot = &me.process.add_slot();
  Member member{{}, {member.ur}, crowd, index, members, cycles};
  void *memory = member.caller.allocate(1 << 20);
  const Data data = member.caller.get(memory);
  me.offer.set(data);
  if (index == frees_while_open) {
    member.early = member.caller.allocate(8 << 20);
    member.early_data = member.caller.get(member.early);
    crowd.early.set(member.early_data);
  }
  me.ready = 1;
  while (!crowd.go) pause_for(1000);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; i++)
    running.emplace_back([&, i] { member.work(seed * 1000 + static_cast<uint64_t>(i), i == 0); });
  for (auto &thread : running) thread.join();
  me.done = 1;
  while (!crowd.finish) pause_for(1000);
  member.caller.put(data);
  // Only now, when no other thread may have got the same address again.
  if (index == puts_twice) member.caller.put(data);
  // The member that leaks a mapping may still have that of the last one.
  if (index != stay - 1) member.caller.free(memory);
}

// --- The process that starts and kills them --------------------------------------------------------------------

void lead(int members, int threads, int cycles, uint64_t seed) {
  require(members > stay && members <= most_members && threads < Process::most, "no such crowd");
  const auto shared = Shared<Crowd>::make();
  Crowd &crowd = *shared.value;
  Random random{seed};
  std::vector<pid_t> pids;
  std::vector<uint64_t> calls_until_killed;
  for (int index = 0; index < members; index++) {
    pids.push_back(start_with({"member", std::to_string(index), std::to_string(members), std::to_string(threads), std::to_string(cycles),
                               std::to_string(random.below(1 << 30))},
                              {{shared.descriptor, crowd_descriptor}}));
    // Two calls a cycle; 0 stands for one that stays.
    const bool is_victim = index >= stay && random.below(2) == 0;
    calls_until_killed.push_back(is_victim ? 1 + random.below(2 * static_cast<uint64_t>(threads * cycles)) : 0);
  }
  const auto all = [&](auto holds) {
    for (int index = 0; index < members; index++)
      if (!holds(index)) return false;
    return true;
  };
  while (!all([&](int index) { return crowd.members[index].ready != 0; })) {
    for (pid_t pid : pids) require(waitpid(pid, nullptr, WNOHANG) == 0, "a member did not begin");
    pause_for(1000);
  }
  crowd.go = 1;
  const auto made = [&](int index) {
    uint64_t calls = 0;
    for (const Slot &one : crowd.members[index].process.slots)
      for (const Count &count : one.returned) calls += count;
    return calls;
  };
  int killed = 0;
  const auto is_over = [&](int index) {
    uint64_t &until = calls_until_killed[static_cast<size_t>(index)];
    if (until == 0) return crowd.members[index].done != 0;
    if (until == UINT64_MAX) return true;
    if (made(index) < until && crowd.members[index].done == 0) return false;
    kill(pids[static_cast<size_t>(index)], SIGKILL);
    until = UINT64_MAX;
    killed++;
    return true;
  };
  for (bool over = false; !over; pause_for(500)) {
    over = true;
    for (int index = 0; index < members; index++) over &= is_over(index);
  }
  // A process that was killed has its mappings until it is gone, and nobody may free their memory before.
  for (int index = 0; index < members; index++) {
    siginfo_t info;
    const auto pid = static_cast<id_t>(pids[static_cast<size_t>(index)]);
    const bool was_killed = calls_until_killed[static_cast<size_t>(index)] == UINT64_MAX;
    require(!was_killed || waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0, "cannot wait for a member");
  }
  crowd.finish = 1;
  for (int index = 0; index < members; index++) {
    int status = 0;
    require(waitpid(pids[static_cast<size_t>(index)], &status, 0) > 0, "cannot wait for a member");
    const bool is_victim = calls_until_killed[static_cast<size_t>(index)] != 0;
    require(is_victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0, "a member ended otherwise");
    print_counts("\"seed\":" + std::to_string(seed) + ",\"way\":\"" + (is_victim ? "kill" : "stay") +
                     "\",\"process\":\"itself\",\"ended\":\"" + (is_victim ? "signal 9" : "exit 0") + "\",\"hung\":false",
                 crowd.members[index].process);
  }
  for (const auto &[mistake, rule] : rules) {
    const std::string pid = std::to_string(crowd.members[mistake].process.pid);
    print("{\"planted\":\"" + std::string(rule) + "\",\"pid\":" + pid + "}");
  }
  print("{\"killed\":" + std::to_string(killed) + "}");
}

} // namespace

int main(int argc, char **argv) {
  const auto number = [&](int index) { return std::atoi(argv[index]); };
  if (argc == 7) return guarded([&] { be_member(number(2), number(3), number(4), number(5), std::stoull(argv[6])); });
  if (argc == 5) return guarded([&] { lead(number(1), number(2), number(3), std::stoull(argv[4])); });
  return 2;
}
