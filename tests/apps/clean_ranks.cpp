// A clean program of several ranks, as an MPI launcher or Slurm starts them: the first rank of a host shares memory, the others there open
// it. They exchange the bytes and their steps through files in the folder that the argument names. With the argument "leak" behind it, the
// others close nothing. With "killed", each kills itself instead, and whoever runs it has to leave its last step.
#include "ipc_app.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <thread>

using namespace app;

constexpr size_t size = 1 << 20;

// The first number that a launcher has set: MPICH, Open MPI, Slurm.
static std::optional<int> of_launcher(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const char *value = std::getenv(name)) return std::atoi(value);
  return {};
}

// Slurm lists the ranks of the host instead.
static int ranks_of_host() {
  if (const auto ranks = of_launcher({"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})) return *ranks;
  const char *listed = std::getenv("SLURM_GTIDS");
  require(listed, "no launcher has set MPI_LOCALNRANKS");
  const std::string ranks = listed;
  return 1 + static_cast<int>(std::count(ranks.begin(), ranks.end(), ','));
}

// Other processes see a file complete or not at all.
static void leave(const std::string &file, const Bytes &bytes) {
  std::ofstream(file + ".new", std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  require(std::rename((file + ".new").c_str(), file.c_str()) == 0, "cannot leave " + file);
}

static Bytes take(const std::string &file) {
  for (int tries = 0; tries < 6000; ++tries) {
    if (std::ifstream stream(file, std::ios::binary); stream) {
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      const auto *begin = reinterpret_cast<const std::byte *>(text.data());
      return Bytes(begin, begin + text.size());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  require(false, "nobody left " + file);
  return {};
}

int main(int argc, char **argv) {
  return guarded([&] {
    require(argc == 2 || argc == 3, "which folder?");
    const std::string folder = argv[1];
    const std::string mode = argc == 3 ? argv[2] : "";
    Gpu gpu;
    const auto rank = of_launcher({"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"});
    require(rank.has_value(), "no launcher has set MPI_LOCALRANKID");
    const int ranks = ranks_of_host();
    if (rank == 0) {
      auto [memory, handle] = export_pattern(gpu, size, 1);
      leave(folder + "/bytes", handle.data());
      for (int other = 1; other < ranks; ++other) take(folder + "/closed-" + std::to_string(other));
      put(handle, gpu);
      gpu.free(memory);
    } else {
      std::byte *memory = open(take(folder + "/bytes"), gpu);
      print("consumer read " + checksum(gpu.read(memory, size)));
      if (mode == "killed") std::raise(SIGKILL);
      if (mode != "leak") close(memory, gpu);
      leave(folder + "/closed-" + std::to_string(*rank), {});
    }
  });
}
