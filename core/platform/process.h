#pragma once
#include <filesystem>
#include <string>

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

}  // namespace braid::platform
