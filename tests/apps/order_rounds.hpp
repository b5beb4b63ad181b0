// Rounds in which one process writes a part of shared memory, the other one reads it, and the first one writes it again. Each line of the
// file that is named tells of one: who writes, and for the write and the read on which queue it is, how the host waits for it at last, and
// what orders the other process's command behind it:
//
//   in-time           the host waits before the other process is told to go on
//   late              it waits after that: a mistake
//   event             the queue signals an event that processes share behind the command, and the other queue waits for it
//   event-in-front    it signals the event in front of the command: a mistake
//   event-ignored     the other queue does not wait: a mistake
//   flag              the queue writes a word of shared memory behind the command, and the other host copies that until it has changed
//   flag-in-front     the word is written in front of the command: a mistake
//   flag-elsewhere    another queue writes the word: a mistake
#pragma once

#include "peer.hpp"

#include <fstream>
#include <sstream>

#include <poll.h>

namespace app {

constexpr size_t stride = 1 << 16;

// A command, the wait for it, and what orders another one behind it.
struct Step {
  std::string queue, how, order;
  bool has(const std::string &what) const { return order.compare(0, what.size(), what) == 0; }
};

struct Round {
  std::string writer;
  Step write, read;
  size_t number, of;
  size_t at() const { return number * stride; }
  // No other round has so many bytes.
  size_t size() const { return stride / 2 + 64 * number; }
  // Where a flag is, behind the memory of all rounds.
  size_t flag(const Step &step) const { return of * stride + 64 * (2 * number + (&step == &read)); }
};

inline std::vector<Round> rounds() {
  std::ifstream file(argument(0));
  std::vector<Round> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Round round{};
    words >> round.writer;
    for (Step *step : {&round.write, &round.read}) words >> step->queue >> step->how >> step->order;
    require(static_cast<bool>(words), "a round has seven words: " + line);
    round.number = all.size();
    all.push_back(round);
  }
  require(!all.empty(), "name a file of rounds");
  for (Round &round : all) round.of = all.size();
  return all;
}

inline bool use_events(const std::vector<Round> &rounds) {
  for (const Round &round : rounds)
    if (round.write.has("event") || round.read.has("event")) return true;
  return false;
}

// Whether the other process says something in 20 ms.
inline bool is_heard(const Peer &other) {
  pollfd socket = {other.socket, POLLIN, 0};
  return poll(&socket, 1, 20) > 0;
}

// The two processes of the rounds. A device is made with shared memory of zeros and a number of bytes, or opens it from the handle. It has
// `begin` and `end` around what is enqueued together.
template <class Device> struct Rounds {
  Device &device;
  Peer &other;

  // Enqueues the command of a step, behind that of another step, with what orders the next one, and says a word.
  void enqueue(const Round &round, const Step &step, const Step *behind, const std::string &word) {
    if (behind && behind->has("flag")) device.await_flag(round.flag(*behind));
    if (step.order == "flag-in-front") device.write_flag_elsewhere(round.flag(step));
    device.begin(step.queue);
    if (behind && behind->has("event") && behind->order != "event-ignored") device.await_event(step.queue);
    if (step.order == "event-in-front") device.signal(step.queue);
    device.enqueue(step.queue, &step == &round.write, round.at(), round.size());
    if (step.order == "event" || step.order == "event-ignored") device.signal(step.queue);
    if (step.order == "flag") device.write_flag(step.queue, round.flag(step));
    device.end(step.queue);
    if (step.order == "flag-elsewhere") device.write_flag_elsewhere(round.flag(step));
    if (step.order == "in-time") device.wait(step.queue, step.how);
    other.say(word);
  }

  // Waits for a command when the other process has gone on, unless that was done. Nothing signals the event later, or it could be for the
  // next round. A device may hold a flag back until something waits for that.
  void wait(const Step &step, const std::string &word) {
    if (step.order == "flag" && !is_heard(other)) device.wait(step.queue, "queue");
    other.await(word);
    if (step.order != "in-time") device.wait(step.queue, step.has("event") ? "queue" : step.how);
  }

  void write(Round round) {
    enqueue(round, round.write, nullptr, "written");
    wait(round.write, "read");
    round.write.order = "in-time";
    enqueue(round, round.write, &round.read, "written again");
    other.await("over");
  }
  void read(const Round &round) {
    other.await("written");
    enqueue(round, round.read, &round.write, "read");
    wait(round.read, "written again");
    other.say("over");
  }

  void play(const std::string &name) {
    for (const Round &round : rounds()) round.writer == name ? write(round) : read(round);
    device.wait_for_all();
  }
};

template <class Device> int run_rounds(int argc, char **argv) {
  const auto parent = [](Peer &child) {
    const std::vector<Round> all = rounds();
    Device device(all.size() * (stride + 2 * 64));
    child.send(device.handle());
    if (use_events(all)) {
      for (const Bytes &handle : device.make_events()) child.send(handle);
    }
    child.await("open");
    Rounds<Device>{device, child}.play("parent");
    child.await("closed");
    device.free();
  };
  const auto child = [](Peer &parent) {
    Device device(parent.receive());
    if (use_events(rounds())) {
      const Bytes theirs = parent.receive();
      device.open_events(theirs, parent.receive());
    }
    // SYCL asks an event for its context when it opens it, and each question counts as a use of the event, which may order commands.
    parent.say("open");
    Rounds<Device>{device, parent}.play("child");
    device.close();
    parent.say("closed");
  };
  return run(argc, argv, parent, child);
}

} // namespace app
