#include <braid/autograd/gradcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include <braid/core/random.h>

namespace braid {
namespace {

/// A line through an input along which the derivative is taken.
struct Line {
  Tensor direction;   // like the input
  double step;        // between the points
  std::string where;  // in words
};

/// Signs with sizes in [0.5, 1.5): never so small that an error hides.
Tensor random_signs(const Shape& shape, Rng& rng) {
  Tensor t = rand(shape, rng, DType::f64);
  double* x = t.mutable_data<double>();
  std::transform(x, x + t.numel(), x, [](double u) { return u < 0.5 ? u - 1.5 : u + 0.5; });
  return t;
}

/// `x + t * direction`
Tensor moved(const Tensor& x, const Tensor& direction, double t) {
  Tensor y = x.clone();
  const Tensor d = direction.contiguous();
  double* out = y.mutable_data<double>();
  for (std::int64_t i = 0; i < y.numel(); ++i) out[i] += t * d.data<double>()[i];
  return y;
}

std::string element_name(const Shape& shape, std::int64_t flat) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return fmt::format("element [{}]", fmt::join(index, ", "));
}

/// One line an element, or random ones when there are too many elements.
std::vector<Line> lines_through(const Tensor& x, const GradcheckOptions& options, Rng& rng) {
  std::vector<Line> lines;
  if (x.numel() > options.max_elements) {
    for (int i = 0; i < options.directions; ++i)
      lines.push_back({random_signs(x.shape(), rng), options.step, fmt::format("random direction {}", i)});
    return lines;
  }
  const std::vector<double> values = x.to_vector<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    Tensor unit = zeros(x.shape(), DType::f64);
    unit.mutable_data<double>()[i] = 1;
    const double size = std::abs(values[static_cast<std::size_t>(i)]);
    lines.push_back({unit, options.step * std::max(1.0, size), element_name(x.shape(), i)});
  }
  return lines;
}

double dot(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  double sum = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) sum += x.data<double>()[i] * y.data<double>()[i];
  return sum;
}

/// d/dt <dy, y(t)> at 0: (8 (y(h) - y(-h)) - (y(2h) - y(-2h))) / 12h, which misses h^4 y'''''/30. Differences are taken
/// element by element, so that outputs that do not move add no rounding error.
double central_difference(const std::function<Tensor(double)>& y, const Tensor& dy, double h) {
  const Tensor near = moved(y(h), y(-h), -1), far = moved(y(2 * h), y(-2 * h), -1);
  return (8 * dot(dy, near) - dot(dy, far)) / (12 * h);
}

double relative_error(double analytic, double numeric, double scale) {
  if (!std::isfinite(analytic) || !std::isfinite(numeric)) return std::numeric_limits<double>::infinity();
  return std::abs(analytic - numeric) / std::max({std::abs(analytic), std::abs(numeric), scale});
}

double gradient_scale(const Tensor& gradient) {
  double largest = 0;
  for (const double g : gradient.to_vector<double>()) largest = std::max(largest, std::abs(g));
  return std::clamp(largest, 1e-3, 1.0);
}

/// Counts a comparison and keeps the worst.
void compare(GradcheckResult& result, const GradcheckOptions& options, const std::string& where, double analytic,
             double numeric, double scale) {
  const double error = relative_error(analytic, numeric, scale);
  if (result.derivatives++ > 0 && error <= result.worst) return;
  result.worst = error;
  result.ok = error <= options.tolerance;
  result.message =
      fmt::format("gradcheck: {}: analytic {:.10g}, numeric {:.10g}, relative error {:.3g}, tolerance {:.3g}", where,
                  analytic, numeric, error, options.tolerance);
}

void check_f64(const Tensor& x, const std::string& what) {
  check_dtype(x.dtype() == DType::f64, "gradcheck: {} must be f64 but is {}", what, name(x.dtype()));
}

/// The gradients of <dy, f(inputs)>, the way users get them.
std::vector<Tensor> analytic_gradients(const GradcheckFunction& f, const std::vector<Tensor>& inputs, Rng& rng,
                                       Tensor& dy) {
  Tape tape;
  std::vector<Var> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  const Var y = f(watched);
  check_f64(y.value(), "the output of f");
  dy = random_signs(y.shape(), rng);
  tape.backward(y, dy);
  std::vector<Tensor> gradients;
  for (const Var& input : watched) gradients.push_back(tape.gradient(input));
  return gradients;
}

}  // namespace

GradcheckResult gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options, const std::vector<std::string>& names) {
  const auto name_of = [&](std::size_t i) { return i < names.size() ? names[i] : fmt::format("input {}", i); };
  for (std::size_t i = 0; i < inputs.size(); ++i) check_f64(inputs[i], name_of(i));
  Rng rng(options.seed);
  Tensor dy;
  const std::vector<Tensor> gradients = analytic_gradients(f, inputs, rng, dy);
  GradcheckResult result{.message = "gradcheck: no elements to compare"};
  std::vector<Var> point(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double scale = gradient_scale(gradients[i]);
    for (const Line& line : lines_through(inputs[i], options, rng)) {
      const auto y = [&](double t) {
        point[i] = moved(inputs[i], line.direction, t);
        return f(point).value();
      };
      compare(result, options, name_of(i) + ", " + line.where, dot(gradients[i], line.direction),
              central_difference(y, dy, line.step), scale);
    }
    point[i] = inputs[i];
  }
  return result;
}

}  // namespace braid
