#include <braid/autograd/verify/detail/differences.h>

#include <numeric>

#include <fmt/format.h>

#include <braid/core/detail/indexing.h>
#include <braid/core/map.h>

namespace braid::detail {

/// The sum of f over the elements where b is not 0; where it is 0, a may be NaN.
static double sum_over(const Tensor& a, const Tensor& b, auto f) {
  if (!a.defined() || !b.defined()) return 0;
  const Tensor x = a.contiguous(), y = b.contiguous();
  const auto term = [f](double p, double q) { return q == 0 ? 0 : f(p, q); };
  return std::inner_product(x.data<double>(), x.data<double>() + x.numel(), y.data<double>(), 0.0, std::plus<>(), term);
}

Tensor random_signs(const Shape& shape, Rng& rng) {
  const auto away_from_0 = [](double u) { return u < 0.5 ? u - 1.5 : u + 0.5; };
  return map("gradcheck", away_from_0, rand(shape, rng, DType::f64));
}

Tensor scales(const Tensor& x) {
  const double size = std::sqrt(dot(x, x) / static_cast<double>(std::max<std::int64_t>(x.numel(), 1)));
  const auto scale = [=](double v) { return size < 1e-12 ? 1.0 : std::max(std::abs(v), 0.1 * size); };
  return map("gradcheck", scale, x);
}

Tensor random_direction(const Tensor& x, Rng& rng) {
  return map("gradcheck", std::multiplies<>(), random_signs(x.shape(), rng), scales(x));
}

Tensor only(const Tensor& x, std::int64_t begin, std::int64_t end) {
  Tensor t = zeros(x.shape(), DType::f64);
  const Tensor all = x.contiguous();
  std::copy(all.data<double>() + begin, all.data<double>() + end, t.mutable_data<double>() + begin);
  return t;
}

std::int64_t bisect(std::int64_t count, const std::function<bool(std::int64_t begin, std::int64_t end)>& wrong) {
  std::int64_t begin = 0, end = count;
  while (end - begin > 1) {
    const std::int64_t middle = begin + (end - begin) / 2;
    (wrong(begin, middle) ? end : begin) = middle;
  }
  return begin;
}

Tensor moved(const Tensor& x, const Tensor& direction, double t) {
  const auto move = [t](auto v, auto d) { return v + t * d; };
  return map("gradcheck", move, x, direction);
}

double dot(const Tensor& a, const Tensor& b) {
  return sum_over(a, b, [](double p, double q) { return p * q; });
}

double root_square_sum(const Tensor& a, const Tensor& b) {
  return std::sqrt(sum_over(a, b, [](double p, double q) { return p * p * q * q; }));
}

void Movement::add(const Tensor& dy, const Tensor& above, const Tensor& y, const Tensor& below, const Tensor& noise_of,
                   double amplification) {
  const Tensor weights = dy.contiguous(), noises = noise_of.contiguous(),
               values[] = {above.contiguous(), y.contiguous(), below.contiguous()};
  const double *w = weights.data<double>(), *n = noises.defined() ? noises.data<double>() : nullptr,
               *top = values[0].data<double>(), *middle = values[1].data<double>(), *bottom = values[2].data<double>();
  for (std::int64_t i = 0; i < weights.numel(); ++i) {
    const double stored = kEpsilon * std::max({std::abs(top[i]), std::abs(middle[i]), std::abs(bottom[i])});
    const double error = n == nullptr ? amplification * stored : std::max(stored, n[i]);
    square_noise += w[i] * w[i] * error * error;  // also of elements that do not move: their moves may be rounded off
    if (top[i] == middle[i] && bottom[i] == middle[i]) continue;
    const double rise = w[i] * (top[i] - middle[i]), fall = w[i] * (middle[i] - bottom[i]);
    up += rise;
    down += fall;
    low += std::min(rise, fall);
    high += std::max(rise, fall);
    noise += std::abs(w[i]) * error;
  }
}

Moves Movement::moves(double step, double scale) const {
  const double error = std::sqrt(square_noise) + kEpsilon * scale * std::max(std::abs(up), std::abs(down)) / step;
  return {up, down, error, low, high, noise + error};
}

std::string element_name(const Shape& shape, std::int64_t i) { return fmt::format("element {}", index_of(shape, i)); }

std::vector<Tensor> gradients_at(const GradcheckFunction& f, List<Tensor> inputs, const Tensor& dy, Probe* probe) {
  Tape tape(probe);
  std::vector<Var> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  const Var y = f(watched);
  tape.backward(y, dy);
  std::vector<Tensor> gradients;
  for (const Var& input : watched) gradients.push_back(tape.gradient(input));
  return gradients;
}

}  // namespace braid::detail
