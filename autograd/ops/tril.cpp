#include <braid/autograd/ops/tril.h>

#include <functional>

#include <braid/autograd/ops/where.h>

namespace braid {

/// x where keep(j - i, diagonal), else 0.
static Var triangle(const char* op, const Var& x, std::int64_t diagonal, auto keep) {
  check_shape(x.rank() >= 2, "{}: x must have at least 2 axes but has shape {}", op, x.shape());
  Tensor mask(x.shape().axes(x.rank() - 2, x.rank()), x.dtype());
  if (mask.numel() == 0) return x;
  dispatch(x.dtype(), [&]<class T>(T) {
    T* m = mask.mutable_data<T>();
    for (std::int64_t i = 0; i < x.size(-2); ++i)
      for (std::int64_t j = 0; j < x.size(-1); ++j) *m++ = static_cast<T>(keep(j - i, diagonal));
  });
  return where(mask, x, 0);
}

Var tril(const Var& x, std::int64_t diagonal) { return triangle("tril", x, diagonal, std::less_equal<>()); }

Var triu(const Var& x, std::int64_t diagonal) { return triangle("triu", x, diagonal, std::greater_equal<>()); }

}  // namespace braid
