#include <braid/autograd/ops/where.h>

#include <braid/autograd/ops/broadcast_to.h>
#include <braid/core/map.h>

namespace braid {

Var where(const Tensor& mask, const Var& a, const Var& b) {
  auto chosen = [](auto m) { return m != 0; };
  // Converted after the comparison with 0: numbers close to it would become 0.
  const Tensor m = mask.dtype() == a.dtype() ? mask : map_truth("where", chosen, mask).to(a.dtype());
  auto choose = [](auto m, auto a, auto b) { return m != 0 ? a : b; };
  return record("where", map_any("where", choose, m, a.value(), b.value()), {a, b},
                [m, a = a.shape(), b = b.shape()](const Var& dy, const Needs& needs) {
                  return std::array{needs[0] ? detail::sum_to(where(m, dy, 0.0), a) : Var(),
                                    needs[1] ? detail::sum_to(where(m, 0.0, dy), b) : Var()};
                });
}

}  // namespace braid
