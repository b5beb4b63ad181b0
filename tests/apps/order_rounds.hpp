// Rounds in which one process writes a part of shared memory, the other one reads it, and the first one writes it again. Each line of the
// file that is named tells of one: who writes, and for the write and the read on which queue it is, how it is waited for, and whether that is
// in time, before the other process is told to go on, or late.
#pragma once

#include "peer.hpp"

#include <fstream>
#include <sstream>

namespace app {

constexpr size_t stride = 1 << 16;

// A command, and the wait for it.
struct Step {
  std::string queue, how, when;
  bool is_late() const { return when == "late"; }
};

struct Round {
  std::string writer;
  Step write, read;
  size_t number;
  size_t at() const { return number * stride; }
  // No other round has so many bytes.
  size_t size() const { return stride / 2 + 64 * number; }
};

inline std::vector<Round> rounds() {
  std::ifstream file(argument(0));
  std::vector<Round> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Round round{};
    words >> round.writer >> round.write.queue >> round.write.how >> round.write.when >> round.read.queue >> round.read.how >> round.read.when;
    require(static_cast<bool>(words), "a round has seven words: " + line);
    round.number = all.size();
    all.push_back(round);
  }
  require(!all.empty(), "name a file of rounds");
  return all;
}

// Enqueues a command on the shared memory, and has it waited for in time, or late.
template <class Device> void play(Device &device, Peer &other, const std::string &name) {
  for (const Round &round : rounds()) {
    const bool writes = round.writer == name;
    const Step &step = writes ? round.write : round.read;
    const auto wait = [&] { device.wait(step.queue, step.how); };
    if (!writes) other.await("written");
    device.enqueue(step.queue, writes, round.at(), round.size());
    if (!step.is_late()) wait();
    other.say(writes ? "written" : "read");
    other.await(writes ? "read" : "written again");
    if (step.is_late()) wait();
    if (!writes) {
      other.say("over");
      continue;
    }
    device.enqueue(step.queue, true, round.at(), round.size());
    wait();
    other.say("written again");
    other.await("over");
  }
}

template <class Device> int run_rounds(int argc, char **argv) {
  const auto parent = [](Peer &child) {
    Device device(rounds().size() * stride);
    child.send(device.handle());
    play(device, child, "parent");
    child.await("closed");
    device.free();
  };
  const auto child = [](Peer &parent) {
    Device device(parent.receive());
    play(device, parent, "child");
    device.close();
    parent.say("closed");
  };
  return run(argc, argv, parent, child);
}

} // namespace app
