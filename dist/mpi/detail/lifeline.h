#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <braid/core/platform/sockets.h>

namespace braid::dist::detail {

/// The TCP connections from every rank to rank 0, and the thread of each rank that watches them: how the ranks of an
/// MPICommunicator end together.
class Lifeline {
 public:
  /// Returns the text of rank 0 on all ranks.
  using Broadcast = std::function<std::string(const std::string&)>;

  /// Collective; the patience of rank 0 counts. Throws Error when a connection fails.
  Lifeline(std::string program, int rank, int size, std::chrono::seconds patience, platform::Socket::Reach reach,
           const Broadcast& broadcast);
  /// Collective. From here on, a closed connection is no longer an error.
  ~Lifeline();

  /// Ends all ranks with this exit code and one line on stderr, which contains `why`.
  [[noreturn]] void fail(const std::string& why, int code);

 private:
  /// Another rank.
  struct Peer {
    int rank = 0;
    std::string name = {};
    platform::Socket socket = platform::Socket();
    int silence = 0;  // heartbeats of this rank since the last word of that one
  };

  void find_peers(platform::Socket::Reach reach, const Broadcast& broadcast);
  void accept_all(const platform::Socket& listener, const std::string& token);
  void admit(Peer& caller, const std::string& token);
  void connect(const std::string& rendezvous);
  void watch();
  bool listen_to(Peer& peer);
  void beat();
  [[noreturn]] void lose(const Peer& peer, const std::string& how);
  [[noreturn]] void end(const std::string& line, int code);

  std::string program_;
  int rank_, size_;
  std::chrono::seconds patience_;
  std::vector<Peer> peers_;  // on rank 0 all other ranks, elsewhere rank 0
  std::atomic<bool> leaves_ = false;
  std::mutex ending_;
  std::thread thread_;
};

}  // namespace braid::dist::detail
