#include <tests/random_programs/modules.h>

#include <algorithm>

#include <fmt/format.h>

#include <braid/mhc/connection.h>
#include <braid/mhc/mixing.h>
#include <braid/nn/block.h>

namespace braid::programs {
namespace {

/// Each connection, mhc with each of the other mixings, and what goes without.
const std::vector<std::pair<std::string, std::string>>& kinds() {
  static const auto all = [] {
    std::vector<std::pair<std::string, std::string>> kinds{{"attention", ""}, {"mlp", ""}};
    for (const std::string_view name : mhc::connection_names()) kinds.emplace_back(name, "sinkhorn");
    for (const std::string_view mixing : mhc::mixing_names())
      if (mixing != "sinkhorn") kinds.emplace_back("mhc", mixing);
    return kinds;
  }();
  return all;
}

/// All that a random module is made from.
struct Plan {
  std::string kind, mixing;
  std::int64_t batch, tokens, heads, channels, blocks;
  bool rotary, swiglu;
  mhc::ConnectionConfig connection = {};
};

/// A number of streams that the mixing is there for.
std::int64_t streams_for(const std::string& mixing, Rng& rng) {
  std::int64_t n = 0;
  do n = 1 + rng.below(4);
  while (std::ranges::count(mhc::mixing_names(n), mixing) == 0);
  return n;
}

mhc::ConnectionConfig draw_connection(const Plan& plan, Rng& rng) {
  const mhc::ConnectionKind kind = mhc::connection_kind(plan.kind);
  const bool divides = kind == mhc::ConnectionKind::manifold;  // the channels into groups
  return {.kind = kind,
          .streams = divides ? 1 + rng.below(2) : streams_for(plan.mixing, rng),
          .sinkhorn_iterations = static_cast<int>(1 + rng.below(5)),
          .mixing = plan.mixing,
          .dynamic = rng.below(4) > 0,
          .head = static_cast<mhc::StreamHead>(rng.below(std::ssize(mhc::stream_head_names()))),
          .stream_embedding = rng.below(2) == 0,
          .sublayers = 2 * plan.blocks,
          .path = rng.below(4) == 0 ? mhc::Path::reference : mhc::Path::fused,
          .keep_every = 1 + rng.below(2),
          .dtype = DType::f64};
}

Plan draw_plan(std::uint64_t index, Rng& rng) {
  const auto& [kind, mixing] = kinds()[index % kinds().size()];
  Plan plan{.kind = kind,
            .mixing = mixing,
            .batch = 1 + rng.below(2),
            .tokens = 1 + rng.below(3),
            .heads = 1 + rng.below(2),
            .channels = 2,
            .blocks = 1 + rng.below(2),
            .rotary = rng.below(2) == 0,
            .swiglu = rng.below(2) == 0};
  plan.channels *= plan.heads;
  if (!mixing.empty()) plan.connection = draw_connection(plan, rng);
  return plan;
}

nn::MultiHeadAttention attention(const Plan& plan, Rng& rng) {
  return {plan.channels, static_cast<int>(plan.heads), rng, {.rotary = plan.rotary, .dtype = DType::f64}};
}

nn::MLP mlp(const Plan& plan, Rng& rng) {
  const nn::Activation activation = plan.swiglu ? nn::Activation::swiglu : nn::Activation::gelu;
  return {plan.channels, 1 + rng.below(4), rng, {.activation = activation, .dtype = DType::f64}};
}

/// Transformer blocks between the two ends of their connections.
struct Blocks {
  std::vector<nn::TransformerBlock<mhc::Connection>> blocks;

  Blocks(const Plan& plan, Rng& rng) {
    const nn::RMSNorm norm(plan.channels, {.dtype = DType::f64});
    const auto connection = [&](std::int64_t index) {
      return mhc::Connection(plan.connection, plan.channels, index, rng);
    };
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

/// Normal values of this size, which f32 holds.
Tensor random(const Shape& shape, double size, Rng& rng) {
  Tensor x = randn(shape, rng, DType::f32);
  float* values = x.mutable_data<float>();
  std::transform(values, values + x.numel(), values, [&](float v) { return v * static_cast<float>(size); });
  return x.to(DType::f64);
}

/// The inputs are x and values for the parameters.
template <class Body>
std::optional<Failure> check_body(const Body& body, const Plan& plan, Rng& rng) {
  std::vector<Tensor> exact{random({plan.batch, plan.tokens, plan.channels}, 1, rng)}, single;
  std::vector<std::string> names{"x"};
  for_each_param(body, [&](const std::string& name, const Var& param) {
    exact.push_back(random(param.shape(), 0.5, rng));
    names.push_back(name);
  });
  for (const Tensor& x : exact) single.push_back(x.to(DType::f32));
  const auto f = [&](std::span<const Var> inputs) -> Var {
    Body with_params = body;
    auto next = inputs.begin() + 1;
    for_each_param(with_params, [&](const std::string&, Var& param) { param = *next++; });
    return std::as_const(with_params)(inputs.front());
  };
  for (const auto& inputs : {single, exact})
    if (auto failure = check_bits(f, inputs)) return failure;
  if (auto failure = check_single(f, single, exact)) return failure;
  return check_gradients(f, exact, {.max_elements = 4, .directions = 3}, names);
}

}  // namespace

std::uint64_t module_kinds() { return kinds().size(); }

std::string module_text(std::uint64_t seed, std::uint64_t index) {
  Rng rng(seed, index << 20);
  const Plan p = draw_plan(index, rng);
  const mhc::ConnectionConfig& c = p.connection;
  std::string text = fmt::format("{} {}[{}, {}, {}], {} heads, rotary {}, swiglu {}", p.kind, p.mixing, p.batch,
                                 p.tokens, p.channels, p.heads, p.rotary, p.swiglu);
  if (p.mixing.empty()) return text;
  return text + fmt::format(
                    ", {} blocks, {} streams, {} iterations, head {}, {} path, keeps every {}, dynamic {}, stream "
                    "embedding {}",
                    p.blocks, c.streams.value_or(0), c.sinkhorn_iterations,
                    mhc::stream_head_names()[static_cast<std::size_t>(c.head)], name(c.path), c.keep_every, c.dynamic,
                    c.stream_embedding);
}

std::optional<Failure> check_module(std::uint64_t seed, std::uint64_t index) {
  Rng rng(seed, index << 20);
  const Plan plan = draw_plan(index, rng);
  try {
    if (plan.kind == "attention") return check_body(attention(plan, rng), plan, rng);
    if (plan.kind == "mlp") return check_body(mlp(plan, rng), plan, rng);
    return check_body(Blocks(plan, rng), plan, rng);
  } catch (const std::exception& error) {
    return Failure{Fault::error, error.what()};
  }
}

}  // namespace braid::programs
