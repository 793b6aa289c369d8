#include "sample.h"

#include <algorithm>
#include <vector>

#include <braid/nn/sampling.h>

#include "../common/utf8_stream.h"

namespace braid::train_lm {

std::string sample_text(const apps::Model& model, const apps::Corpus& corpus, std::int64_t length, Rng rng) {
  const std::int64_t context = model.config.context;
  std::vector<std::int32_t> ids{corpus.vocabulary().start()};
  for (std::int64_t i = 0; i < length; ++i) {
    const auto seen = std::min<std::int64_t>(context, static_cast<std::int64_t>(ids.size()));
    const Tensor window =
        Tensor::of<std::int32_t>({1, seen}, std::span<const std::int32_t>(ids).last(static_cast<std::size_t>(seen)));
    ids.push_back(nn::sample(model.logits(window).value().select(1, -1).contiguous(), {.temperature = 0.8}, rng));
  }
  return apps::valid_utf8(corpus.decode(std::span(ids).subspan(1)));
}

}  // namespace braid::train_lm
