#include <tests/random_programs/builder.h>

#include <algorithm>
#include <cmath>

namespace braid::programs {
namespace {

constexpr std::int64_t kInputElements = 20, kMaxElements = 48;  // gradcheck runs a program for each input element
constexpr double kLargest = 100, kSmallest = 0.1;

struct Range {
  double low, high, nearest;  // nearest to 0
};

Range range_of(const Tensor& x) {
  Range range{0, 0, kLargest};
  for (const double v : x.to_vector<double>())
    range = {std::min(range.low, v), std::max(range.high, v), std::min(range.nearest, std::abs(v))};
  return range;
}

bool is_tame(const Tensor& x) {
  if (x.rank() > 4 || x.numel() > kMaxElements) return false;
  return std::ranges::all_of(x.to_vector<double>(), [](double v) { return std::abs(v) <= kLargest; });
}

/// Signed, mostly of order one and in general position; on a grid now and then, where there are ties and zeros.
Tensor random_input(const Shape& shape, Rng& rng) {
  const bool grid = rng.below(16) == 0;
  const double size = rng.below(8) > 0 ? 1.5 : rng.below(2) == 0 ? 0.02 : 12;
  Tensor x = rand(shape, rng, DType::f64);
  double* values = x.mutable_data<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i)
    values[i] = grid ? std::round(4 * values[i]) - 2 : static_cast<float>(size * (2 * values[i] - 1));
  return x;
}

Layout random_layout(const Shape& shape, Rng& rng) {
  const auto layout = static_cast<Layout>(rng.below(6));  // the last two are contiguous as well
  if (layout == Layout::transposed && shape.rank() > 1) return layout;
  if (layout == Layout::sliced && shape.rank() > 0) return layout;
  if (layout == Layout::broadcast && shape.rank() > 0 && shape[0] > 1) return layout;
  return Layout::contiguous;
}

}  // namespace

bool anything(const Shape&) { return true; }

Builder::Builder(std::span<const Op> ops, Rng& rng) : ops_(ops), rng_(rng) {
  for (std::int64_t i = rng.below(2); i >= 0; --i) input(random_shape());
}

Shape Builder::random_shape() {
  constexpr std::int64_t kSizes[] = {1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5};
  Shape shape;
  for (std::int64_t rank = (rng_.below(5) + rng_.below(5) + 1) / 2; rank > 0; --rank)
    shape = shape.inserted(0, rng_.below(50) == 0 ? 0 : kSizes[rng_.below(std::size(kSizes))]);
  return has_room(shape) ? shape : Shape{2};
}

bool Builder::has_room(const Shape& shape) const {
  std::int64_t elements = shape.numel();
  for (const Value& value : program_) elements += value.op == nullptr ? value.input.numel() : 0;
  return elements <= kInputElements;
}

int Builder::input(const Shape& shape) {
  const Layout layout = random_layout(shape, rng_);
  Tensor x = random_input(shape, rng_);
  if (layout == Layout::broadcast) x = x.slice(0, 0, 1).broadcast_to(shape).clone();
  program_.push_back({.input = x, .layout = layout});
  tensors_.push_back(x);
  return static_cast<int>(program_.size()) - 1;
}

int Builder::any(const Fits& fits) {
  if (const Shape shape = random_shape(); rng_.below(8) == 0 && has_room(shape) && fits(shape)) return input(shape);
  std::vector<int> candidates = results_of(program_);
  std::erase_if(candidates, [&](int v) { return !fits(shape(v)); });
  for (int i = 0, unused = static_cast<int>(candidates.size()); unused < 2 && i < std::ssize(program_); ++i)
    if (fits(shape(i))) candidates.push_back(i);
  return candidates.empty() ? kNone : candidates[static_cast<std::size_t>(rng_.below(std::ssize(candidates)))];
}

int Builder::of_shape(const Shape& wanted) {
  const int there = any([&](const Shape& shape) { return shape == wanted; });
  if (there != kNone && rng_.below(3) > 0) return there;
  return has_room(wanted) && rng_.below(4) > 0 ? input(wanted) : gathered(wanted);
}

int Builder::gathered(const Shape& wanted) {
  if (wanted.numel() > kMaxElements) return kNone;
  const int from = any([](const Shape& shape) { return shape.numel() > 0; });
  if (from == kNone) return kNone;
  const std::int64_t n = shape(from).numel();
  const int flat = shape(from).rank() == 1 ? from : add("reshape", from, {list({n})});
  const int picked = add("index_select", flat, {integer(0), ids(randint(0, n, {wanted.numel()}, rng_))});
  return wanted.rank() == 1 ? picked : add("reshape", picked, {list({wanted.begin(), wanted.end()})});
}

int Builder::bounded(int x, double limit) {
  if (x == kNone) return kNone;
  const Range range = range_of(tensor(x));
  return std::max(-range.low, range.high) <= limit ? x : add("tanh", x);
}

int Builder::positive(int x) {
  if (x == kNone) return kNone;
  const Range range = range_of(tensor(x));
  if (range.nearest >= kSmallest) return range.low >= 0 ? x : add("abs", x);
  return add(rng_.below(2) == 0 ? "exp" : "sigmoid", bounded(x, 2));
}

int Builder::away_from_zero(int x) { return x == kNone || range_of(tensor(x)).nearest >= kSmallest ? x : positive(x); }

int Builder::add(const Op& op, std::vector<int> operands, Settings settings) {
  if (std::ranges::count(operands, kNone) > 0) return kNone;
  Value value{&op, std::move(operands), std::move(settings)};
  std::vector<Var> given;
  for (const int operand : value.operands) given.emplace_back(tensor(operand));
  const Tensor result = op.apply(given, value.settings).value();
  if (!is_tame(result)) return kNone;
  program_.push_back(std::move(value));
  tensors_.push_back(result);
  return static_cast<int>(program_.size()) - 1;
}

int Builder::add(const char* name, int x, Settings settings) {
  const auto op = std::ranges::find(ops_, name, &Op::name);
  return add(*op, {x}, std::move(settings));
}

bool Builder::call(const Op& op) {
  const std::size_t before = program_.size();
  const std::vector<int> operands = op.operands(*this);
  if (std::ranges::count(operands, kNone) == 0) {
    std::vector<Shape> shapes;
    for (const int operand : operands) shapes.push_back(shape(operand));
    std::optional<Settings> settings = op.settings(shapes, rng_);
    if (settings && add(op, operands, std::move(*settings)) != kNone) return true;
  }
  program_.resize(before);
  tensors_.resize(before);
  return false;
}

Program random_program(std::span<const Op> ops, std::uint64_t seed, std::uint64_t index) {
  Rng rng(seed, index << 20);  // no program draws so often
  Builder builder(ops, rng);
  for (std::int64_t calls = 1 + rng.below(8); calls > 0;)
    calls -= builder.call(ops[static_cast<std::size_t>(rng.below(std::ssize(ops)))]) ? 1 : 0;
  return without_unused_inputs(builder.program());
}

}  // namespace braid::programs
