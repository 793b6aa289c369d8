#include "run_info.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <system_error>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <braid/core/error.h>
#include <braid/core/instruction_set.h>
#include <braid/core/parallel.h>
#include <braid/core/platform/machine.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul_precision.h>
#include <braid/mhc/mixings/composed.h>

#include "../platform/machine.h"
#include "../platform/process.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  return line;
}

/// The .git folder of the checkout around `folder`, or the one that a worktree's .git file names.
fs::path git_folder(fs::path folder) {
  std::error_code none;
  for (; !fs::exists(folder / ".git", none); folder = folder.parent_path())
    if (folder == folder.parent_path()) return {};
  const fs::path git = folder / ".git";
  const std::string named = fs::is_regular_file(git, none) ? first_line(git) : "";
  return named.starts_with("gitdir: ") ? folder / named.substr(8) : git;
}

/// The commit of a packed reference, in a file of `commit name` lines.
std::string packed(const fs::path& git, const std::string& reference) {
  std::ifstream file(git / "packed-refs");
  for (std::string line; std::getline(file, line);)
    if (line.ends_with(" " + reference)) return line.substr(0, line.find(' '));
  return "";
}

/// The commit that HEAD refers to, or the text in its place.
std::string head_of(const fs::path& git) {
  const std::string head = first_line(git / "HEAD"), common = first_line(git / "commondir");
  if (!head.starts_with("ref: ")) return head;
  const fs::path references = common.empty() ? git : git / common;
  const std::string commit = first_line(references / head.substr(5));
  return commit.empty() ? packed(references, head.substr(5)) : commit;
}

}  // namespace

std::string git_commit() {
  const std::string commit = head_of(git_folder(platform::program_folder()));
  const bool is_one = !commit.empty() && commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_one ? commit : "unknown";
}

std::string arithmetic(DType dtype, Bits bits) {
  const bool fast = bits == Bits::fast;
  std::string text = fast ? fmt::format("{} ({})", name(instruction_set()), kernel_target()) : "portable";
  if (fast && dtype == DType::bf16) text += fmt::format(", bf16 by {}", bf16_products());
  if (const int terms = bf16_terms_per_f32(); fast && terms > 0)
    text += fmt::format(", f32 as {} bf16 by {}", terms, bf16_products());
  return text + (mhc::composed() ? ", BRAID_MHC_PATH=reference" : "");
}

std::string mhc_path() { return mhc::composed() ? "reference" : "fused"; }

nlohmann::ordered_json machine_info() {
  return {{"processor", platform::processor_name()},
          {"instruction_set", arithmetic()},
          {"isa", std::string(name(instruction_set()))},
          {"mhc_path", mhc_path()},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", num_threads()},
          {"system", platform::system_name()},
          {"compiler", __VERSION__}};
}

std::string time_stamp() {
  return fmt::format("{:%Y%m%d-%H%M%S}",
                     fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

bool run_script(const std::string& script, const std::vector<std::string>& arguments) {
  const std::string path = (platform::program_folder() / "plots" / script).string();
  std::error_code none;
  if (!fs::exists(path, none)) {
    fmt::print(stderr, "{}: there is no such script; the folder plots/ belongs beside the program\n", path);
    return false;
  }
  const std::string failure = platform::run_program(path, arguments);
  if (failure == std::make_error_condition(std::errc::no_such_file_or_directory).message())  // of the interpreter
    fmt::print(stderr, "{}: needs /usr/bin/python3, which is not installed\n", path);
  else if (failure == "ModuleNotFoundError: No module named 'matplotlib'")
    fmt::print(stderr, "{}: needs matplotlib for /usr/bin/python3; Debian's package is python3-matplotlib\n", path);
  else if (!failure.empty())
    fmt::print(stderr, "{} {} did not succeed: {}\n", path, fmt::join(arguments, " "), failure);
  return failure.empty();
}

bool run_plot_script(const std::string& script, const fs::path& in, const fs::path& out) {
  return run_script(script, {in.string(), out.string()});
}

}  // namespace braid::apps
