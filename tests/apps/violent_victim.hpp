// The process that ends violently: threads that call, and what happens to them.
#pragma once

#include "counted_calls.hpp"
#include "interruptions.hpp"

#include <cmath>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>

namespace app {

// What a victim and the program that ends it share.
struct Page {
  // The threads call; what the victim does to itself is done; the victim is to end in order.
  Flag ready, done, stop;
  // The victim itself; the child that it forks; the program that it executes.
  Process processes[3];
};
enum { itself, forked, executed };

// The descriptors through which a victim finds them.
constexpr int page_descriptor = 200, board_descriptor = 201;

// From a microsecond to 2 ms, each order of magnitude as likely as the other.
inline void pause_at_random(Random &random) { pause_for(std::exp2(static_cast<double>(random.below(1100)) / 100)); }

// The victim. There is one in its process, which signal handlers must find.
struct Victim {
  Ur ur;
  Caller caller{ur};
  Page &page;
  const Board &board;
  Random random;
  bool childs = false;
  Slot *handler_slot = nullptr;
  void *handler_memory = nullptr;

  Victim(Page &page, const Board &board, uint64_t seed) : page(page), board(board), random{seed} {}

  // One of the things that a thread does over and over.
  void cycle(Random &random, void *memory) const {
    const uint64_t chosen = childs ? 7 : random.below(8); // A forked child can neither allocate nor open.
    if (chosen == 0) caller.share_new_memory(4096 << random.below(12));
    else if (chosen < 4) caller.open_and_close(board.offers[random.below(Board::most)]);
    else caller.get_and_put(memory);
  }
};
inline Victim *victim = nullptr;

// Slot and memory of a thread that calls until it is told to stop. What it made it frees.
inline void call_until_stopped(uint64_t seed, void *memory) {
  Random random{seed};
  slot = &victim->page.processes[itself].add_slot();
  while (!victim->page.stop) {
    victim->cycle(random, memory);
    pthread_testcancel();
  }
}

// In a forked child: counts its own calls from now on.
inline void become_child() {
  victim->childs = true;
  Process &process = victim->page.processes[forked];
  process.pid = static_cast<uint32_t>(getpid());
  slot = &process.add_slot();
}

// The calls of a forked child. Nobody may be left to end it, so it ends by itself.
inline void call_as_child(void *memory) {
  become_child();
  for (int left = 20000; left > 0 && !victim->page.stop; left--) victim->caller.get_and_put(memory);
  _exit(0);
}

// Handlers of SIGUSR1.
template <void (*end)(int)> void handler_ends(int, siginfo_t *, void *context) {
  if (tracer.is_interrupted(context)) end(0);
}
inline void handler_calls(int, siginfo_t *, void *context) {
  if (!tracer.is_interrupted(context)) return;
  victim->handler_slot->tid = static_cast<uint32_t>(gettid());
  Slot *interrupted = std::exchange(slot, victim->handler_slot);
  victim->caller.get_and_put(victim->handler_memory);
  slot = interrupted;
  victim->page.done = 1;
}
// The child goes on where its parent was interrupted.
inline void handler_forks(int, siginfo_t *, void *context) {
  if (victim->childs || victim->page.done || !tracer.is_interrupted(context)) return;
  const pid_t child = fork();
  if (child == 0) become_child();
  else victim->page.done = 1;
}

// A thread that signals interrupt in the tracer, at random distances, until one handler has done what it is for.
inline void interrupt(pthread_t thread, Handler handler, bool once) {
  tracer.find();
  handle(SIGUSR1, handler, SA_RESTART);
  while (!victim->page.stop && !(once && victim->page.done)) {
    pthread_kill(thread, SIGUSR1);
    pause_for(50 + static_cast<double>(victim->random.below(200)));
  }
}

// A limit that is lowered while the threads call, and raised again.
inline void lower_for_a_while(__rlimit_resource resource, rlim_t lowered) {
  rlimit before = {};
  require(getrlimit(resource, &before) == 0, "no limit");
  victim->page.processes[itself].limited = 1;
  const rlimit low = {lowered, before.rlim_max};
  require(setrlimit(resource, &low) == 0, "cannot lower a limit");
  pause_for(1000 + static_cast<double>(victim->random.below(30000)));
  require(setrlimit(resource, &before) == 0, "cannot raise a limit");
  victim->page.processes[itself].lifted = 1;
  pause_for(1000 + static_cast<double>(victim->random.below(30000)));
}

} // namespace app
