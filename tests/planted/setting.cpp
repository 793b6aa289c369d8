#include <tests/planted/setting.h>

#include <algorithm>

#include <braid/autograd/ops.h>
#include <braid/autograd/verify/detail/differences.h>
#include <braid/mhc/ops/mhc_read.h>
#include <braid/mhc/ops/sinkhorn.h>

namespace braid::planted {
namespace {

using Vars = std::span<const Var>;

const Shape kX{2, 4, kChannels}, kXs{2, 4, kStreams, kChannels};  // [B, T, C], [B, T, n, C]

/// Inputs of `connections` connections after the streams: the layer's bias, phi, alpha, bias.
std::vector<Shape> shapes_of_mhc(int connections) {
  const std::int64_t columns = kStreams * (kStreams + 2);
  std::vector<Shape> shapes{kXs};
  for (int i = 0; i < connections; ++i)
    shapes.insert(shapes.end(), {kX, {kStreams * kChannels, columns}, {3}, {columns}});
  return shapes;
}

/// The streams after some connections around layers that add a bias.
Var mhc_connections(Vars x) {
  const mhc::Mixing mixing("sinkhorn", kStreams, {.iterations = kSinkhornIterations});
  mhc::Streams streams(x[0]);
  for (std::size_t i = 1; i < x.size(); i += 4)
    streams.write(streams.read(mhc::MHCMaps{
                      .phi = x[i + 1], .alpha = x[i + 2], .bias = x[i + 3], .mixing = mixing, .eps = kEps}) +
                  x[i]);
  return streams.value();
}

/// A connection with given maps: h_pre, h_post, h_res.
Var static_connection(Vars x) {
  mhc::Streams streams(x[0]);
  streams.write(streams.read(mhc::StreamMaps{.h_pre = x[2], .h_post = x[3], .h_res = x[4]}) + x[1]);
  return streams.value();
}

const std::vector<Shape> kStaticShapes{kXs, kX, {kStreams}, {kStreams}, {kStreams, kStreams}};

std::vector<Alone> all_alone() {
  const Shape heads{2, 4, 2, 4}, w{kChannels}, m{kChannels, kChannels};
  return {
      {"add", {kX, w}, [](Vars x) { return x[0] + x[1]; }},
      {"sub", {kX, w}, [](Vars x) { return x[0] - x[1]; }},
      {"mul", {kX, kX}, [](Vars x) { return x[0] * x[1]; }},
      {"div", {kX, w}, [](Vars x) { return x[0] / x[1]; }},
      {"exp", {kX}, [](Vars x) { return exp(x[0]); }},
      {"tanh", {kX}, [](Vars x) { return tanh(x[0]); }},
      {"sigmoid", {kX}, [](Vars x) { return sigmoid(x[0]); }},
      {"gelu", {kX}, [](Vars x) { return gelu(x[0]); }},
      {"silu", {kX}, [](Vars x) { return silu(x[0]); }},
      {"sum", {kX}, [](Vars x) { return sum(x[0], -1); }},
      {"softmax", {kX}, [](Vars x) { return softmax(x[0], -1); }},
      {"logsumexp", {kX}, [](Vars x) { return logsumexp(x[0], -1); }},
      {"matmul", {kX, m}, [](Vars x) { return matmul(x[0], x[1]); }},
      {"einsum",
       {kX, m},
       [](Vars x) {
         return einsum("btc,cd->btd", {x[0], x[1]});
       }},
      {"transpose", {m}, [](Vars x) { return transpose(x[0], -2, -1); }},
      {"concat",
       {kX, kX},
       [](Vars x) {
         return concat({x[0], x[1]}, -1);
       }},
      {"slice", {kX}, [](Vars x) { return slice(x[0], -1, 2, 6); }},
      {"embedding", {{11, kChannels}}, [](Vars x) { return embedding(x[0], tokens()); }},
      {"reshape",
       {kX},
       [](Vars x) {
         return reshape(x[0], {2, 4, 2, 4});
       }},
      {"linear", {kX, m, w}, [](Vars x) { return linear(x[0], x[1], x[2]); }},
      {"rms_norm", {kX, w}, [](Vars x) { return rms_norm(x[0], x[1], kEps); }},
      {"layer_norm", {kX, w, w}, [](Vars x) { return layer_norm(x[0], x[1], x[2], kEps); }},
      {"attention", {heads, heads, heads}, [](Vars x) { return attention(x[0], x[1], x[2]); }},
      {"rotary_embedding", {heads}, [](Vars x) { return rotary_embedding(x[0]); }},
      {"cross_entropy", {{2, 4, 11}}, [](Vars x) { return cross_entropy(x[0], tokens()); }},
      {"reduce_streams", {kXs}, [](Vars x) { return mhc::reduce_streams(x[0]); }},
      {"sinkhorn", {{2, kStreams, kStreams}}, [](Vars x) { return mhc::sinkhorn_knopp(x[0], kSinkhornIterations); }},
      {"read_streams", kStaticShapes, static_connection},
      {"write_streams", kStaticShapes, static_connection},
      {"mhc_read", shapes_of_mhc(1), mhc_connections},
      {"mhc_write_read", shapes_of_mhc(2), mhc_connections},
  };
}

Var swap_halves(const Var& x) {
  const std::int64_t half = x.size(-1) / 2;
  return concat({slice(x, -1, half, 2 * half), slice(x, -1, 0, half)}, -1);
}

Transformer random_transformer(int layers, bool with_primitives) {
  Rng rng(2);
  Transformer model({.vocab = 11,
                     .context = 4,
                     .channels = kChannels,
                     .layers = layers,
                     .heads = 2,
                     .mlp_ratio = 2,
                     .dtype = DType::f64},
                    rng, [&](int index) { return Detour(index, with_primitives, rng); });
  for_each_param(model, [&](const std::string&, Var& p) { p = p + 0.5 * Var(randn(p.shape(), rng, DType::f64)); });
  return model;
}

}  // namespace

Tensor tokens() { return Tensor::of<std::int32_t>({2, 4}, {3, 1, 4, 1, 5, 9, 1, 4}); }

const Alone& alone(std::string_view op) {
  static const std::vector<Alone> all = all_alone();
  const auto found = std::ranges::find(all, op, &Alone::op);
  check_value(found != all.end(), "alone: there is no case for op '{}'", op);
  return *found;
}

std::vector<Tensor> inputs_of(const Alone& alone) {
  Rng rng(11);
  std::vector<Tensor> inputs;
  for (const Shape& shape : alone.shapes) inputs.push_back((0.5 * Var(detail::random_signs(shape, rng))).value());
  return inputs;
}

Detour::Detour(int index, bool with_primitives, Rng& rng)
    : index(index),
      with_primitives(with_primitives),
      connection({.kind = index % 4 == 3 ? mhc::ConnectionKind::mhc_layer : mhc::ConnectionKind::mhc,
                  .streams = kStreams,
                  .sinkhorn_iterations = kSinkhornIterations,
                  .stream_embedding = true,
                  .dtype = DType::f64},
                 kChannels, index, rng),
      vector(zeros({kChannels}, DType::f64)),
      matrix(zeros({kChannels, kChannels}, DType::f64)) {}

Var Detour::primitives(const Var& x) const {
  const Tensor ids = Tensor::of<std::int32_t>({3}, {3, 1, 3}),
               each = ids.reshape({1, 3, 1}).broadcast_to({2, 3, kChannels});
  const Tensor mask = Tensor::of<std::int32_t>({4, 1}, {1, 0, 1, 0});
  Rng rng(5);
  // So that choices are far from others: second derivatives are differences of gradients, which jump at kinks.
  const Var far = x + Tensor::of<double>({kChannels}, {-12, 4, 8, -4, 12, -8, 16, 0.5});
  switch (index) {
    case 0:
      return sin(x) * cos(x) + expm1(0.5 * x) + log1p(exp(x)) + gelu_erf(x) + softplus(x) * pow(x, 3) +
             log(2 + sin(x)) * sqrt(2 + sin(x)) + rsqrt(2 + cos(x)) * silu(x) + gelu(x) * sigmoid(x) / -tanh(x + 2);
    case 1:
      return relu(far) * clamp(far, -6, 6) / 64 + abs(far) * maximum(far, vector) * minimum(far, vector) / 512 +
             max(far, {-1}, true) * min(far, {-1}, true) / 64 + where(mask, x * x, vector * x) * mean(x, -1, true);
    case 2:
      return concat({split(x, -1, {3, 5})[1], split(x, -1, {3, 5})[0]}, -1) * flip(x, {-1}) +
             roll(x, -1, 3) * slice(pad(x, 1, 1, 0), 1, 0, -1) + repeat(chunk(x, -1, 2)[1], {1, 1, 2}) * x +
             permute(permute(x, {1, 0, 2}) * x[0][0], {1, 0, 2}) * squeeze(expand_dims(x, 0), 0) +
             select(stack({x, x * x}, 0), 0, 1) * broadcast_to(vector, x.shape()) * transpose(transpose(x));
    default:
      return cumsum(x, 1) * sort(far, -1).values / 8 +
             sum(topk(far, 2, -1).values, -1, true) * dropout(x, 0.25, rng) / 8 +
             scatter_add(x, 1, each, index_select(x, 1, ids) * vector) - sum(gather(x, 1, each) * vector, 1, true);
  }
}

Var Detour::detour(const Var& x) const {
  if (with_primitives) return primitives(x);
  switch (index) {
    case 0: return layer_norm(x, vector, 2 * vector);
    case 1: return x / (1 + exp(-x)) + vector;
    case 2: return matmul(tanh(x), transpose(matrix, -2, -1));
    case 3: return einsum("btc,cd->btd", {x, matrix}) * sigmoid(x);
    case 4: return swap_halves(x) - vector;
    case 5: return x - logsumexp(x, -1, true);
    case 6: return silu(x) * vector;
    case 7: return softmax(x, -1) * (x + vector);
    case 8: return reshape(rotary_embedding(reshape(x, {2, 4, 2, kChannels / 2})), x.shape());
    case 9: return x * sum(x * x, -1, true);
    case 10: return matmul(x, matrix) + vector;
    default: return x + vector;
  }
}

Transformer transformer() { return random_transformer(6, false); }
Transformer transformer_of_primitives() { return random_transformer(2, true); }

Var loss(const Transformer& model) { return model.loss(tokens(), tokens()); }

}  // namespace braid::planted
