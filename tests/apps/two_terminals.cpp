// A server and a client that are started apart, as in two terminals: `two_terminals server SOCKET` and `two_terminals client SOCKET`. The
// server frees memory while the client has it open; with `fixed` behind it, only once the client has closed it.
#include "ipc_app.hpp"

#include <sys/un.h>

using namespace app;

static sockaddr_un address() {
  sockaddr_un named = {};
  named.sun_family = AF_UNIX;
  const std::string path = argument(1);
  require(path.size() < sizeof named.sun_path, "the path of the socket is too long");
  path.copy(named.sun_path, path.size());
  return named;
}

static void server(int listener) {
  Gpu gpu;
  const Peer client(accept(listener, nullptr, nullptr));
  auto [memory, handle] = export_pattern(gpu, unpooled, 22);
  client.send(handle.data());
  client.await("opened");
  put(handle, gpu);
  if (is_fixed()) client.await("closed");
  gpu.free(memory);
  client.say("freed");
}

static void client(int connection) {
  Gpu gpu;
  const Peer server(connection);
  void *mapping = open(server.receive(), gpu);
  server.say("opened");
  if (!is_fixed()) server.await("freed");
  close(mapping, gpu);
  if (is_fixed()) server.say("closed");
}

int main(int argc, char **argv) {
  arguments.assign(argv + 1, argv + argc);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const sockaddr_un named = address();
  const auto *at = reinterpret_cast<const sockaddr *>(&named);
  return guarded([&] {
    if (argument(0) == "server") {
      require(bind(socket, at, sizeof named) == 0 && listen(socket, 1) == 0, "cannot listen");
      server(socket);
    } else {
      // The server may not listen yet.
      for (int tries = 0; connect(socket, at, sizeof named) != 0; tries++) {
        require(tries < 6000, "nobody listens");
        usleep(10000);
      }
      client(socket);
    }
  });
}
