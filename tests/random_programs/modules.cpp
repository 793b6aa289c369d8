#include <tests/random_programs/modules.h>

#include <algorithm>
#include <cmath>

#include <braid/mhc/connection.h>
#include <braid/nn/block.h>
#include <braid/nn/embedding.h>
#include <braid/nn/linear.h>
#include <braid/nn/norm.h>

namespace braid::programs {
namespace {

mhc::ConnectionConfig connection_config(const ModulePlan& plan) {
  return {.kind = mhc::connection_kind(plan.kind),
          .streams = plan.streams,
          .sinkhorn_iterations = static_cast<int>(plan.iterations),
          .mixing = plan.mixing,
          .dynamic = plan.constant == 0,
          .fractions = 2,
          .proposals = plan.iterations,
          .constrained = plan.constant != 0,
          .laurel_rank = 1 + plan.constant,
          .head = static_cast<mhc::StreamHead>(plan.head),
          .stream_embedding = plan.stream_embedding != 0,
          .sublayers = 2 * plan.blocks,
          .keep_every = plan.keep_every,
          .dtype = DType::f64};
}

nn::MultiHeadAttention attention(const ModulePlan& plan, Rng& rng) {
  return {plan.channels(), static_cast<int>(plan.heads), rng, {.rotary = plan.rotary != 0, .dtype = DType::f64}};
}

nn::MLP mlp(const ModulePlan& plan, Rng& rng) {
  const nn::Activation activation = plan.swiglu != 0 ? nn::Activation::swiglu : nn::Activation::gelu;
  return {plan.channels(), plan.hidden, rng, {.activation = activation, .dtype = DType::f64}};
}

/// Transformer blocks between the two ends of their connections.
struct Blocks {
  std::vector<nn::TransformerBlock<mhc::Connection>> blocks;

  Blocks(const ModulePlan& plan, Rng& rng) {
    const nn::RMSNorm norm(plan.channels(), {.dtype = DType::f64});
    const mhc::ConnectionConfig config = connection_config(plan);
    const auto connection = [&](std::int64_t index) { return mhc::Connection(config, plan.channels(), index, rng); };
    for (std::int64_t i = 0; i < plan.blocks; ++i)
      blocks.push_back(
          {{norm, attention(plan, rng), connection(2 * i)}, {norm, mlp(plan, rng), connection(2 * i + 1)}});
  }

  Var operator()(const Var& x) const {
    auto stream = blocks.front().attention.connection.open(x);
    for (const auto& block : blocks) stream = block(stream);
    return blocks.back().mlp.connection.close(stream);
  }

  void params(auto&& visit) { visit("blocks", blocks); }
};

/// Its rows, added to x.
struct Lookup {
  nn::Embedding embedding;
  Tensor tokens;

  Lookup(const ModulePlan& plan, Rng& rng)
      : embedding(3, plan.channels(), rng, DType::f64), tokens({plan.batch, plan.tokens}, DType::i32) {
    for (std::int64_t i = 0; i < tokens.numel(); ++i)
      tokens.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(rng.below(3));
  }
  Var operator()(const Var& x) const { return x + embedding(tokens); }
  void params(auto&& visit) { visit("embedding", embedding); }
};

/// Normal values of this size, which f32 holds; those of odd plans on a grid of quarters.
Tensor random(const Shape& shape, double size, const ModulePlan& plan, Rng& rng) {
  Tensor x = randn(shape, rng, DType::f32);
  float* values = x.mutable_data<float>();
  std::transform(values, values + x.numel(), values, [&](float v) {
    const float scaled = v * static_cast<float>(size);
    return plan.numbers % 2 == 0 ? scaled : std::round(scaled * 4) / 4;
  });
  return x.to(DType::f64);
}

/// The inputs are x and values for the parameters.
template <class Body>
CheckedModule check_body(const Body& body, const ModulePlan& plan, bool bits, Rng& rng) {
  std::vector<Tensor> exact{random({plan.batch, plan.tokens, plan.channels()}, 1, plan, rng)}, single;
  std::vector<std::string> names{"x"};
  for_each_param(body, [&](const std::string& name, const Var& param) {
    exact.push_back(random(param.shape(), 0.5, plan, rng));
    names.push_back(name);
  });
  for (const Tensor& x : exact) single.push_back(x.to(DType::f32));
  const auto f = [&](std::span<const Var> inputs) -> Var {
    Body with_params = body;
    auto next = inputs.begin() + 1;
    for_each_param(with_params, [&](const std::string&, Var& param) { param = *next++; });
    const auto evaluate = [&] { return std::as_const(with_params)(inputs.front()); };
    return plan.composed != 0 ? composed(evaluate) : fused(evaluate);
  };
  if (bits) {
    const auto failure = check_bits(f, single);
    return {failure ? failure : check_bits(f, exact)};
  }
  if (auto failure = check_single(f, single, exact)) return {failure};
  const GradcheckResult result =
      gradcheck(f, exact, {.max_elements = 4, .directions = 3, .order = 2, .by = GradcheckOptions::By::both}, names);
  return {result ? std::nullopt : std::optional(Failure{Fault::gradient, result.message}), result};
}

CheckedModule check(const ModulePlan& plan, bool bits) {
  Rng rng(plan.numbers);
  const std::int64_t channels = plan.channels();
  if (plan.kind == "linear")
    return check_body(nn::Linear(channels, plan.hidden, rng, {.dtype = DType::f64}), plan, bits, rng);
  if (plan.kind == "layer_norm") return check_body(nn::LayerNorm(channels, {.dtype = DType::f64}), plan, bits, rng);
  if (plan.kind == "rms_norm") return check_body(nn::RMSNorm(channels, {.dtype = DType::f64}), plan, bits, rng);
  if (plan.kind == "embedding") return check_body(Lookup(plan, rng), plan, bits, rng);
  if (plan.kind == "attention") return check_body(attention(plan, rng), plan, bits, rng);
  if (plan.kind == "mlp") return check_body(mlp(plan, rng), plan, bits, rng);
  return check_body(Blocks(plan, rng), plan, bits, rng);
}

}  // namespace

CheckedModule check_module(const ModulePlan& plan, bool bits) {
  try {
    return check(plan, bits);
  } catch (const std::exception& error) {
    return {Failure{Fault::error, error.what()}};
  }
}

}  // namespace braid::programs
