#include "results.h"

#include <limits>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <braid/core/error.h>
#include <braid/core/files/atomic_file.h>

#include "../common/json_lines.h"
#include "../common/read_file.h"

namespace braid::stability {
namespace {

namespace fs = std::filesystem;

std::string last_line(const fs::path& path) {
  std::istringstream file(apps::read_file(path));
  std::string last;
  for (std::string line; std::getline(file, line);) last = std::move(line);
  return last;
}

/// JSON has no NaN: it is null.
double number(const nlohmann::json& json, const char* key) {
  return json.at(key).is_null() ? std::numeric_limits<double>::quiet_NaN() : json.at(key).get<double>();
}

Result read_result(const fs::path& path, const RunSettings& run) {
  try {
    const nlohmann::json json = apps::parse_json(path.string(), last_line(path));
    Result result{.run = run,
                  .diverged = json.at("result") == "diverged",
                  .reason = json.at("reason"),
                  .steps = json.at("steps"),
                  .first_loss = number(json, "first_loss"),
                  .final_loss = number(json, "final_loss"),
                  .forward_gain = number(json, "forward_gain"),
                  .backward_gain = number(json, "backward_gain"),
                  .row_error = number(json, "row_error"),
                  .column_error = number(json, "column_error")};
    if (!json.at("similarity").is_null()) result.similarity = json.at("similarity");
    return result;
  } catch (const nlohmann::json::exception&) {
    throw FileError(
        fmt::format("{}: its last line must be the result of a run; remove the file to repeat it", path.string()));
  }
}

}  // namespace

std::vector<Result> read_results(const Folder& folder, std::span<const RunSettings> plan) {
  std::vector<Result> results;
  for (const RunSettings& run : plan)
    if (const fs::path path = folder.run(id(run)); fs::exists(path)) results.push_back(read_result(path, run));
  return results;
}

void write_summary(const fs::path& file, std::span<const Result> results) {
  write_file_atomically(file, [&](std::ostream& out) {
    out << "run,task,mode,variant,learning_rate,seed,result,reason,steps,first_loss,final_loss,forward_gain,"
           "backward_gain,row_error,column_error,similarity\n";
    for (const Result& r : results)
      out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", id(r.run), name(r.run.task),
                         name(r.run.mode), label(r.run.mode, r.run.variant), r.run.learning_rate, r.run.seed,
                         r.diverged ? "diverged" : "trained", r.reason, r.steps, r.first_loss, r.final_loss,
                         r.forward_gain, r.backward_gain, r.row_error, r.column_error,
                         r.similarity ? fmt::format("{}", *r.similarity) : "");
  });
}

}  // namespace braid::stability
