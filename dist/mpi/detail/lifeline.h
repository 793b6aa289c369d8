#pragma once
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <braid/dist/mpi/detail/socket.h>

namespace braid::dist::detail {

/// A TCP connection from every rank to rank 0, and a thread that listens at it. The system closes it when a process
/// ends, whatever ended it. Then, or when a rank fails, rank 0 writes one line to stderr and all ranks end; rank 1 does
/// so when it is rank 0 that is gone.
class Lifeline {
 public:
  /// Every rank at once; `broadcast` gives all ranks the text of rank 0. Throws Error when a connection cannot be had.
  Lifeline(std::string program, int rank, int size, const std::function<std::string(const std::string&)>& broadcast);
  /// Every rank at once, too: nobody is missed any more.
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  /// Ends all ranks with this exit code.
  [[noreturn]] void fail(const std::string& why, int code);

 private:
  /// Another rank.
  struct Peer {
    int rank = 0;
    std::string name = {};
    Socket socket = Socket();
    std::string unread = {};
  };

  void accept_all(const Socket& listener, const std::string& token);
  void connect(const std::string& rendezvous);
  void watch();
  bool listen_to(Peer& peer);
  [[noreturn]] void end(const std::string& line, int code);

  std::string program_;
  int rank_, size_;
  std::vector<Peer> peers_;  // all others on rank 0, rank 0 on the others
  Socket wake_, woken_;      // ends the thread
  std::mutex ending_;
  std::thread thread_;
};

}  // namespace braid::dist::detail
