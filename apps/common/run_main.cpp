#include "run_main.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <span>
#include <vector>

#include <CLI/CLI.hpp>

#include <braid/core/build_info.h>
#include <braid/core/instruction_set.h>
#include <braid/core/parallel.h>
#include <braid/core/utf8.h>
#include <braid/mhc/mixings/composed.h>

#include "../platform/files.h"
#include "../platform/signals.h"
#include "../platform/standard_streams.h"
#include "parse_number.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

/// Thrown after --help and --version.
struct Finished {};

/// `text` as one line of UTF-8 of at most 2000 bytes: spaces for control characters, question marks for invalid bytes.
std::string one_line(std::string_view text) {
  constexpr std::size_t kLongest = 2000;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    if (line.size() > kLongest) return line + "...";
    const std::size_t start = at;
    const auto point = next_code_point(text, at);
    if (!point)
      ++at, line += '?';
    else if (*point < 0x20 || (*point >= 0x7F && *point < 0xA0))
      line += ' ';
    else
      line += text.substr(start, at - start);
  }
  return line;
}

int failed(std::string_view name, std::string_view why, int code = 2) {
  std::fputs(fmt::format("{}: {}\n", name, why).c_str(), stderr);
  return code;
}

bool stdout_took_everything() {
  return (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || platform::stdout_has_no_reader();
}

int guarded(std::string_view name, const std::function<int()>& body) {
  try {
    num_threads();
    instruction_set();
    mhc::composed();
    return body();
  } catch (...) {
    const Failure failure = current_failure();
    return failure.code == 0 ? 0 : failed(name, failure.why, failure.code);
  }
}

template <class T>
bool is_number(const std::string& text) {
  return parse_number<T>(text).has_value();
}

/// The message, in which long values of the command line are shortened.
std::string with_short_values(std::string message, std::span<char* const> values) {
  for (const std::string_view argument : values)
    for (const std::string_view value : {argument, argument.substr(argument.find('=') + 1)}) {
      const std::string in_part = shortened(std::string(value));
      if (in_part == value) continue;
      for (std::size_t at = 0; (at = message.find(value, at)) != message.npos; at += in_part.size())
        message.replace(at, value.size(), in_part);
    }
  return message;
}

/// CLI11 accepts 0x10 and 010, nan, and -1 as 2^64 - 1.
void check_numbers(CLI::App& app) {
  const auto require = [](CLI::Option* option, const char* what, bool (*is_one)(const std::string&)) {
    option->check([=](const std::string& text) {
      return is_one(text) ? std::string() : fmt::format("must be {} but is '{}'", what, text);
    });
  };
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    const std::string type = option->get_type_name();
    if (type.starts_with("INT")) require(option, "a whole number", is_number<std::int64_t>);
    if (type.starts_with("UINT")) require(option, "a whole number from 0 to 2^64 - 1", is_number<std::uint64_t>);
    if (type.starts_with("FLOAT")) require(option, "a finite number", is_number<double>);
  }
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Finished&) {
    return {"", 0};
  } catch (const NonFiniteError& error) {
    return {one_line(error.what()), 3};
  } catch (const std::bad_alloc&) {
    return {"not enough memory", 2};
  } catch (const std::exception& error) {
    return {one_line(error.what()), 2};
  }
}

int run_main(std::string_view name, const std::function<int()>& body) {
  platform::reserve_standard_streams();
  platform::ignore_file_size_limit();  // a file at its size limit is then an error of write
  const int code = guarded(name, body);
  return code != 0 || stdout_took_everything() ? code : failed(name, "stdout: could not be written to its end");
}

int run_main(std::string_view name, std::string_view what_it_shows, int argc, char** argv,
             const std::function<void()>& body) {
  return run_main(name, [&] {
    CLI::App app{std::string(what_it_shows)};
    parse_command_line(app, argc, argv);
    body();
    return 0;
  });
}

void parse_command_line(CLI::App& app, int argc, char** argv) {
  const auto about = [argv] { return version_text(std::filesystem::path(argv[0]).filename().string()); };
  app.set_version_flag("--version", about, "Print versions and the instruction set and exit");
  check_numbers(app);
  const std::vector<CLI::Option*> options = app.get_options([](const CLI::Option* o) { return !o->get_positional(); });
  for (CLI::Option* option : options) {
    option->disable_flag_override();  // --report=5 is no --report
    if (option->get_expected_max() <= 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  try {
    app.parse(argc, argv);
    for (const CLI::Option* option : options)
      check_value(option->get_items_expected_max() > 0 || option->count() <= 1, "{}: is given {} times",
                  option->get_name(), option->count());
  } catch (const CLI::Success& help_or_version) {
    app.exit(help_or_version);
    throw Finished();
  } catch (const CLI::ParseError& error) {
    throw ValueError(with_short_values(error.what(), {argv, static_cast<std::size_t>(argc)}));
  }
}

int threads_or(int otherwise) { return std::getenv("BRAID_NUM_THREADS") != nullptr ? num_threads() : otherwise; }

std::string version_text(std::string_view name) { return fmt::format("{} {}\n{}", name, version(), build_info()); }

void add_matmul_precision(CLI::App& app, MatmulPrecision& precision) {
  app.add_option_function<std::string>(
         "--matmul-precision", [&precision](const std::string& name) { precision = matmul_precision(name); },
         "precision of f32 products, as in PyTorch: highest (default), high or medium, which rounds factors to bf16")
      ->check(CLI::IsMember({"highest", "high", "medium"}));
}

void add_bits(CLI::App& app, Bits& bits) {
  app.add_option_function<std::string>(
         "--bits", [&bits](const std::string& text) { bits = text == "portable" ? Bits::portable : Bits::fast; },
         "of results: fast (default), or portable, the same on every processor with AVX2, AVX-512 or NEON")
      ->check(CLI::IsMember({"fast", "portable"}));
}

void check_output_file(std::string_view option, const fs::path& file) {
  const fs::path folder = fs::absolute(file).parent_path();
  std::error_code none;
  check<FileError>(fs::is_directory(folder, none), "{}: {} is not a folder", option, folder.string());
  check<FileError>(platform::may_write_into(folder), "{}: {} cannot be written to", option, folder.string());
  check<FileError>(!file.filename().empty() && (fs::is_regular_file(file, none) || !fs::exists(file, none)),
                   "{}: {} must be a regular file but is something else", option, file.string());
}

void check_utf8(std::string_view option, std::string_view text) {
  check_value(is_utf8(text), "{}: must be UTF-8 but is '{}'", option, text);
}

}  // namespace braid::apps
