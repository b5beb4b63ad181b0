// A process that uses IPC forks, without exec. With the argument "calls" the child makes calls of its own (of the kind that
// need no thread of the parent); without it the child only exits.
#include "ipc_app.hpp"

using namespace app;

int main(int argc, char **argv) {
  const bool calls = argc > 1 && std::string(argv[1]) == "calls";
  return run_alone([calls] {
    Gpu gpu;
    auto [memory, handle] = export_pattern(gpu, 1 << 20, 17);

    const pid_t child = fork();
    require(child >= 0, "cannot fork");
    if (child == 0) {
      if (calls) {
        for (int i = 0; i < 3; i++) put(get(memory, gpu), gpu);
        // The driver refuses it in a child. The trace describes the device again all the same, without asking the adapter.
        require(sycl::malloc_device(4096, gpu.device, gpu.context) == nullptr, "memory in a child");
      }
      print(calls ? "child called get 3, put 3" : "child called nothing");
      _exit(0); // The device's threads live in the parent only: no teardown here.
    }
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
    put(handle, gpu);
    gpu.free(memory);
    print("parent called get 1, put 1");
  });
}
