#pragma once
#include <cstdlib>
#include <string_view>

#include <fmt/core.h>

namespace braid::examples {

/// Ends a program that takes no options when it gets one: 0 after --help, else 2 with a line on stderr.
inline void no_options(int argc, char** argv, std::string_view what_it_shows) {
  if (argc < 2) return;
  const std::string_view name = std::string_view(argv[0]).substr(std::string_view(argv[0]).rfind('/') + 1);
  const std::string_view argument = argv[1];
  if (argc == 2 && (argument == "--help" || argument == "-h")) {
    fmt::print("{}\nUsage: {}\n", what_it_shows, name);
    std::exit(0);
  }
  fmt::print(stderr, "{}: takes no arguments but was given '{}'\n", name, argument);
  std::exit(2);
}

}  // namespace braid::examples
