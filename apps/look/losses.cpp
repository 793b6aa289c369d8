#include "losses.h"

#include <algorithm>
#include <iterator>

#include "measures.h"
#include "prediction.h"

namespace braid::look {
namespace {

using Json = nlohmann::ordered_json;
using Changes = std::vector<Intervention>;

Intervention ablate_stream(std::int64_t stream, std::int64_t first, std::int64_t last) {
  return {.index = stream, .first = first, .last = last};
}

/// The names of changes: of one its own, of several their number.
std::string name_of(const Changes& changes, const char* what) {
  return changes.size() == 1 ? changes.front().text : fmt::format("all {} {}", changes.size(), what);
}

}  // namespace

double loss(const apps::Model& model, const Text& text, const Seen& clean, std::span<const Intervention> changes) {
  return mean_loss(predictions(evaluate(model, text.tokens, changes, &clean).logits, text.targets, 0));
}

std::int64_t ablation_count(std::int64_t streams, std::int64_t connections) {
  return (3 * streams + 1) * (connections + 1) + connections;
}

Json ablations(const apps::Model& model, const Text& text, const Seen& clean, const std::function<void()>& each) {
  const std::int64_t connections = std::ssize(clean.sites) - 1, n = clean.sites.front().x.size(1);
  const auto over_sites = [&](std::int64_t sites, const auto& changes_at) {
    Json list = Json::array();
    for (std::int64_t site = 0; site < sites; ++site) {
      list.push_back(rounded(loss(model, text, clean, changes_at(site))));
      each();
    }
    return list;
  };
  const auto of_streams = [&](const auto& changes_of) {
    Json list = Json::array();
    for (std::int64_t i = 0; i < n; ++i)
      list.push_back(over_sites(connections + 1, [&](std::int64_t site) { return changes_of(i, site); }));
    return list;
  };
  const auto all_at = [&](std::int64_t site) {
    Changes changes;
    for (std::int64_t i = 0; i < n; ++i) changes.push_back(ablate_stream(i, site, site));
    return changes;
  };
  Json result;
  result["once"] = of_streams([&](std::int64_t i, std::int64_t site) { return Changes{ablate_stream(i, site, site)}; });
  result["onward"] =
      of_streams([&](std::int64_t i, std::int64_t site) { return Changes{ablate_stream(i, site, connections)}; });
  result["all"] = over_sites(connections + 1, all_at);
  result["alone"] = of_streams([&](std::int64_t i, std::int64_t site) {
    Changes changes = all_at(site);
    changes.push_back({.action = Action::rescue, .index = i, .first = site, .last = site});
    return changes;
  });
  result["write"] =
      over_sites(connections, [](std::int64_t site) { return Changes{{.target = Target::write, .index = site}}; });
  return result;
}

Json chosen(const apps::Model& model, const Text& text, const Seen& clean, double clean_loss, const Changes& changes) {
  Changes damage, rescues;
  std::ranges::partition_copy(changes, std::back_inserter(rescues), std::back_inserter(damage),
                              [](const Intervention& change) { return change.action == Action::rescue; });
  Json rows = Json::array();
  const auto add = [&](const std::string& what, const Changes& all) {
    const double with = loss(model, text, clean, all);
    rows.push_back({{"what", what}, {"loss", rounded(with)}, {"recovered", nullptr}});
    return with;
  };
  if (damage.size() > 1)
    for (const Intervention& change : damage) add(change.text, {change});
  if (damage.empty()) return rows;
  const double damaged = add(name_of(damage, "changes"), damage);
  const auto add_rescue = [&](const Changes& rescued) {
    Changes all = damage;
    all.insert(all.end(), rescued.begin(), rescued.end());
    const double with = add(name_of(rescued, "rescues"), all);
    rows.back()["recovered"] = rounded((damaged - with) / (damaged - clean_loss));
  };
  if (rescues.size() > 1)
    for (const Intervention& rescue : rescues) add_rescue({rescue});
  if (!rescues.empty()) add_rescue(rescues);
  return rows;
}

}  // namespace braid::look
