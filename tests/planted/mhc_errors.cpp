#include <braid/autograd/ops.h>
#include <braid/core/reduce.h>
#include <tests/planted/errors.h>
#include <tests/planted/mutations.h>
#include <tests/planted/setting.h>

namespace braid::planted {
namespace {

using Vars = std::span<const Var>;
using Errors = std::vector<Error>;
using HalfStep = std::function<Var(const Var& y, int axis)>;

constexpr std::int64_t n = kStreams;

Var normalized(const Var& y, int axis) { return y / sum(y, axis, true); }

/// Its vjp forgets to divide.
Var undivided(const Var& y, int axis) { return with_scaled_gradient(normalized(y, axis), sum(y, axis, true).value()); }

/// logits [.., n n]; `first` is the axis of the first sums, -1 for rows.
Var sinkhorn(const Var& logits, int first, int iterations, const HalfStep& last = normalized) {
  Var y = exp(reshape(logits, logits.shape().without(-1).concat({n, n})));
  for (int k = 1; k <= iterations; ++k) {
    y = normalized(y, first);
    y = (k == iterations ? last : normalized)(y, -3 - first);
  }
  return y;
}

Errors sinkhorn_errors() {
  return {
      {"sinkhorn", "last half-step's 1 / s forgotten",
       vjp_of([](Vars x) { return sinkhorn(x[0], -1, kSinkhornIterations, undivided); })},
      {"sinkhorn", "half-steps exchanged: columns first",
       vjp_of([](Vars x) { return sinkhorn(x[0], -2, kSinkhornIterations); })},
      {"sinkhorn", "one iteration too few", vjp_of([](Vars x) { return sinkhorn(x[0], -1, kSinkhornIterations - 1); })},
  };
}

Errors read_and_write_errors() {
  return {
      {"reduce_streams", "1 / n forgotten", scaled(0, n)},
      {"read_streams", "h_pre's cotangent lacks the last token", without_last(0, 1)},
      {"read_streams", "cotangent of the write's h_res transposed", transposed(1)},
      {"write_streams", "f's cotangent from the first stream alone", first_only(2, -2)},
      {"write_streams", "sign of what is left to the read: the cotangent of x", scaled(1, -1)},
  };
}

/// What the vjp of a read takes for constant, or a half-step of it.
struct Twist {
  bool streams_in_maps = false, norm = false;
  HalfStep half_step = normalized;
};

/// The outputs of mhc_read that have cotangents: u, the streams, for which the write left it that of H_res x, and
/// H_post.
std::vector<Var> read(const Var& x, Vars params, const Twist& twist) {
  const Var &phi = params[0], &alpha = params[1], &bias = params[2];
  const Var flat =
      reshape(twist.streams_in_maps ? detach(x) : x, x.shape().axes(0, x.rank() - 2).concat({n * kChannels}));
  const Var r = sqrt(mean(flat * flat, -1, true) + kEps), h = matmul(flat, phi) / (twist.norm ? detach(r) : r);
  const auto logits = [&](std::int64_t map, std::int64_t begin, std::int64_t end) {
    return slice(alpha, 0, map, map + 1) * slice(h, -1, begin, end) + slice(bias, 0, begin, end);
  };
  const Var h_res = sinkhorn(logits(2, 2 * n, n * (n + 2)), -2, kSinkhornIterations, twist.half_step);
  return {sum(expand_dims(sigmoid(logits(0, 0, n)), -1) * x, -2),
          matmul(h_res, x),
          2 * sigmoid(logits(1, n, 2 * n)),
          {},
          {}};
}

WrongVjp twisted_read(std::size_t input, const Twist& twist) {
  return vjp_of(input, [=](Vars x, const Call&) { return read(x[0], x.subspan(1), twist); });
}

/// Behind a write, whose result is the second output.
WrongVjp twisted_write_read(std::size_t input, const Twist& twist) {
  return vjp_of(input, [=](Vars x, const Call& call) {
    return read(x[0] - detach(x[0]) + call.outputs[1], x.subspan(3), twist);
  });
}

Errors mhc_read_errors() {
  const Tensor without_res = Tensor::of<double>({3}, {1, 1, 0});
  const Var post = concat({ones({n}, DType::f64), full({n}, 0.5, DType::f64), ones({n * n}, DType::f64)}, 0);
  return {
      {"mhc_read", "phi's cotangent lacks the last token", without_last(1, 1)},
      {"mhc_read", "alpha's cotangent lacks the term of H_res",
       changed(2, [=](const Tensor& dalpha, const Call&) { return Var(dalpha) * without_res; })},
      {"mhc_read", "bias's cotangent lacks the 2 of H_post",
       changed(3, [=](const Tensor& dbias, const Call&) { return Var(dbias) * post; })},
      {"mhc_read", "x's cotangent lacks what flows through the maps", twisted_read(0, {.streams_in_maps = true})},
  };
}

/// The cotangent of the written streams, which is what the vjp returns for those before.
Var of_written(const Call& call) { return call.vjp(call.dys).front(); }

Errors mhc_write_read_errors() {
  return {
      {"mhc_write_read", "h_post's cotangent lacks the last channel",
       changed(1,
               [](const Tensor& dh_post, const Call& c) {
                 const Var products = of_written(c) * expand_dims(c.inputs[2], -2);
                 return dh_post - sum_to(select(products, -1, kChannels - 1).value(), dh_post.shape());
               })},
      {"mhc_write_read", "f's cotangent from the first stream alone",
       changed(2, [](const Tensor&,
                     const Call& c) { return select(expand_dims(c.inputs[1], -1) * of_written(c), -2, 0); })},
      {"mhc_write_read", "x's cotangent lacks what u reads",
       changed(0, [](const Tensor& dx,
                     const Call& c) { return dx - expand_dims(c.outputs[4], -1) * expand_dims(c.dys[0], -2); })},
      {"mhc_write_read", "x's cotangent: H_res of the next write not transposed",
       changed(0, [](const Tensor& dx,
                     const Call& c) { return dx + matmul(c.outputs[3] - transpose(c.outputs[3], -2, -1), c.dys[1]); })},
      {"mhc_write_read", "x's cotangent: norm r taken for constant", twisted_write_read(0, {.norm = true})},
      {"mhc_write_read", "phi's cotangent: one of 768 elements is 5 % too large", one_element_scaled(3, 1.05)},
      {"mhc_write_read", "bias's cotangent: last half-step's 1 / s forgotten",
       twisted_write_read(5, {.half_step = undivided})},
  };
}

}  // namespace

std::vector<Error> mhc_errors() {
  Errors all;
  for (const Errors& some : {sinkhorn_errors(), read_and_write_errors(), mhc_read_errors(), mhc_write_read_errors()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace braid::planted
