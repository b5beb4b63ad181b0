// Handle data that was damaged on the way: it must not be opened, and intact data must keep working.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static bool refused(const Bytes &data, const Gpu &gpu) {
  try {
    require(ipc::open(data, gpu.context, gpu.device) != nullptr, "a success without a pointer");
    return false;
  } catch (const sycl::exception &) {
    return true;
  }
}

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 1);
  consumer.send(handle.data());
  consumer.await("closed");
  put(handle, gpu);
  consumer.say("put");
  consumer.await("done");
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const Bytes whole = producer.receive();
  size_t opened = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes data = whole;
    data[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    if (!refused(data, gpu)) ++opened;
  }
  print("opened with a bit changed: " + std::to_string(opened));
  opened = 0;
  for (size_t length = 0; length < whole.size(); ++length)
    if (!refused(Bytes(whole.begin(), whole.begin() + length), gpu)) ++opened;
  print("opened when cut short: " + std::to_string(opened));
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  print(std::string("with a byte too many ") + (refused(longer, gpu) ? "refused" : "accepted"));

  const Bytes handed_in = whole;
  std::byte *memory = open(handed_in, gpu);
  print("consumer read " + checksum(gpu.read(memory, size)));
  print(handed_in == whole ? "the data are untouched" : "the data were written to");
  close(memory, gpu);
  producer.say("closed");
  producer.await("put");
  print(std::string("after their put ") + (refused(whole, gpu) ? "refused" : "accepted"));
  producer.say("done");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
