#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace braid::platform {

int process_id();
/// A name by which the running program's file can be read.
std::filesystem::path program_file();
/// Sets a variable of the environment that is not set yet.
void set_variable(const std::string& name, const std::string& value);
/// Raises the number of files that may be open to what the system allows.
void allow_many_files();

/// Calls functions around every fork of this process, before it, and after it in the parent and in the child; they may
/// be null. Returns whether there was memory to remember them.
bool at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

/// Holds all signals back from this thread, and from those that it starts, until the result is destroyed.
std::shared_ptr<void> hold_signals();

/// Asks the system for huge pages behind a block. A hint: nothing changes where it cannot be followed.
void prefer_huge_pages(void* block, std::size_t bytes);

/// Discards what is written to a stream from now on.
void discard_output(int stream);
/// Another number for stderr, at least 10, which programs that are started do not inherit.
int duplicate_of_stderr();
/// Writes without a buffer, as far as possible, and allocates nothing.
void write_to_stderr(std::string_view text);

}  // namespace braid::platform
