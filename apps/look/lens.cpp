#include "lens.h"

#include "measures.h"
#include "prediction.h"

namespace braid::look {
namespace {

constexpr std::size_t kLikely = 3;

}  // namespace

nlohmann::ordered_json lens(const apps::Model& model, const Text& text, const Seen& seen) {
  using Json = nlohmann::ordered_json;
  Json result;
  for (const Site& site : seen.sites) {
    Json losses = Json::array(), likely = Json::array();
    const auto add = [&](const Tensor& logits) {
      Json loss = Json::array(), ids = Json::array();
      for (const Prediction& p : predictions(logits, text.targets, kLikely)) {
        loss.push_back(rounded(p.loss));
        ids.push_back(Json::array());
        for (const auto& [id, probability] : p.likely) {
          ids.back().push_back(id);
          ids.back().push_back(rounded(probability));
        }
      }
      losses.push_back(loss);
      likely.push_back(ids);
    };
    for (std::int64_t i = 0; i < site.x.size(1); ++i) add(model.predict(site.x.select(1, i).contiguous()));
    add(read_by_head(model, site));
    result["loss"].push_back(losses);
    result["likely"].push_back(likely);
  }
  return result;
}

}  // namespace braid::look
