#pragma once
#include <cstdint>
#include <string>

#include "../common/trainer.h"

namespace braid::train_lm {

/// Continues a line break, or a text that has ended, by `length` characters or tokens drawn at temperature 0.8.
std::string sample_text(const apps::Model& model, const apps::Corpus& corpus, std::int64_t length, Rng rng);

}  // namespace braid::train_lm
