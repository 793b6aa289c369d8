// Runs every golden case of a folder through the module that it names. Exit code 1 when a case failed.

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <examples/common/run_main.h>
#include <tests/golden/check.h>
#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> case_files(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Verdict check_file(const fs::path& file, const std::vector<Module>& modules) {
  try {
    return check_case(nn::load_case(file), modules);
  } catch (const std::exception& error) {
    return {NAN, NAN, error.what()};
  }
}

bool selected(const fs::path& file, const std::vector<std::string>& prefixes) {
  const std::string name = file.stem().string();
  return prefixes.empty() ||
         std::ranges::any_of(prefixes, [&](const std::string& prefix) { return name.starts_with(prefix); });
}

/// Prints one line per case and the sum; returns how many failed.
int run(const std::vector<fs::path>& files) {
  const std::vector<Module> modules = all_modules();
  int failed = 0;
  for (const fs::path& file : files) {
    const Verdict verdict = check_file(file, modules);
    const std::string result = verdict.why.empty() ? "pass" : "FAIL " + verdict.why;
    fmt::print("{:<44} f64 {:7.1e}  f32 {:7.1e}  {}\n", file.stem().string(), verdict.f64, verdict.f32, result);
    failed += !verdict.why.empty();
  }
  fmt::print("{} passed, {} failed\n", static_cast<int>(files.size()) - failed, failed);
  return failed;
}

}  // namespace
}  // namespace braid::golden

int main(int argc, char** argv) {
  using namespace braid;
  return examples::run_main("golden", [&] {
    CLI::App app("Checks outputs and gradients of the library's modules against golden cases, in f64 and f32");
    std::string folder;
    std::vector<std::string> prefixes;
    app.add_option("DIR", folder, "a folder of *.safetensors cases")->required()->check(CLI::ExistingDirectory);
    app.add_option("--only", prefixes, "the cases whose file names start with one of these")->delimiter(',');
    examples::parse_command_line(app, argc, argv);
    std::vector<golden::fs::path> files = golden::case_files(folder);
    std::erase_if(files, [&](const golden::fs::path& file) { return !golden::selected(file, prefixes); });
    check_value(!files.empty(), "{}: has no such *.safetensors files", folder);
    return golden::run(files) == 0 ? 0 : 1;
  });
}
