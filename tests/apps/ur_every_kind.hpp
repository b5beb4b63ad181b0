// Cases that are the same for memory, physical memory and events.
//
// A kind is a class of objects that can be shared, each ended with its case:
//   Kind(Ur &)                            creates one
//   Kind::ur                              its argument
//   Data get(), ur_result_t get(Data &)   get
//   ur_result_t release()                 ends it before its case does
//   Kind::Opened                          the result of opening its data
//   Kind::put(Ur &, const Data &)         put
//   Kind::open(Ur &, const View &, Opened *), Kind::close(Ur &, Opened)
#pragma once

#include "ur_cases.hpp"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace app {

// Opens bytes, and closes the result. Reports a success that opened nothing, and an error that returned something.
template <typename Kind> std::string open_and_close(Ur &ur, const View &data) {
  Answers answers;
  const auto untouched = reinterpret_cast<typename Kind::Opened>(&answers);
  auto opened = untouched;
  const ur_result_t result = Kind::open(ur, data, &opened);
  answers << result;
  if (result == UR_RESULT_SUCCESS && opened != untouched) Kind::close(ur, opened);
  else if (opened != untouched) answers << "touched";
  else if (result == UR_RESULT_SUCCESS) answers << "nothing";
  return answers;
}

// An object and data of it, which are put at the end of its case.
template <typename Kind> struct Got : Kind {
  template <typename... Arguments> explicit Got(Ur &ur, Arguments... arguments) : Kind(ur, arguments...), data(this->get()) {}
  ~Got() {
    if (data.data != nullptr) Kind::put(this->ur, data);
  }
  ur_result_t put() { return Kind::put(this->ur, std::exchange(data, {})); }
  Bytes copy() const { return data.copy(); }
  typename Kind::Opened open() {
    typename Kind::Opened opened{};
    CHECK(Kind::open(this->ur, data.copy(), &opened));
    require(opened != nullptr, "a success without a result");
    return opened;
  }

  Data data;
};

// Opens data of a length that no get returns. Behind them is memory that cannot be read: an adapter refuses the length first.
template <typename Kind> std::string open_resized(Ur &ur, int by) {
  Got<Kind> object(ur);
  const Bytes bytes = object.copy();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(pages != MAP_FAILED, "no memory");
  auto *end = static_cast<std::byte *>(pages) + page;
  require(mprotect(end, page, PROT_NONE) == 0, "cannot protect memory");
  std::byte *begin = std::copy(bytes.begin(), bytes.end(), end - bytes.size()) - bytes.size();
  const std::string answer = open_and_close<Kind>(ur, View(begin, static_cast<size_t>(static_cast<int>(bytes.size()) + by)));
  munmap(pages, 2 * page);
  return answer;
}

// Opens data in which one field was changed. The offset is the adapter's; another implementation may have the field
// elsewhere, but these are not the bytes that it returned.
template <typename Kind, typename T> std::string open_altered(Ur &ur, size_t offset, T value) {
  Got<Kind> object(ur);
  Bytes bytes = object.copy();
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return open_and_close<Kind>(ur, bytes);
}

// Opens as many bytes as a get returns, all the same.
template <typename Kind> std::string open_filled(Ur &ur, uint8_t byte) {
  Got<Kind> object(ur);
  return open_and_close<Kind>(ur, Bytes(object.data.size, std::byte{byte}));
}

// A call with a null argument, which is otherwise right.
#define NULL_CASE(Kind, name, ...)                                                                                     \
  null_case<Kind>(name, []([[maybe_unused]] Ur &ur, [[maybe_unused]] Kind &object, [[maybe_unused]] Data &data,        \
                           [[maybe_unused]] Kind::Opened &opened) { return __VA_ARGS__; })
template <typename Kind, typename Call> Case null_case(const char *name, Call call) {
  return {name, [call](Ur &ur, Answers &answers) {
    Kind object(ur);
    Data data = object.get();
    typename Kind::Opened opened{};
    answers << call(ur, object, data, opened);
  }};
}

template <typename Kind> std::vector<Case> alone_of_every_kind() {
  using Opened = typename Kind::Opened;
  return {
      {"get-and-put", RUNS {
         Kind object(ur);
         Data data;
         answers << object.get(data) << (data.data != nullptr && data.size > 0 ? "data" : "nothing") << Kind::put(ur, data);
       }},
      {"get-twice", RUNS {
         Kind object(ur);
         Data one, other;
         answers << object.get(one) << object.get(other) << (one.data != other.data ? "two" : "one");
         answers << Kind::put(ur, one) << Kind::put(ur, other);
       }},
      {"get-after-put", RUNS {
         Kind object(ur);
         Data data;
         answers << object.get(data) << Kind::put(ur, data) << object.get(data) << open_and_close<Kind>(ur, data.copy());
         answers << Kind::put(ur, data);
       }},
      {"put-of-one-of-two", RUNS {
         Got<Kind> object(ur);
         answers << Kind::put(ur, std::exchange(object.data, object.get())) << open_and_close<Kind>(ur, object.copy()) << object.put();
       }},
      // Between the two puts the program opens a file of its own, which may get a number that the first put has closed.
      {"put-of-both-and-an-unrelated-file", RUNS {
         Got<Kind> object(ur);
         answers << Kind::put(ur, std::exchange(object.data, object.get()));
         const int unrelated = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
         answers << object.put() << (fcntl(unrelated, F_GETFD) >= 0 ? "kept" : "closed");
         ::close(unrelated);
       }},
      {"put-after-release", RUNS { Got<Kind> object(ur); answers << object.release() << object.put(); }},
      {"release-without-put", RUNS {
         {
           Kind object(ur);
           object.get();
           answers << object.release();
         }
         Got<Kind> next(ur);
         answers << open_and_close<Kind>(ur, next.copy()) << next.put();
       }},
      {"open-and-close", RUNS {
         Got<Kind> object(ur);
         Opened opened{};
         answers << Kind::open(ur, object.copy(), &opened) << Kind::close(ur, opened) << object.put();
       }},
      {"open-twice", RUNS {
         Got<Kind> object(ur);
         Opened one{}, other{};
         answers << Kind::open(ur, object.copy(), &one) << Kind::open(ur, object.copy(), &other) << (one != other ? "two" : "one");
         answers << Kind::close(ur, one) << Kind::close(ur, other) << object.put();
       }},
      {"open-a-hundred-times", RUNS {
         Got<Kind> object(ur);
         std::vector<Opened> all(100);
         for (auto &opened : all) CHECK(Kind::open(ur, object.copy(), &opened));
         for (auto &opened : all) CHECK(Kind::close(ur, opened));
         answers << object.put();
       }},
      {"open-of-one-byte-more", RUNS { answers << open_resized<Kind>(ur, 1); }},
      {"open-of-one-byte-less", RUNS { answers << open_resized<Kind>(ur, -1); }},
      {"open-of-zeros", RUNS { answers << open_filled<Kind>(ur, 0); }},
      {"open-of-garbage", RUNS { answers << open_filled<Kind>(ur, 0xa5); }},
      {"open-after-put", RUNS {
         Got<Kind> object(ur);
         const Bytes bytes = object.copy();
         answers << object.put() << open_and_close<Kind>(ur, bytes);
       }},
      {"open-of-a-stale-handle", RUNS {
         Got<Kind> kept(ur);
         const Data stale = kept.get();
         const Bytes bytes = stale.copy();
         answers << Kind::put(ur, stale) << open_and_close<Kind>(ur, bytes) << kept.put();
       }},
      {"open-after-release", RUNS {
         Got<Kind> object(ur);
         const Bytes bytes = object.copy();
         answers << object.release() << open_and_close<Kind>(ur, bytes) << object.put();
       }},
  };
}

// The behaviour of an adapter is undefined here: run only where these are refused.
template <typename Kind> std::vector<Case> misuse_of_every_kind() {
  return {
      {"put-twice", RUNS { Got<Kind> object(ur); answers << Kind::put(ur, object.data) << object.put(); }},
      {"put-of-a-copy", RUNS {
         Got<Kind> object(ur);
         Bytes bytes = object.copy();
         answers << Kind::put(ur, {bytes.data(), bytes.size()}) << object.put();
       }},
      {"put-of-the-middle", RUNS {
         Got<Kind> object(ur);
         answers << Kind::put(ur, {static_cast<std::byte *>(object.data.data) + 8, object.data.size}) << object.put();
       }},
  };
}

// The descriptors that this process has open.
inline std::vector<int> open_descriptors() {
  std::vector<int> found;
  DIR *folder = opendir("/proc/self/fd");
  require(folder != nullptr, "cannot see the descriptors of this process");
  while (const dirent *entry = readdir(folder))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(folder)) found.push_back(std::atoi(entry->d_name));
  closedir(folder);
  return found;
}

// During its lifetime, limits the process to this many descriptors more than it has now.
class RoomFor {
public:
  explicit RoomFor(rlim_t more) {
    const std::vector<int> before = open_descriptors();
    const int end = 1 + *std::max_element(before.begin(), before.end());
    // Below the limit, only these numbers must be free.
    for (int number = 0; (number = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) < end;) {
      require(number >= 0, "cannot open /dev/null");
      fillers.push_back(number);
    }
    fillers.push_back(end);
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "cannot read the limit of descriptors");
    const rlimit lower = {static_cast<rlim_t>(end) + 1 + more, limit.rlim_max};
    require(setrlimit(RLIMIT_NOFILE, &lower) == 0, "cannot lower the limit of descriptors");
  }
  RoomFor(const RoomFor &) = delete;
  ~RoomFor() {
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int number : fillers) ::close(number);
  }

private:
  std::vector<int> fillers;
  rlimit limit = {};
};

// The child exports one object, and lives until the parent ends it.
template <typename Kind> void export_and_wait(Ur &ur, Peer &parent, Answers &) {
  Got<Kind> object(ur);
  parent.send(object.copy());
  parent.await("done");
  CHECK(object.put());
}

// Of memory and physical memory: each process sees what the other one writes. `object` of a Kind is what it shares, and
// Kind::Mapped shows its bytes.
template <typename Kind> CaseOfTwo open_of_another_process() {
  using Mapped = typename Kind::Mapped;
  return {"open-of-another-process", PARENT {
    typename Kind::Opened opened{};
    answers << Kind::open(ur, child.receive(), &opened) << Mapped{ur, opened}.compare(1);
    Mapped{ur, opened}.fill(2);
    answers << Kind::close(ur, opened);
    child.say("written");
    answers << child.receive_word();
  }, CHILD {
    Got<Kind> memory(ur);
    Mapped{ur, memory.object}.fill(1);
    parent.send(memory.copy());
    parent.await("written");
    parent.say(Mapped{ur, memory.object}.compare(2));
  }};
}

template <typename Kind> std::vector<CaseOfTwo> of_two_of_every_kind() {
  return {
      {"open-leaves-the-data-alone", PARENT {
         const Bytes whole = child.receive(), data = whole;
         answers << open_and_close<Kind>(ur, data) << (data == whole ? "untouched" : "changed");
         child.say("done");
       }, export_and_wait<Kind>},
      {"open-after-the-put-of-another-process", PARENT {
         const Bytes data = child.receive();
         child.await("put");
         answers << open_and_close<Kind>(ur, data);
         child.say("done");
       }, CHILD {
         Got<Kind> object(ur);
         parent.send(object.copy());
         CHECK(object.put());
         parent.say("put");
         parent.await("done");
       }},
      {"open-after-the-end-of-another-process", PARENT {
         const Bytes data = child.receive();
         child.say("end");
         child.await_end();
         answers << open_and_close<Kind>(ur, data);
       }, CHILD {
         Kind object(ur);
         parent.send(object.get().copy());
         parent.await("end");
       }},
      {"open-without-permission", PARENT {
         Got<Kind> object(ur);
         const Untraceable untraceable;
         child.send(object.copy());
         child.await("done");
       }, CHILD {
         const Bytes data = parent.receive();
         give_up_the_right_to_trace();
         answers << open_and_close<Kind>(ur, data);
         parent.say("done");
       }},
      // With room for none, for one, and so on until it is enough: equal refusals are printed once.
      {"open-without-descriptors", PARENT {
         const Bytes data = child.receive();
         const size_t before = open_descriptors().size();
         std::string last;
         for (rlim_t room = 0; last != "0"; ++room) {
           require(room < 32, "never enough descriptors");
           std::string answer;
           {
             RoomFor more(room);
             answer = open_and_close<Kind>(ur, Bytes(data));
           }
           if (answer != last) answers << answer;
           last = answer;
         }
         // By now the caches are filled.
         const size_t opened = open_descriptors().size();
         answers << open_and_close<Kind>(ur, data) << (open_descriptors().size() == opened && opened <= before + 1 ? "none-lost" : "lost");
         child.say("done");
       }, export_and_wait<Kind>},
  };
}

} // namespace app
