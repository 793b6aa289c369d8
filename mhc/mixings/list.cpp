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

double diagonal_logit(std::int64_t n, std::int64_t k) { return k % (n + 1) == 0 ? 4 : 0; }

}  // namespace braid::mhc::mixings
