#pragma once
#include <functional>
#include <string>
#include <string_view>

#include <braid/core/error.h>
#include <braid/core/products/matmul_precision.h>

namespace CLI {
class App;
}

namespace braid::examples {

/// Loss, gradients or weights of a run are not finite any more.
struct NonFiniteError : Error {
  using Error::Error;
};

/// The main of a program: `body` gives the exit code. Whatever it throws becomes one line on stderr that begins with
/// the program's name, and exit code 2, or 3 for NonFiniteError. Variables of the environment are checked first, and
/// whether stdout took everything is checked last; a reader that went away is no error.
int run_main(std::string_view name, const std::function<int()>& body);

/// What run_main has for an exception: a line without the program's name, and an exit code, 0 after --help.
struct Failure {
  std::string why;
  int code;
};

/// Of the exception that is being handled.
Failure current_failure();

/// The main of a program that takes no arguments.
int run_main(std::string_view name, std::string_view what_it_shows, int argc, char** argv,
             const std::function<void()>& body);

/// Parses the command line; --help prints and ends the program with 0. Numbers are decimal, whole where the option is,
/// and finite. Throws ValueError naming the option.
void parse_command_line(CLI::App& app, int argc, char** argv);

/// --matmul-precision highest, high or medium; the program sets what it finds.
void add_matmul_precision(CLI::App& app, MatmulPrecision& precision);

/// Throws ValueError when `text`, the value of `option`, is not UTF-8: it goes into files that are.
void check_utf8(std::string_view option, std::string_view text);

}  // namespace braid::examples
