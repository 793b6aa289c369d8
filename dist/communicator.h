#pragma once
#include <memory>
#include <string>
#include <vector>

namespace braid::dist {

namespace detail {
struct World;
class BlockSum;
}  // namespace detail

/// What the sums of this rank have cost.
struct Traffic {
  double bytes_sent = 0;      ///< to other ranks
  double seconds_beside = 0;  ///< on messages and additions between vjps, while more of them were to come
  double seconds_after = 0;   ///< on messages, additions and waiting when the last vjp had run
  double seconds_open = 0;    ///< from the first message of a sum to its last
};

/// The ranks of a run, processes that `mpirun` or another launcher of MPI started. They end together: when one dies or
/// fails, all of them end within seconds, and rank 0 (or 1, when that is the one) writes one line to stderr. Beside
/// MPI, of which nobody hears that a process is gone, each rank has a TCP connection to rank 0, which the system
/// closes.
class Communicator {
 public:
  /// Joins the ranks; `program` begins the line that an end by failure writes. Ends all ranks when a connection cannot
  /// be had or a rank runs another binary. Throws Error in a process that has had one.
  explicit Communicator(std::string program);
  /// Waits for all ranks to come here. Where an exception passes through, it ends all ranks instead: see fail().
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;  ///< of this process, from 0 on
  int size() const;  ///< how many ranks there are

  // Every rank calls these, in the same order.

  /// How many ranks may use the processors that this one may use, itself included.
  int sharing_processors();
  /// Whether it is true on any rank.
  bool any(bool here);
  /// The bytes that rank 0 has.
  std::string broadcast(const std::string& bytes);
  /// The bytes of all ranks, in order.
  std::vector<std::string> gather(const std::string& bytes);
  /// Throws Error on all ranks, naming the first one that has another value than rank 0.
  void check_same(const std::string& what, const std::string& value);

  /// Ends all ranks with this exit code and one line, which rank 0 writes: the first that it hears of.
  [[noreturn]] void fail(const std::string& why, int code);

  const Traffic& traffic() const;  ///< of this rank since the beginning

 private:
  friend class detail::BlockSum;
  std::unique_ptr<detail::World> world_;
};

}  // namespace braid::dist
