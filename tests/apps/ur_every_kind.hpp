// Cases that are the same for memory, physical memory and events.
//
// A kind is a class of objects that can be shared, each ended with its case:
//   Kind(Ur &)                            creates one
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
template <typename Kind> void open_and_close(Ur &ur, Answers &answers, const View &data) {
  const auto untouched = reinterpret_cast<typename Kind::Opened>(&answers);
  auto opened = untouched;
  const ur_result_t result = Kind::open(ur, data, &opened);
  answers << result;
  if (result != UR_RESULT_SUCCESS) {
    if (opened != untouched) answers << "touched";
  } else if (opened == untouched) {
    answers << "nothing";
  } else {
    Kind::close(ur, opened);
  }
}

// The same with a length that no get returns. Behind the data is memory that cannot be read: an adapter refuses the length first.
template <typename Kind> void open_resized(Ur &ur, Answers &answers, int by) {
  Kind object(ur);
  const Data data = object.get();
  const Bytes bytes = data.copy();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(pages != MAP_FAILED, "no memory");
  auto *end = static_cast<std::byte *>(pages) + page;
  require(mprotect(end, page, PROT_NONE) == 0, "cannot protect memory");
  std::byte *begin = std::copy(bytes.begin(), bytes.end(), end - bytes.size()) - bytes.size();
  open_and_close<Kind>(ur, answers, View(begin, static_cast<size_t>(static_cast<int>(bytes.size()) + by)));
  munmap(pages, 2 * page);
  CHECK(Kind::put(ur, data));
}

// The same with data in which one field was changed. The offset is the adapter's; another implementation may have the field
// elsewhere, but these are not the bytes that it returned.
template <typename Kind, typename T> void open_altered(Ur &ur, Answers &answers, size_t offset, T value) {
  Kind object(ur);
  const Data data = object.get();
  Bytes bytes = data.copy();
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  open_and_close<Kind>(ur, answers, bytes);
  CHECK(Kind::put(ur, data));
}

template <typename Kind> std::vector<Case> alone_of_every_kind() {
  return {
      {"get-and-put",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         Data data;
         answers << object.get(data) << (data.data != nullptr && data.size > 0 ? "data" : "nothing");
         answers << Kind::put(ur, data);
       }},
      {"get-twice",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         Data one, other;
         answers << object.get(one) << object.get(other) << (one.data != other.data ? "two" : "one");
         answers << Kind::put(ur, one) << Kind::put(ur, other);
       }},
      {"get-after-put",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         Data data;
         answers << object.get(data) << Kind::put(ur, data) << object.get(data);
         open_and_close<Kind>(ur, answers, data.copy());
         answers << Kind::put(ur, data);
       }},
      {"put-of-one-of-two",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data one = object.get(), other = object.get();
         answers << Kind::put(ur, one);
         open_and_close<Kind>(ur, answers, other.copy());
         answers << Kind::put(ur, other);
       }},
      // Between the two puts the program opens a file of its own, which may get a number that the first put has closed.
      {"put-of-both-and-an-unrelated-file",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data one = object.get(), other = object.get();
         answers << Kind::put(ur, one);
         const int unrelated = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
         answers << Kind::put(ur, other) << (fcntl(unrelated, F_GETFD) >= 0 ? "kept" : "closed");
         ::close(unrelated);
       }},
      {"put-after-release",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         answers << object.release() << Kind::put(ur, data);
       }},
      {"release-without-put",
       [](Ur &ur, Answers &answers) {
         {
           Kind object(ur);
           object.get();
           answers << object.release();
         }
         Kind next(ur);
         const Data data = next.get();
         open_and_close<Kind>(ur, answers, data.copy());
         answers << Kind::put(ur, data);
       }},
      {"open-and-close",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         typename Kind::Opened opened{};
         answers << Kind::open(ur, data.copy(), &opened) << Kind::close(ur, opened) << Kind::put(ur, data);
       }},
      {"open-twice",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         typename Kind::Opened one{}, other{};
         answers << Kind::open(ur, data.copy(), &one) << Kind::open(ur, data.copy(), &other);
         answers << (one != other ? "two" : "one") << Kind::close(ur, one) << Kind::close(ur, other) << Kind::put(ur, data);
       }},
      {"open-a-hundred-times",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         std::vector<typename Kind::Opened> all(100);
         for (auto &opened : all) CHECK(Kind::open(ur, data.copy(), &opened));
         for (auto &opened : all) CHECK(Kind::close(ur, opened));
         answers << Kind::put(ur, data);
       }},
      {"open-of-one-byte-more", [](Ur &ur, Answers &answers) { open_resized<Kind>(ur, answers, 1); }},
      {"open-of-one-byte-less", [](Ur &ur, Answers &answers) { open_resized<Kind>(ur, answers, -1); }},
      {"open-of-zeros",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         open_and_close<Kind>(ur, answers, Bytes(data.size));
         CHECK(Kind::put(ur, data));
       }},
      {"open-of-garbage",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         open_and_close<Kind>(ur, answers, Bytes(data.size, std::byte{0xa5}));
         CHECK(Kind::put(ur, data));
       }},
      {"open-after-put",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         const Bytes bytes = data.copy();
         answers << Kind::put(ur, data);
         open_and_close<Kind>(ur, answers, bytes);
       }},
      {"open-of-a-stale-handle",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data kept = object.get(), stale = object.get();
         const Bytes bytes = stale.copy();
         answers << Kind::put(ur, stale);
         open_and_close<Kind>(ur, answers, bytes);
         answers << Kind::put(ur, kept);
       }},
      {"open-after-release",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         const Bytes bytes = data.copy();
         answers << object.release();
         open_and_close<Kind>(ur, answers, bytes);
         answers << Kind::put(ur, data);
       }},
  };
}

// The behaviour of an adapter is undefined here: run only where these are refused.
template <typename Kind> std::vector<Case> misuse_of_every_kind() {
  return {
      {"put-twice",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         answers << Kind::put(ur, data) << Kind::put(ur, data);
       }},
      {"put-of-a-copy",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         Bytes bytes = data.copy();
         answers << Kind::put(ur, {bytes.data(), bytes.size()}) << Kind::put(ur, data);
       }},
      {"put-of-the-middle",
       [](Ur &ur, Answers &answers) {
         Kind object(ur);
         const Data data = object.get();
         answers << Kind::put(ur, {static_cast<std::byte *>(data.data) + 8, data.size}) << Kind::put(ur, data);
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
  Kind object(ur);
  const Data data = object.get();
  parent.send(data.copy());
  parent.await("done");
  CHECK(Kind::put(ur, data));
}

template <typename Kind> std::vector<CaseOfTwo> of_two_of_every_kind() {
  return {
      {"open-leaves-the-data-alone",
       [](Ur &ur, Peer &child, Answers &answers) {
         const Bytes whole = child.receive(), data = whole;
         open_and_close<Kind>(ur, answers, data);
         answers << (data == whole ? "untouched" : "changed");
         child.say("done");
       },
       export_and_wait<Kind>},
      {"open-after-the-put-of-another-process",
       [](Ur &ur, Peer &child, Answers &answers) {
         const Bytes data = child.receive();
         child.await("put");
         open_and_close<Kind>(ur, answers, data);
         child.say("done");
       },
       [](Ur &ur, Peer &parent, Answers &) {
         Kind object(ur);
         const Data data = object.get();
         parent.send(data.copy());
         CHECK(Kind::put(ur, data));
         parent.say("put");
         parent.await("done");
       }},
      {"open-after-the-end-of-another-process",
       [](Ur &ur, Peer &child, Answers &answers) {
         const Bytes data = child.receive();
         child.say("end");
         child.await_end();
         open_and_close<Kind>(ur, answers, data);
       },
       [](Ur &ur, Peer &parent, Answers &) {
         Kind object(ur);
         parent.send(object.get().copy());
         parent.await("end");
       }},
      {"open-without-permission",
       [](Ur &ur, Peer &child, Answers &) {
         Kind object(ur);
         const Data data = object.get();
         const Untraceable untraceable;
         child.send(data.copy());
         child.await("done");
         CHECK(Kind::put(ur, data));
       },
       [](Ur &ur, Peer &parent, Answers &answers) {
         const Bytes data = parent.receive();
         give_up_the_right_to_trace();
         open_and_close<Kind>(ur, answers, data);
         parent.say("done");
       }},
      // With room for none, for one, and so on until it is enough: equal refusals are printed once.
      {"open-without-descriptors",
       [](Ur &ur, Peer &child, Answers &answers) {
         const Bytes data = child.receive();
         const size_t before = open_descriptors().size();
         std::vector<std::string> lines;
         for (rlim_t room = 0; lines.empty() || lines.back() != " 0"; ++room) {
           require(room < 32, "never enough descriptors");
           Answers answer;
           {
             RoomFor more(room);
             open_and_close<Kind>(ur, answer, Bytes(data));
           }
           if (lines.empty() || lines.back() != answer.line()) lines.push_back(answer.line());
         }
         for (const auto &answer : lines) answers << answer.substr(1);
         // By now the caches are filled.
         const size_t opened = open_descriptors().size();
         open_and_close<Kind>(ur, answers, data);
         answers << (open_descriptors().size() == opened && opened <= before + 1 ? "none-lost" : "lost");
         child.say("done");
       },
       export_and_wait<Kind>},
  };
}

} // namespace app
