// Runs every golden case of a folder: files through the modules that they name, folders of models through
// load_pretrained, tokenizers on the texts beside them. Exit code 1 when a case failed.

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <apps/common/run_main.h>
#include <tests/golden/check.h>
#include <tests/golden/modules.h>
#include <tests/golden/pretrained.h>
#include <tests/golden/tokenizer.h>

namespace braid::golden {
namespace {

namespace fs = std::filesystem;

bool is_case_file(const fs::path& path) { return path.extension() == ".safetensors" && !fs::is_directory(path); }

Verdict check_case_file(const fs::path& file) {
  static const std::vector<Module> modules = all_modules();
  return check_case(nn::load_case(file), modules);
}

struct Kind {
  bool (*is)(const fs::path& path);
  Verdict (*check)(const fs::path& path);
};
constexpr std::array kKinds{Kind{is_case_file, check_case_file}, Kind{is_pretrained, check_pretrained},
                            Kind{is_tokenizer, check_tokenizer}};

/// The kind of case that a file or folder is, or null.
const Kind* kind_of(const fs::path& path) {
  const auto* kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return k.is(path); });
  return kind == kKinds.end() ? nullptr : kind;
}

/// The cases in a folder, or the folder itself when it is one.
std::vector<fs::path> cases_of(const fs::path& folder) {
  if (kind_of(folder) != nullptr) return {folder};
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(folder))
    if (kind_of(entry.path()) != nullptr) cases.push_back(entry.path());
  std::ranges::sort(cases);
  return cases;
}

Verdict check(const fs::path& path) {
  try {
    return kind_of(path)->check(path);
  } catch (const std::exception& error) {
    return {NAN, NAN, error.what()};
  }
}

bool selected(const fs::path& path, const std::vector<std::string>& prefixes) {
  const std::string name = path.stem().string();
  return prefixes.empty() ||
         std::ranges::any_of(prefixes, [&](const std::string& prefix) { return name.starts_with(prefix); });
}

/// Prints one line per case and the sum; returns how many failed.
int run(const std::vector<fs::path>& cases) {
  int failed = 0;
  for (const fs::path& path : cases) {
    const Verdict verdict = check(path);
    const std::string result = verdict.why.empty() ? "pass" : "FAIL " + verdict.why;
    const std::string bf16 = verdict.bf16 == 0 ? "-" : fmt::format("{:.2f}", verdict.bf16);
    fmt::print("{}", formatted("{:<44} f64 {:7.1e}  f32 {:7.1e}  bf16 {:>4}  {}\n", path.stem().string(), verdict.f64,
                               verdict.f32, bf16, result));
    failed += !verdict.why.empty();
  }
  fmt::print("{} passed, {} failed\n", static_cast<int>(cases.size()) - failed, failed);
  return failed;
}

}  // namespace
}  // namespace braid::golden

int main(int argc, char** argv) {
  using namespace braid;
  return apps::run_main("golden", [&] {
    CLI::App app("Checks outputs and gradients of the library's modules against golden cases, in f64, f32 and bf16");
    std::string folder;
    std::vector<std::string> prefixes;
    app.add_option("DIR", folder, "a folder of *.safetensors cases, models and tokenizers")
        ->required()
        ->check(CLI::ExistingDirectory);
    app.add_option("--only", prefixes, "the cases whose names start with one of these")->delimiter(',');
    apps::parse_command_line(app, argc, argv);
    std::vector<golden::fs::path> cases = golden::cases_of(golden::fs::canonical(folder));
    std::erase_if(cases, [&](const golden::fs::path& path) { return !golden::selected(path, prefixes); });
    check_value(!cases.empty(), "{}: has no such *.safetensors files or folders", folder);
    return golden::run(cases) == 0 ? 0 : 1;
  });
}
