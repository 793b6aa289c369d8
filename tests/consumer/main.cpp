#include <braid/braid.h>

#include <cstdio>

// d(w^2)/dw = 2w, by the installed library.
int main() {
  const auto square = braid::value_and_grad([](const braid::Var& w) { return w * w; });
  const auto [value, gradient] = square(braid::Var(braid::scalar(3)));
  std::printf("value %g, gradient %g\n", value, gradient.item());
  return value == 9 && gradient.item() == 6 ? 0 : 1;
}
