#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace braid::platform {

/// The folder of the running program; the current one if the system does not say.
std::filesystem::path program_folder();

/// Runs a program to its end, without blocked signals. Returns why it failed: the last line that it wrote to stderr, or
/// else as EndedChild has it; empty after exit code 0.
std::string run_program(const std::string& path, const std::vector<std::string>& arguments);

/// Starts a fork of this process, which may have no other threads, and returns its id, or -1 and errno. The child ends
/// with the result of `work` as its exit code, or together with its parent.
int start_child(const std::function<int()>& work);

struct EndedChild {
  int id;
  std::string failure;  ///< `exit code 1` or `killed by signal 9`; empty after exit code 0
};

/// A child that has ended and was not returned before, if there is one.
std::optional<EndedChild> ended_child();
void kill_child(int id);
/// Waits until a child has ended.
void await_child(int id);

}  // namespace braid::platform
