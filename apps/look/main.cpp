// Shows what passes between the layers of a model, and what happens without parts of it. `look --help` lists the flags.
#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/core/files/atomic_file.h>
#include <braid/core/parallel.h>

#include "../common/progress.h"
#include "../common/read_file.h"
#include "../common/run_info.h"
#include "../common/run_main.h"
#include "../generate/language_model.h"
#include "../train_lm/saved_run.h"
#include "lens.h"
#include "losses.h"
#include "measures.h"
#include "prediction.h"

namespace braid::look {
namespace {

namespace fs = std::filesystem;
using generate::LanguageModel;

struct Options {
  std::string run, model, text;
  std::optional<std::int64_t> tokens = {};
  fs::path out;
  std::vector<Intervention> changes;
  bool ablations = true;
  int threads = 0;
};

void add_interventions(CLI::App& app, std::vector<Intervention>& changes) {
  for (const auto& [verb, help] : {std::pair{"ablate",
                                             "stream, write or path to leave out: stream:I, stream:I@SITE, "
                                             "stream:I@SITE-SITE, write:SITE, path:SITE:SITE; a list"},
                                   {"scale", "the same, to multiply, followed by :FACTOR"},
                                   {"swap", "streams to swap: stream:I:J, stream:I:J@SITE, stream:I:J@SITE-SITE"},
                                   {"rescue", "as --ablate, to restore behind the other changes"}})
    app.add_option_function<std::vector<std::string>>(
           fmt::format("--{}", verb),
           [&changes, verb](const std::vector<std::string>& values) {
             for (const std::string& value : values) changes.push_back(parse_intervention(verb, value));
           },
           help)
        ->delimiter(',')
        ->take_all()
        ->type_name("CHANGE,..");
}

Options parse(int argc, char** argv) {
  Options o;
  std::string out;
  CLI::App app(
      "Evaluates a model on a text and writes a page of what passes between its layers: streams, maps, the logit lens, "
      "gains of paths, and the losses without parts of it. Sites are the connections, from 0, and then the head.");
  app.add_option("--run", o.run, "results folder of train_lm, or a checkpoint in it (else the newest)");
  app.add_option("--model", o.model, "folder of a model as Hugging Face saves it, with its tokenizer.json");
  app.add_option("--text", o.text, "file with the text, of which the start is read")->required();
  app.add_option("--tokens", o.tokens, "tokens or characters to read (default: 128, or as many as fit)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  app.add_option("--out", out,
                 "the page (default: look.html in the run's folder, else here); numbers are in a .json beside it");
  add_interventions(app, o.changes);
  app.add_flag_callback(
      "--no-ablations", [&o] { o.ablations = false; }, "omit the losses of all ablations, most of the time");
  app.add_option("--threads", o.threads, "threads (0: all cores)")->check(CLI::Range(0, 1024))->capture_default_str();
  apps::parse_command_line(app, argc, argv);
  check_value(o.model.empty() != o.run.empty(), "--model, --run: give one of them");
  for (const auto& [option, path] : {std::pair("--run", &o.run), {"--text", &o.text}}) apps::check_utf8(option, *path);
  o.out = !out.empty() ? fs::path(out) : train_lm::folder_of(o.run) / "look.html";
  check_value(o.out.extension() == ".html", "--out: must end in .html but is '{}'", out);
  const bool damages =
      std::ranges::any_of(o.changes, [](const Intervention& change) { return change.action != Action::rescue; });
  check_value(o.changes.empty() || damages,
              "--rescue: needs --ablate, --scale or --swap, whose change it undoes in part");
  return o;
}

/// The ids of the start of a text, one more than are read.
std::vector<std::int32_t> read_ids(const Options& o, const LanguageModel& language) {
  const std::int64_t context = language.model.config.context;
  check_value(o.tokens.value_or(1) <= context, "--tokens: must be at most {}, the context of the model, but is {}",
              context, o.tokens.value_or(1));
  const std::int64_t most = o.tokens.value_or(std::min<std::int64_t>(128, context));
  std::string text = apps::read_file(o.text);
  constexpr std::size_t kBytes = 64;  // of a token, at most
  if (text.size() > kBytes * static_cast<std::size_t>(most + 1)) {
    text.resize(kBytes * static_cast<std::size_t>(most + 1));
    for (int i = 0; i < 3 && (text.back() & 0xC0) == 0x80; ++i) text.pop_back();  // the rest of a character
    text.pop_back();
  }
  std::vector<std::int32_t> ids = language.vocabulary.encode(text, o.text);
  check_value(ids.size() >= 2, "--text: {} must have at least 2 {} but has {}", o.text, language.vocabulary.unit(),
              ids.size());
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(most + 1)));
  const std::int32_t largest = std::ranges::max(ids);
  check_value(largest < language.model.config.vocab, "--text: has the id {} but the model knows {}", largest,
              language.model.config.vocab);
  return ids;
}

/// Names of the sites and of the ids that the page shows.
nlohmann::ordered_json words_of(const LanguageModel& language, const std::vector<std::int32_t>& ids,
                                const nlohmann::ordered_json& lens) {
  std::set<std::int32_t> shown(ids.begin(), ids.end());
  for (const auto& site : lens.at("likely"))
    for (const auto& stream : site)
      for (const auto& token : stream)
        for (std::size_t i = 0; i < token.size(); i += 2) shown.insert(token[i].get<std::int32_t>());
  nlohmann::ordered_json words = nlohmann::ordered_json::object();
  for (const std::int32_t id : shown) words[std::to_string(id)] = language.vocabulary.decode({&id, 1});
  return words;
}

nlohmann::ordered_json look(const Options& o, const LanguageModel& language, const std::vector<std::int32_t>& ids,
                            const std::vector<Intervention>& changes) {
  const apps::Model& model = language.model;
  const std::int64_t count = std::ssize(ids) - 1;
  const Text text{Tensor::of<std::int32_t>({1, count}, std::span(ids).first(static_cast<std::size_t>(count))),
                  {ids.begin() + 1, ids.end()}};
  const Seen clean = evaluate(model, text.tokens);
  const std::vector<Prediction> predicted = predictions(clean.logits, text.targets, 0);
  check<apps::NonFiniteError>(std::isfinite(mean_loss(predicted)), "the loss of the text is not finite");
  const std::int64_t connections = std::ssize(clean.sites) - 1, n = clean.sites.front().x.size(1);
  std::vector<Intervention> complete_changes = changes;
  for (Intervention& change : complete_changes) complete(change, n, connections);

  nlohmann::ordered_json page;
  const fs::path from = fs::path(o.run + o.model).lexically_normal();
  page["name"] = (from.has_filename() ? from : from.parent_path()).filename().string();
  page["connection"] = mhc::name(model.blocks.front().attention.connection.kind());
  page["unit"] = language.vocabulary.unit();
  page["streams"] = n;
  for (std::int64_t i = 0; i < connections; ++i)
    page["sites"].push_back(fmt::format("{} {}", i / 2, i % 2 == 0 ? "attention" : "mlp"));
  page["sites"].push_back("head");
  page["ids"] = ids;
  page["loss"] = rounded(mean_loss(predicted));
  for (const Prediction& p : predicted) page["losses"].push_back(rounded(p.loss));
  page.update(measures(clean));
  page["lens"] = lens(model, text, clean);
  page["words"] = words_of(language, ids, page["lens"]);
  page["changes"] = chosen(model, text, clean, mean_loss(predicted), complete_changes);
  if (!o.ablations) return page;
  std::int64_t done = 0;
  apps::Progress progress("evaluation", ablation_count(n, connections));
  page["ablations"] = ablations(model, text, clean, [&] { progress.update(++done, ""); });
  progress.finish();
  return page;
}

/// The losses, a line each.
void report(const nlohmann::ordered_json& page) {
  const double clean = page.at("loss").get<double>();
  apps::say("{:<32} loss {:.4f}\n", "without changes", clean);
  for (const auto& change : page.at("changes")) {
    const auto number = [&](const char* key) { return change.at(key).is_null() ? NAN : change.at(key).get<double>(); };
    const double loss = number("loss"), recovered = number("recovered");
    apps::say("{:<32} loss {:.4f}, {:+.4f}{}\n", change.at("what").get<std::string>(), loss, loss - clean,
              std::isnan(recovered) ? "" : fmt::format(", {:.1f} % comes back", 100 * recovered));
  }
}

int run(const Options& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  const LanguageModel language = o.run.empty() ? generate::load_model(o.model) : generate::load_run(o.run);
  check_has_streams(language.model);
  const std::vector<std::int32_t> ids = read_ids(o, language);
  const fs::path numbers = fs::path(o.out).replace_extension(".json");
  for (const fs::path& file : {o.out, numbers}) apps::check_output_file("--out", file);
  const auto page = look(o, language, ids, o.changes);
  write_file_atomically(numbers, [&](std::ostream& file) {
    file << page.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  });
  const std::vector<std::string> arguments{fs::absolute(numbers).string(), fs::absolute(o.out).string()};
  report(page);
  const bool drawn = apps::run_script("look.py", arguments);
  apps::say("{}\n", (drawn ? o.out : numbers).string());
  return drawn ? 0 : 2;
}

}  // namespace
}  // namespace braid::look

int main(int argc, char** argv) {
  using namespace braid::look;
  return braid::apps::run_main("look", [&] { return run(parse(argc, argv)); });
}
