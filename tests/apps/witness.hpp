// Counts the calls of Level Zero with which memory is shared, independently of urscope: by a tracer of the loader
// (zel_tracing_api.h), which the software device calls for each function that is called through its symbols. Each call is a line, because a
// library may share until the end of the process.
#pragma once

#include "peer.hpp"

#include <initializer_list>
#include <utility>

#include <dlfcn.h>

namespace app {

class Witness {
public:
  static constexpr const char *FUNCTIONS[] = {"MemGetIpcHandle", "MemPutIpcHandle", "MemOpenIpcHandle", "MemCloseIpcHandle"};
  static constexpr size_t COUNT = sizeof FUNCTIONS / sizeof *FUNCTIONS;

  // What the tracer calls: with pointers to the arguments, the result, its own data and data of the call.
  using Callback = void (*)(const void *, uint32_t, void *, void **);

  // From here on. `before` is also called, each before the function that it stands with.
  explicit Witness(std::initializer_list<std::pair<const char *, Callback>> before = {}) {
    loader = dlopen("libze_loader.so.1", RTLD_LAZY);
    require(loader != nullptr, "there is no libze_loader.so.1");
    const struct {
      uint32_t stype;
      const void *next;
      void *data;
    } desc = {1, nullptr, nullptr}; // zel_tracer_desc_t
    void *tracer = nullptr;
    check(find<uint32_t()>("zelEnableTracingLayer")());
    check(find<uint32_t(const void *, void **)>("zelTracerCreate")(&desc, &tracer));
    add(tracer, std::make_index_sequence<COUNT>());
    for (const auto &[function, callback] : before) add(tracer, function, callback);
    check(find<uint32_t(void *, uint8_t)>("zelTracerSetEnabled")(tracer, 1));
  }

private:
  template <size_t AT> static void count(const void *, uint32_t, void *, void **) {
    print("called: ze" + std::string(FUNCTIONS[AT]) + " 1");
  }

  template <size_t... AT> void add(void *tracer, std::index_sequence<AT...>) { (add(tracer, FUNCTIONS[AT], count<AT>), ...); }
  void add(void *tracer, const std::string &function, Callback before) {
    using Register = uint32_t(void *, uint32_t, Callback);
    check(find<Register>("zelTracer" + function + "RegisterCallback")(tracer, 0, before));
  }

  template <typename Function> Function *find(const std::string &name) {
    auto *function = reinterpret_cast<Function *>(dlsym(loader, name.c_str()));
    require(function != nullptr, "the loader has no " + name);
    return function;
  }
  static void check(uint32_t result) { require(result == 0, "the tracer is refused: " + std::to_string(result)); }

  void *loader = nullptr;
};

} // namespace app
