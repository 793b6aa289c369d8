#include <braid/nn/pretrained/detail/names.h>

#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <span>

#include <fmt/format.h>

#include <braid/autograd/ops/concat.h>

namespace braid::nn::detail {
namespace {

/// A module or parameter of a family: {} is the layer's number, another {} the expert's.
struct Row {
  std::string_view theirs;
  std::array<std::string_view, 3> ours;  // the rest empty
  bool transposed = false;
};

constexpr Row kGpt2[] = {
    {"transformer.wte", {"embedding"}},
    {"transformer.wpe.weight", {"positions"}},
    {"transformer.h.{}.ln_1", {"blocks.{}.attention.norm"}},
    {"transformer.h.{}.attn.c_attn", {"blocks.{}.attention.q", "blocks.{}.attention.k", "blocks.{}.attention.v"}, true},
    {"transformer.h.{}.attn.c_proj", {"blocks.{}.attention.o"}, true},
    {"transformer.h.{}.ln_2", {"blocks.{}.mlp.norm"}},
    {"transformer.h.{}.mlp.c_fc", {"blocks.{}.mlp.up"}, true},
    {"transformer.h.{}.mlp.c_proj", {"blocks.{}.mlp.down"}, true},
    {"transformer.ln_f", {"norm"}},
    {"lm_head", {"head"}},
};

// What all others share. The norms of q and k are Qwen3's own.
constexpr Row kDecoder[] = {
    {"model.embed_tokens", {"embedding"}},
    {"model.layers.{}.input_layernorm", {"blocks.{}.attention.norm"}},
    {"model.layers.{}.self_attn.q_proj", {"blocks.{}.attention.q"}},
    {"model.layers.{}.self_attn.k_proj", {"blocks.{}.attention.k"}},
    {"model.layers.{}.self_attn.v_proj", {"blocks.{}.attention.v"}},
    {"model.layers.{}.self_attn.o_proj", {"blocks.{}.attention.o"}},
    {"model.layers.{}.self_attn.q_norm", {"blocks.{}.attention.q_norm"}},
    {"model.layers.{}.self_attn.k_norm", {"blocks.{}.attention.k_norm"}},
    {"model.layers.{}.mlp.gate_proj", {"blocks.{}.mlp.gate"}},
    {"model.layers.{}.mlp.up_proj", {"blocks.{}.mlp.up"}},
    {"model.layers.{}.mlp.down_proj", {"blocks.{}.mlp.down"}},
    {"model.norm", {"norm"}},
    {"lm_head", {"head"}},
};

constexpr Row kLlama[] = {{"model.layers.{}.post_attention_layernorm", {"blocks.{}.mlp.norm"}}};

constexpr Row kMixtral[] = {
    kLlama[0],
    {"model.layers.{}.block_sparse_moe.gate.weight", {"blocks.{}.mlp.router"}},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1", {"blocks.{}.mlp.experts.{}.gate"}},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2", {"blocks.{}.mlp.experts.{}.down"}},
    {"model.layers.{}.block_sparse_moe.experts.{}.w3", {"blocks.{}.mlp.experts.{}.up"}},
};

constexpr Row kQwen3Moe[] = {
    kLlama[0],
    {"model.layers.{}.mlp.gate.weight", {"blocks.{}.mlp.router"}},
    {"model.layers.{}.mlp.experts.{}.gate_proj", {"blocks.{}.mlp.experts.{}.gate"}},
    {"model.layers.{}.mlp.experts.{}.up_proj", {"blocks.{}.mlp.experts.{}.up"}},
    {"model.layers.{}.mlp.experts.{}.down_proj", {"blocks.{}.mlp.experts.{}.down"}},
};

constexpr Row kGemma2[] = {
    {"model.layers.{}.post_attention_layernorm", {"blocks.{}.attention.post_norm"}},
    {"model.layers.{}.pre_feedforward_layernorm", {"blocks.{}.mlp.norm"}},
    {"model.layers.{}.post_feedforward_layernorm", {"blocks.{}.mlp.post_norm"}},
};

/// The rows that a family has beside kDecoder.
std::span<const Row> own_rows(Family family) {
  switch (family) {
    case Family::gpt2: return kGpt2;
    case Family::mixtral: return kMixtral;
    case Family::qwen3_moe: return kQwen3Moe;
    case Family::gemma2: return kGemma2;
    case Family::llama:
    case Family::qwen3:
    case Family::mistral: break;
  }
  return kLlama;
}

std::string numbered(std::string_view name, int layer, int expert) {
  return fmt::format(fmt::runtime(name), layer, expert);
}

}  // namespace

Shape PretrainedTensor::shape() const {
  std::int64_t rows = 0;
  for (const Tensor* param : params) rows += param->size(0);
  const Shape stacked = params.front()->shape().with(0, rows);
  return transposed ? Shape{stacked[1], stacked[0]} : stacked;
}

void PretrainedTensor::assign(Tensor value, DType dtype) const {
  value = value.to(dtype);
  if (transposed) value = value.transpose();
  std::int64_t row = 0;
  for (Tensor* param : params) {
    const std::int64_t rows = param->size(0);
    *param = params.size() == 1 ? value.contiguous() : value.slice(0, row, row + rows).clone();
    row += rows;
  }
}

Tensor PretrainedTensor::value() const {
  Tensor stacked = *params.front();
  if (params.size() > 1) {
    std::vector<Var> parts;
    for (const Tensor* param : params) parts.push_back(*param);
    stacked = concat(parts, 0).value();
  }
  return transposed ? stacked.transpose() : stacked;
}

std::vector<PretrainedTensor> pretrained_tensors(Family family, const TransformerConfig& config,
                                                 const NamedParams& params) {
  const std::map<std::string, Tensor*> by_name(params.begin(), params.end());
  std::vector<PretrainedTensor> tensors;
  std::size_t found = 0;
  const auto add = [&](const Row& row, int layer, int expert, const char* suffix) {
    const auto count =
        static_cast<std::size_t>(std::ranges::count_if(row.ours, [](auto name) { return !name.empty(); }));
    PretrainedTensor tensor{
        numbered(row.theirs, layer, expert) + suffix, {}, row.transposed && suffix == std::string(".weight")};
    for (const std::string_view ours : row.ours | std::views::take(count))
      if (const auto param = by_name.find(numbered(ours, layer, expert) + suffix); param != by_name.end())
        tensor.params.push_back(param->second);
    found += tensor.params.size();
    if (tensor.params.size() == count) tensors.push_back(std::move(tensor));
  };
  const auto add_all = [&](std::span<const Row> rows) {
    for (const Row& row : rows) {
      const auto numbers = std::ranges::count(row.theirs, '{');
      for (int layer = 0; layer < (numbers > 0 ? config.layers : 1); ++layer)
        for (int expert = 0; expert < (numbers > 1 ? config.experts->experts : 1); ++expert)
          for (const char* suffix : {"", ".weight", ".bias"}) add(row, layer, expert, suffix);
    }
  };
  add_all(own_rows(family));
  if (family != Family::gpt2) add_all(kDecoder);
  check<Error>(found == params.size(), "pretrained_tensors: the model has parameters that its family does not have");
  return tensors;
}

std::string_view base_prefix(Family family) { return family == Family::gpt2 ? "transformer." : "model."; }

bool is_constant(Family family, std::string_view name) {
  if (family == Family::gpt2) return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  return name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace braid::nn::detail
