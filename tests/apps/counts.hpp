// The resources of a process, as the system reports them.
#pragma once

#include "peer.hpp"

#include <fstream>

#include <dirent.h>
#include <malloc.h>

namespace app {

inline size_t descriptors() {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// The number of lines of a file that contain a word; `number` receives the first number after the word.
inline size_t lines_with(const char *file, const std::string &word, size_t *number = nullptr) {
  size_t count = 0;
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);) {
    const size_t at = line.find(word);
    if (at == std::string::npos) continue;
    ++count;
    if (number != nullptr) *number = std::strtoull(line.c_str() + at + word.size(), nullptr, 10);
  }
  return count;
}

// The descriptors of a process, its mappings of the software device's memory, and its own memory. The trace that is written
// meanwhile does not count.
struct Holdings {
  size_t open = descriptors();
  size_t mapped = lines_with("/proc/self/maps", "memfd:ze_soft");
  // In bytes, of the first heap only; the other in KiB, of all heaps and stacks.
  size_t bytes = mallinfo2().uordblks;
  size_t resident = resident_now();

  // What has grown, in words. With several threads, heaps grow and shrink unpredictably. A few KiB belong to the runtime; the
  // smallest block, leaked in each of a thousand rounds, is twice the tolerance.
  std::string more_than(const Holdings &before, bool alone = true) const {
    const bool memory = (alone && bytes >= before.bytes + 16384) || resident >= before.resident + 512;
    return std::to_string(open - before.open) + " descriptors, " + std::to_string(mapped - before.mapped) + " mappings and " +
           (memory ? std::to_string(bytes - before.bytes) + " bytes, " + std::to_string(resident - before.resident) + " KiB"
                   : "no memory") +
           " more";
  }

private:
  static size_t resident_now() {
    size_t kib = 0;
    require(lines_with("/proc/self/status", "RssAnon:", &kib) == 1, "the system does not say what is resident");
    return kib;
  }
};

} // namespace app
