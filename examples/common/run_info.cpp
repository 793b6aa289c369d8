#include "run_info.h"

#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <thread>

#include <fmt/chrono.h>

#include <braid/core/error.h>
#include <braid/core/parallel.h>

namespace braid::examples {
namespace {

namespace fs = std::filesystem;

std::string first_line_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 256> buffer{};
  if (!pipe || !std::fgets(buffer.data(), buffer.size(), pipe.get())) return "";
  const std::string line = buffer.data();
  return line.substr(0, line.find('\n'));
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace

fs::path program_folder() {
  std::error_code missing;
  const fs::path program = fs::read_symlink("/proc/self/exe", missing);
  return missing ? fs::current_path() : program.parent_path();
}

std::string git_commit() {
  const std::string commit = first_line_of("git -C '" + program_folder().string() + "' rev-parse HEAD 2>/dev/null");
  return commit.empty() ? "unknown" : commit;
}

nlohmann::ordered_json machine_info() {
  utsname system{};
  uname(&system);
  return {{"processor", processor()},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", num_threads()},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"compiler", __VERSION__}};
}

std::string time_stamp() {
  return fmt::format("{:%Y%m%d-%H%M%S}",
                     fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

void make_results_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check<FileError>(!error, "--out: {} cannot be made: {}", folder.string(), error.message());
}

bool run_plot_script(const std::string& script, const fs::path& in, const fs::path& out) {
  const std::string path = (program_folder() / "plots" / script).string();
  std::array<const char*, 4> arguments{path.c_str(), in.c_str(), out.c_str(), nullptr};
  pid_t child = 0;
  int status = 0;
  const int error = posix_spawn(&child, path.c_str(), nullptr, nullptr, const_cast<char**>(arguments.data()), environ);
  if (error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  fmt::print(stderr, "no picture: {} {} did not run (it needs /usr/bin/python3 with matplotlib)\n", path, in.string());
  return false;
}

}  // namespace braid::examples
