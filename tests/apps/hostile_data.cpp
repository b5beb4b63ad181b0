// Thousands of handle data that were damaged, or forged with a correct checksum: the consumer opens nothing that was not
// shared, neither process is affected, and nothing leaks.
//
// The data are those of the level_zero backend (128 bytes with an FNV-1a checksum), so the program must run with it.
#include "counts.hpp"
#include "ur_cases.hpp"

using namespace app;

constexpr size_t size = 1 << 20;
constexpr int rounds = 3000;

// Opens one kind of data, checks the result, and closes it.
struct Kind {
  const char *name;
  std::function<ur_result_t(const Bytes &)> try_open;
};

static std::vector<Kind> kinds(Ur &ur) {
  const auto open_memory = [&ur](const Bytes &data) {
    void *memory = nullptr;
    // A copy of no bytes would be null.
    const ur_result_t result = urIPCOpenMemHandleExp(ur.context, ur.device, const_cast<std::byte *>(data.data()), data.size(), &memory);
    if (result != UR_RESULT_SUCCESS) return result;
    std::byte first{1};
    ur.copy(&first, memory, 1);
    require(first == std::byte{0}, "memory of somebody else was opened");
    return urIPCCloseMemHandleExp(ur.context, memory);
  };
  const auto open_physical = [&ur](const Bytes &data) {
    ur_physical_mem_handle_t memory = nullptr;
    const ur_result_t result = urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data(), data.size(), &memory);
    return result == UR_RESULT_SUCCESS ? urIPCClosePhysMemHandleExp(ur.context, memory) : result;
  };
  const auto open_event = [&ur](const Bytes &data) {
    ur_event_handle_t event = nullptr;
    const ur_result_t result = urIPCOpenEventHandleExp(ur.context, data.data(), data.size(), &event);
    if (result != UR_RESULT_SUCCESS) return result;
    CHECK(urEventWait(1, &event));
    return urEventRelease(event);
  };
  std::vector<Kind> all = {{"memory", open_memory}, {"physical memory", open_physical}};
  if (ur.supports(UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP)) all.push_back({"event", open_event});
  return all;
}

static void update_checksum(Bytes &data) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (size_t i = 0; i < 120; ++i) sum = (sum ^ static_cast<uint64_t>(data[i])) * 0x100000001b3u;
  std::memcpy(&data[120], &sum, sizeof sum);
}

// Damaged: bits, the length, or a piece of other data.
static Bytes altered(Random &random, const std::vector<Bytes> &whole, size_t kind) {
  Bytes data = whole[kind];
  switch (random.below(4)) {
  case 0:
    for (size_t flips = 1 + random.below(8); flips > 0; --flips)
      data[random.below(data.size())] ^= static_cast<std::byte>(1 << random.below(8));
    break;
  case 1: data.resize(random.below(2 * data.size())); break;
  case 2: {
    const Bytes &other = whole[random.below(whole.size())];
    const size_t from = random.below(data.size());
    std::copy(other.begin() + static_cast<long>(random.below(from + 1)), other.begin() + static_cast<long>(from), data.begin());
    break;
  }
  default:
    for (size_t at = random.below(data.size()); at < data.size(); ++at) data[at] = static_cast<std::byte>(random.next());
  }
  return data;
}

// Forged: a field with another value, and a correct checksum. It may still be valid.
static Bytes forged(Random &random, Bytes data, pid_t peer) {
  struct Field { size_t at, length; };
  const Field fields[] = {{10, 2}, {12, 4}, {16, 8}, {24, 8}, {32, 8}, {40, 8}, {48, 4}, {52, 4}, {56, 4}, {60, 60}, {116, 4}};
  const uint64_t values[] = {0, 1, 2, 3, 4, 5, 4096, size, 1ull << 31, 1ull << 32, 1ull << 63, ~0ull, ~0ull >> 1,
                             static_cast<uint64_t>(getpid()), static_cast<uint64_t>(peer), random.next(), random.below(256)};
  for (size_t changes = 1 + random.below(3); changes > 0; --changes) {
    const Field field = fields[random.below(std::size(fields))];
    const uint64_t value = values[random.below(std::size(values))];
    if (field.length <= 8) std::memcpy(&data[field.at], &value, field.length);
    else data[field.at + random.below(field.length)] ^= static_cast<std::byte>(random.next());
  }
  update_checksum(data);
  return data;
}

static void producer(Peer &consumer) {
  Ur ur;
  void *memory = ur.allocate(size);
  ur_physical_mem_handle_t physical = ur.make_memory(UR_PHYSICAL_MEM_FLAG_ENABLE_IPC, 2 << 20);
  std::vector<Data> all{ur.get(memory), ur.get(physical)};
  const std::vector<Kind> own = kinds(ur);
  ur_event_handle_t event = nullptr;
  if (own.size() > 2) all.push_back(ur.get(event = ur.make_event()));
  for (size_t i = 0; i < own.size(); ++i) CHECK(own[i].try_open(all[i].copy()));

  const Holdings before;
  consumer.say(std::to_string(getpid()));
  for (const Data &data : all) consumer.send(data.copy());
  consumer.await("done");
  for (size_t i = 0; i < own.size(); ++i) CHECK(own[i].try_open(all[i].copy()));
  print("producer: " + Holdings().more_than(before));

  ur.put(all[0]);
  CHECK(urIPCPutPhysMemHandleExp(ur.context, all[1].data));
  if (event != nullptr) {
    CHECK(urIPCPutEventHandleExp(ur.context, all[2].data));
    CHECK(urEventRelease(event));
  }
  CHECK(urPhysicalMemRelease(physical));
  ur.free(memory);
}

static void consumer(Peer &producer) {
  Ur ur;
  const pid_t peer = static_cast<pid_t>(std::stol(producer.receive_word()));
  const std::vector<Kind> all = kinds(ur);
  std::vector<Bytes> whole;
  for (size_t i = 0; i < all.size(); ++i) whole.push_back(producer.receive());
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].try_open(whole[i]));
    Bytes same = whole[i];
    update_checksum(same);
    require(same == whole[i], "the checksum differs from the one that this program computes");
  }

  Random random{0x9e3779b97f4a7c15u};
  const auto refused = [](ur_result_t result) {
    return result == UR_RESULT_ERROR_INVALID_VALUE || result == UR_RESULT_ERROR_INVALID_ARGUMENT;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    int accepted = 0, other = 0;
    const auto tries = [&](int times) {
      for (int round = 0; round < times; ++round) {
        const Bytes data = altered(random, whole, i);
        const ur_result_t result = all[i].try_open(data);
        if (result == UR_RESULT_SUCCESS && data != whole[i]) ++accepted;
        const ur_result_t what = all[i].try_open(forged(random, whole[i], peer));
        for (ur_result_t one : {result, what})
          if (one != UR_RESULT_SUCCESS && !refused(one)) ++other;
      }
      CHECK(all[i].try_open(whole[i]));
    };
    tries(rounds); // By then the caches are filled.
    const Holdings before;
    tries(rounds);
    print(std::string(all[i].name) + ": " + std::to_string(accepted) + " altered accepted, " + std::to_string(other) +
          " answered otherwise; " + Holdings().more_than(before));
  }
  producer.say("done");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
