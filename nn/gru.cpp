#include <braid/nn/gru.h>

#include <cmath>
#include <vector>

#include <braid/autograd/ops.h>
#include <braid/nn/init.h>

namespace braid::nn {

static std::int64_t checked_size(std::int64_t in, std::int64_t size) {
  check_value(in >= 1 && size >= 1, "GRU: in and size must be at least 1 but are {} and {}", in, size);
  return size;
}

GRU::GRU(std::int64_t in, std::int64_t size, Rng& rng, const LinearSettings& settings)
    : input(in, 3 * checked_size(in, size), rng, settings), hidden(size, 3 * size, rng, settings) {
  const double bound = 1 / std::sqrt(static_cast<double>(size));
  for_each_param(*this, [&](auto&&, Var& p) { p = init::uniform(p.shape(), bound, rng, settings.dtype); });
}

Var GRU::operator()(const Var& x, const Var& state) const {
  const std::int64_t size = hidden.weight.size(1);
  check_shape(x.rank() == 3, "GRU: x must have shape [B, T, in] but has {}", x.shape());
  Var h = state.value().defined() ? state : Var(zeros({x.size(0), size}, x.dtype()));
  check_shape(h.shape() == Shape{x.size(0), size}, "GRU: the state must have shape [{}, {}] but has {}", x.size(0),
              size, h.shape());
  const Var from_input = input(x);
  const auto third = [&](const Var& all, int i) { return slice(all, -1, i * size, (i + 1) * size); };
  std::vector<Var> states;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    const Var in = select(from_input, 1, t), from_state = hidden(h);
    const Var both = sigmoid(slice(in, -1, 0, 2 * size) + slice(from_state, -1, 0, 2 * size));
    const Var r = third(both, 0), z = third(both, 1);
    const Var n = tanh(third(in, 2) + r * third(from_state, 2));
    states.push_back(h = n + z * (h - n));
  }
  return states.empty() ? slice(from_input, -1, 0, size) : stack(states, 1);
}

}  // namespace braid::nn
