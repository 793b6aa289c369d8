#include <braid/autograd/ops/reshape.h>
#include <braid/mhc/mixings/detail/family.h>

namespace braid::mhc::mixings {

// One file each.
extern const Family sinkhorn, newton, permutations, kronecker, circulant, transport, orthostochastic, cayley,
    quaternion, isometric, rows, diagonal, identity;

std::span<const Family* const> families() {
  static constexpr const Family* kAll[] = {&sinkhorn,  &newton,          &permutations, &kronecker,  &circulant,
                                           &transport, &orthostochastic, &cayley,       &quaternion, &isometric,
                                           &rows,      &diagonal,        &identity};
  return kAll;
}

Var square(const Var& logits, std::int64_t n) { return reshape(logits, logits.shape().without(-1).concat({n, n})); }

std::vector<double> diagonal_logits(std::int64_t n, double value) {
  std::vector<double> logits(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) logits[static_cast<std::size_t>(i * (n + 1))] = value;
  return logits;
}

std::vector<double> zero_logits(const Problem& problem) {
  return std::vector<double>(static_cast<std::size_t>(problem.logits), 0.0);
}

}  // namespace braid::mhc::mixings
