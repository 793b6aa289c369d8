// Command lines of train_lm, one argument per line: they give a configuration, or an error.
#include <sstream>

#include <CLI/CLI.hpp>

#include "../apps/train_lm/config.h"

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  std::vector<std::string> arguments{"train_lm"};
  std::istringstream lines(fuzz::text_of(data, size));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("-h") || line.starts_with("--h") || line.starts_with("--v")) return -1;  // ends the program
    arguments.push_back(line);
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return fuzz::accept_or_refuse(size, [&] {
    const train_lm::Config config = train_lm::parse(static_cast<int>(arguments.size()), argv.data());
    fuzz::require(train_lm::changed_settings(train_lm::to_json(config), config).empty(), "a run resumes as itself");
  });
}
