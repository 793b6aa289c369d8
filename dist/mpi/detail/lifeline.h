#pragma once
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <braid/core/platform/sockets.h>

namespace braid::dist::detail {

/// A TCP connection from every rank to rank 0, and a thread on each rank that watches it. The system closes it when a
/// process ends, for whatever reason. Then, or when a rank fails, rank 0 writes one line to stderr and all ranks end;
/// rank 1 writes it if rank 0 is gone.
class Lifeline {
 public:
  /// Collective. `broadcast` returns the text of rank 0 on all ranks. Throws Error when a connection fails.
  Lifeline(std::string program, int rank, int size, const std::function<std::string(const std::string&)>& broadcast);
  /// Collective. From here on, a closed connection is no longer an error.
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  /// Ends all ranks with this exit code and one line on stderr, which contains `why`.
  [[noreturn]] void fail(const std::string& why, int code);

 private:
  /// Another rank.
  struct Peer {
    int rank = 0;
    std::string name = {};
    platform::Socket socket = platform::Socket();
    std::string unread = {};
  };

  void find_peers(const std::function<std::string(const std::string&)>& broadcast);
  void accept_all(const platform::Socket& listener, const std::string& token);
  void connect(const std::string& rendezvous);
  void watch();
  bool listen_to(Peer& peer);
  [[noreturn]] void end(const std::string& line, int code);

  std::string program_;
  int rank_, size_;
  std::vector<Peer> peers_;        // on rank 0 all other ranks, elsewhere rank 0
  platform::Socket wake_, woken_;  // a pair; the destructor ends the thread through it
  std::mutex ending_;
  std::thread thread_;
};

}  // namespace braid::dist::detail
