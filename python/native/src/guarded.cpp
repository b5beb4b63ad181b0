// Calls a function of libsycl, and catches what it throws: no exception may reach Rust or C.

#include <cstdint>
#include <exception>

namespace {

// Of what a function returns, what is in the two registers for results.
struct Results {
  std::uintptr_t words[2];
};

using Word = std::uintptr_t;
using Function = Results (*)(Word, Word, Word, Word, Word, Word);
using Report = void (*)(void *, const char *) noexcept;

} // namespace

// Returns true and the results; or false, after `report` got what the exception says. All exceptions of SYCL are derived
// from `std::exception`. Another one ends the process, where it would leave an `extern "C"` function of Rust.
extern "C" bool urscope_ipc_guarded(Function function, const Word arguments[6], Results *results, Report report, void *message) {
  try {
    *results = function(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    return true;
  } catch (const std::exception &error) {
    report(message, error.what());
    return false;
  }
}
