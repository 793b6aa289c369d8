#include <braid/autograd/ops/sign.h>

#include <braid/core/map.h>

namespace braid {

Tensor sign(const Var& x) {
  auto sign = [](auto x) { return x > 0 ? decltype(x){1} : x < 0 ? decltype(x){-1} : x; };
  return map_any("sign", sign, x.value());
}

}  // namespace braid
