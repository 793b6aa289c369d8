// Your own ops: a fused forward pass, a hand-written vjp, a rule for higher derivatives, and a check that they agree;
// an op on rows with a mask; an op with two outputs.
#include <utility>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

// The ops, as they would be in a separate file.

/// The gate of a SwiGLU layer: `y = silu(a) * b = a sigmoid(a) b`. arXiv:2002.05202.
/// a, b of one shape -> y of that shape. Throws ShapeError when the shapes differ.
Var swiglu(const Var& a, const Var& b) {
  check_shape(a.shape() == b.shape(), "swiglu: b must have the shape {} of a but has {}", a.shape(), b.shape());
  const Tensor s = Tensor(sigmoid(a.value()));
  const auto forward = [](auto a, auto b, auto s) { return a * s * b; };
  Tensor y = map("swiglu", forward, a.value(), b.value(), s);
  // With s = sigmoid(a): da = dy b s (1 + a (1 - s)), db = dy a s
  const auto vjp = [a = a.value(), b = b.value(), s](const Tensor& dy, const Needs& needs) {
    const auto da = [](auto dy, auto a, auto b, auto s) { return dy * b * s * (1 + a * (1 - s)); };
    const auto db = [](auto dy, auto a, auto s) { return dy * a * s; };
    return std::vector{needs[0] ? map("swiglu", da, dy, a, b, s) : Tensor(),
                       needs[1] ? map("swiglu", db, dy, a, s) : Tensor()};
  };
  // The same made of ops, for derivatives of higher order.
  const auto rule = [](const Applied& op) {
    const Var a = op.x(0), b = op.x(1), s = sigmoid(a);
    return std::vector{op.dy() * b * s * (1 + a * (1 - s)), op.dy() * a * s};
  };
  return record("swiglu", y, {a, b}, vjp, rule);
}

/// The sum of each row of x over the elements that are seen, where seen is not 0: x [..., C], seen [..., C] i32 ->
/// [...]. Throws ShapeError when the shapes differ, DTypeError for other dtypes of seen and for an x of i32.
Var masked_sum(const Var& x, const Tensor& seen) {
  check_shape(x.shape() == seen.shape(), "masked_sum: seen must have the shape {} of x but has {}", x.shape(),
              seen.shape());
  const Tensor values = x.value().contiguous(), mask = seen.contiguous();  // rows without gaps
  const std::int64_t columns = values.size(-1);
  Tensor y(values.shape().without(-1), values.dtype());
  dispatch_float_or_bf16("masked_sum", values.dtype(), [&]<class T>(T) {
    const T* from = values.data<T>();
    const auto* sees = mask.data<std::int32_t>();
    T* to = y.mutable_data<T>();
    parallel_for(y.numel(), 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        Compute<T> sum = 0;  // f32 for bf16
        for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i)
          if (sees[i] != 0) sum += from[i];
        to[row] = T(sum);
      }
    });
  });
  return record("masked_sum", y, {x}, [seen](const Var& dy) { return where(seen, expand_dims(dy, -1), 0.0); });
}

/// dx = ds cos(x) - dc sin(x) for s = sin(x) and c = cos(x). A cotangent is undefined where nothing depends on the
/// output.
Var sin_cos_vjp(const Var& ds, const Var& dc, const Var& s, const Var& c) {
  if (!dc.value().defined()) return ds * c;
  if (!ds.value().defined()) return -dc * s;
  return ds * c - dc * s;
}

/// The sine and the cosine of x, as one op with two outputs.
std::pair<Var, Var> sin_cos(const Var& x) {
  const Tensor s = Tensor(sin(x.value())), c = Tensor(cos(x.value()));
  const auto vjp = [s, c](std::span<Tensor> dys, const Needs&) {
    return std::vector<Tensor>{sin_cos_vjp(dys[0], dys[1], s, c)};
  };
  const auto rule = [](const Applied& op) {
    return std::vector{sin_cos_vjp(op.dys[0], op.dys[1], op.outputs[0], op.outputs[1])};
  };
  const std::vector<Var> outputs = record("sin_cos", {s, c}, {x}, vjp, {}, rule);
  return {outputs[0], outputs[1]};
}

// Their use and their tests.

void run() {
  Rng rng(1);
  const Tensor a = randn({3, 5}, rng, DType::f64), b = randn({3, 5}, rng, DType::f64);

  const GradcheckResult result = gradcheck([](auto x) { return swiglu(x[0], x[1]); }, {a, b});
  fmt::print("gradcheck: {} derivatives, worst relative error {:.1e}\n", result.derivatives, result.worst);
  const GradcheckResult second = gradcheck([](auto x) { return swiglu(x[0], x[1]); }, {a, b}, {.order = 2});
  fmt::print("with the second: {} derivatives, worst relative error {:.1e}\n", second.derivatives, second.worst);

  const Tensor difference = (swiglu(a, b) - silu(a) * b).value();
  fmt::print("fused - composed: at most {:.1e}\n", reduce_max(abs(difference).value()).item());

  const auto of_both = [](auto x) {
    const auto [s, c] = sin_cos(x[0]);
    return s * c;
  };
  const auto of_one = [](auto x) { return sin_cos(x[0]).second; };
  for (const GradcheckResult& pair : {gradcheck(of_both, {a}, {.order = 2}), gradcheck(of_one, {a}, {.order = 2})})
    fmt::print("sin_cos: {} derivatives, worst relative error {:.1e}\n", pair.derivatives, pair.worst);

  const Tensor seen = Tensor::of<std::int32_t>({3, 5}, {1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  const GradcheckResult rows = gradcheck([&](auto x) { return masked_sum(x[0], seen); }, {a}, {.order = 2});
  fmt::print("masked_sum: {} derivatives, worst relative error {:.1e}\n", rows.derivatives, rows.worst);

  const auto [da, db] = vjp(swiglu, ones({3, 5}, DType::f64), a, b);
  fmt::print("da =\n{}\ndb =\n{}\n", da, db);
  check<Error>(second.ok, "gradcheck: {}", second.message);
}

int main(int argc, char** argv) {
  return apps::run_main("custom_op", "A fused op with a hand-written vjp, verified by finite differences.", argc, argv,
                        run);
}
