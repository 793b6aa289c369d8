#include "report.h"

#include <array>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <braid/core/files/atomic_file.h>

#include "../common/json_lines.h"
#include "../common/read_file.h"
#include "plan.h"
#include "tables.h"

namespace braid::stability {
namespace {

namespace fs = std::filesystem;

std::string figure_links(const Folder& folder) {
  constexpr std::array<std::pair<const char*, const char*>, 7> kFigures = {{
      {"gain.png", "Composite gain by depth"},
      {"divergence.png", "Divergence rate by learning rate"},
      {"loss.png", "Loss, with the spread over seeds"},
      {"gradient_norm.png", "Gradient norm by sublayer"},
      {"activation_norm.png", "Activation norm by sublayer"},
      {"sharpness.png", "Eigenvalues of the Hessian, run by run"},
      {"ablations.png", "Ablations"},
  }};
  std::string text = "## Figures\n\n";
  for (const auto& [file, title] : kFigures)
    if (fs::exists(folder.figures() / file)) text += fmt::format("### {}\n\n![{}](figures/{})\n\n", title, title, file);
  return text;
}

}  // namespace

void write_report(const Folder& folder, const Config& config, std::span<const Result> results) {
  const nlohmann::json info = apps::parse_json(folder.info().string(), apps::read_file(folder.info()));
  const auto& last = info.at("sessions").back();
  const std::size_t planned = plan(config).size();
  write_file_atomically(folder.report(), [&](std::ostream& out) {
    out << "# Stability of connections in deep networks\n\n```\n"
        << last.at("command").get<std::string>() << "\n```\n\n"
        << fmt::format("{} of {} runs, commit {}, {}.\n\n", results.size(), planned,
                       last.at("git_commit").get<std::string>(), last.at("machine").at("processor").get<std::string>())
        << fmt::format(
               "A run has *diverged* when its loss is not finite or exceeds {} times its first loss; it stops "
               "there. Gains are those of the product of all residual maps at a run's last probe: forward the "
               "largest absolute row sum, backward the largest absolute column sum, averaged over tokens. "
               "Errors are the largest of any map. The residual map of skip-* acts on its window of K states: where "
               "only "
               "the newest is used, K states become copies of it and the backward gain is K.\n\n",
               config.divergence)
        << overview(config, results) << figure_links(folder) << details(config, results)
        << "Each run's lines are in `runs/`, one line per run in `summary.csv`, the configuration in `config.toml`.\n";
  });
}

}  // namespace braid::stability
