#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <braid/core/bits.h>
#include <braid/core/error.h>
#include <braid/core/products/matmul_precision.h>

namespace CLI {
class App;
}

namespace braid::apps {

/// The loss, gradients or weights of a run are no longer finite.
struct NonFiniteError : Error {
  using Error::Error;
};

/// The main function of a program: `body` returns the exit code. An exception becomes one line on stderr that begins
/// with the program's name, and exit code 2, or 3 for NonFiniteError. Checks environment variables first and, last,
/// whether stdout could be written; a reader that has closed the pipe is no error.
int run_main(std::string_view name, const std::function<int()>& body);

/// The line, without the program's name, and the exit code that run_main has for an exception; 0 after --help
/// and --version.
struct Failure {
  std::string why;
  int code;
};

/// The Failure of the exception that is being handled.
Failure current_failure();

/// The main function of a program whose only options are --help and --version.
int run_main(std::string_view name, std::string_view what_it_shows, int argc, char** argv,
             const std::function<void()>& body);

/// Parses the command line. --help and --version print and end the program with exit code 0. Numbers must be decimal
/// and finite, and whole if the option is an integer; of an option that is given again the
/// last value counts, so that scripts can pass a user's options on, and a flag must be given once and without a value.
/// Throws ValueError naming the option.
void parse_command_line(CLI::App& app, int argc, char** argv);

/// BRAID_NUM_THREADS, or `otherwise` where the environment does not set it. Throws ValueError as num_threads() does.
int threads_or(int otherwise);

/// What --version prints: the program's name, braid's version, build_info().
std::string version_text(std::string_view name);

/// Adds --matmul-precision highest, high or medium. The program must call set_matmul_precision itself.
void add_matmul_precision(CLI::App& app, MatmulPrecision& precision);

/// Adds --bits fast or portable. The program must open the BitsScope itself.
void add_bits(CLI::App& app, Bits& bits);

/// Throws FileError when `file`, the value of `option`, cannot be made or replaced. Writes nothing.
void check_output_file(std::string_view option, const std::filesystem::path& file);

/// Throws ValueError unless `text`, the value of `option`, is UTF-8, as the files are that it is written to.
void check_utf8(std::string_view option, std::string_view text);

}  // namespace braid::apps
