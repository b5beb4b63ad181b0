// A clean program of several ranks, as an MPI launcher starts them: rank 0 shares memory, the others open it. They exchange the bytes and
// their steps through files in the folder that the argument names. With the argument "leak" behind it, the others close nothing.
#include "ipc_app.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

using namespace app;

constexpr size_t size = 1 << 20;

static int of_launcher(const char *mpich, const char *open_mpi) {
  for (const char *name : {mpich, open_mpi})
    if (const char *value = std::getenv(name)) return std::atoi(value);
  require(false, std::string("no launcher has set ") + mpich);
  return -1;
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
    const bool leaks = argc == 3 && std::string(argv[2]) == "leak";
    Gpu gpu;
    const int rank = of_launcher("PMI_RANK", "OMPI_COMM_WORLD_RANK");
    const int ranks = of_launcher("PMI_SIZE", "OMPI_COMM_WORLD_SIZE");
    if (rank == 0) {
      auto [memory, handle] = export_pattern(gpu, size, 1);
      leave(folder + "/bytes", handle.data());
      for (int other = 1; other < ranks; ++other) take(folder + "/closed-" + std::to_string(other));
      put(handle, gpu);
      gpu.free(memory);
    } else {
      std::byte *memory = open(take(folder + "/bytes"), gpu);
      print("consumer read " + checksum(gpu.read(memory, size)));
      if (!leaks) close(memory, gpu);
      leave(folder + "/closed-" + std::to_string(rank), {});
    }
  });
}
