#pragma once
#include <memory>

namespace braid::platform {

/// From now on, writing to a pipe without a reader is an error of that call and no longer ends the program.
void ignore_closed_pipes();
/// The same for writing beyond the limit of a file's size.
void ignore_file_size_limit();

/// While it is alive, this thread and those that it starts hold signals back, so that none is lost whenever it arrives.
/// Interruptions are SIGINT, SIGTERM and SIGHUP, except ignored ones (as under nohup).
class HeldSignals {
 public:
  enum class Which { interruptions, interruptions_and_ends_of_children };
  enum class Signal { interruption, end_of_child };

  explicit HeldSignals(Which which);
  ~HeldSignals();

  /// Lets signals through as before.
  void release() const;
  /// Waits for the next signal. One may stand for the ends of several children.
  Signal next() const;

 private:
  struct Sets;
  std::unique_ptr<Sets> sets_;
};

}  // namespace braid::platform
