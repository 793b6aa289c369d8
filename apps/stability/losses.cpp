#include "losses.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace braid::stability {

std::string Losses::reason() const {
  if (!std::isfinite(losses_.back())) return "loss not finite";
  if (losses_.back() > divergence_ * losses_.front()) return fmt::format("loss above {} times its start", divergence_);
  return "";
}

double Losses::final_loss() const {
  if (diverged()) return losses_.back();
  const std::size_t count = std::max<std::size_t>(1, losses_.size() / 10);
  const double sum = std::accumulate(losses_.end() - static_cast<std::ptrdiff_t>(count), losses_.end(), 0.0);
  return sum / static_cast<double>(count);
}

nlohmann::ordered_json Losses::result() const {
  return {{"result", diverged() ? "diverged" : "trained"},
          {"reason", reason()},
          {"steps", losses_.size()},
          {"first_loss", losses_.front()},
          {"final_loss", final_loss()}};
}

}  // namespace braid::stability
