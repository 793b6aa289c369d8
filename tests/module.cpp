// Uses the module braid, beside a header of the standard library; built with -D BRAID_MODULE=ON.
#include <cstdio>

import braid;

int main() {
  braid::Rng rng(1);
  const braid::nn::Linear linear(3, 2, rng);
  auto step = braid::value_and_grad([](const braid::nn::Linear& m, const braid::Tensor& x) { return sum(m(x)); });
  auto [loss, grads] = step(linear, braid::ones({4, 3}));
  std::printf("%s\n", braid::to_string(grads.weight.shape()).c_str());
  return grads.weight.value().at({1, 2}) == 4 ? 0 : 1;
}
