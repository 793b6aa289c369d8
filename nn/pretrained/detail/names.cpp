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

/// A module or parameter of a family: {} is the layer's number.
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

// Qwen3 and Mistral as well: the norms of q and k are Qwen3's own.
constexpr Row kLlama[] = {
    {"model.embed_tokens", {"embedding"}},
    {"model.layers.{}.input_layernorm", {"blocks.{}.attention.norm"}},
    {"model.layers.{}.self_attn.q_proj", {"blocks.{}.attention.q"}},
    {"model.layers.{}.self_attn.k_proj", {"blocks.{}.attention.k"}},
    {"model.layers.{}.self_attn.v_proj", {"blocks.{}.attention.v"}},
    {"model.layers.{}.self_attn.o_proj", {"blocks.{}.attention.o"}},
    {"model.layers.{}.self_attn.q_norm", {"blocks.{}.attention.q_norm"}},
    {"model.layers.{}.self_attn.k_norm", {"blocks.{}.attention.k_norm"}},
    {"model.layers.{}.post_attention_layernorm", {"blocks.{}.mlp.norm"}},
    {"model.layers.{}.mlp.gate_proj", {"blocks.{}.mlp.gate"}},
    {"model.layers.{}.mlp.up_proj", {"blocks.{}.mlp.up"}},
    {"model.layers.{}.mlp.down_proj", {"blocks.{}.mlp.down"}},
    {"model.norm", {"norm"}},
    {"lm_head", {"head"}},
};

std::string in_layer(std::string_view name, int layer) { return fmt::format(fmt::runtime(name), layer); }

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

std::vector<PretrainedTensor> pretrained_tensors(Family family, int layers, const NamedParams& params) {
  const std::map<std::string, Tensor*> by_name(params.begin(), params.end());
  std::vector<PretrainedTensor> tensors;
  std::size_t found = 0;
  const auto add = [&](const Row& row, int layer, const char* suffix) {
    const auto count =
        static_cast<std::size_t>(std::ranges::count_if(row.ours, [](auto name) { return !name.empty(); }));
    PretrainedTensor tensor{
        in_layer(row.theirs, layer) + suffix, {}, row.transposed && suffix == std::string(".weight")};
    for (const std::string_view ours : row.ours | std::views::take(count))
      if (const auto param = by_name.find(in_layer(ours, layer) + suffix); param != by_name.end())
        tensor.params.push_back(param->second);
    found += tensor.params.size();
    if (tensor.params.size() == count) tensors.push_back(std::move(tensor));
  };
  const std::span<const Row> rows = family == Family::gpt2 ? std::span<const Row>(kGpt2) : kLlama;
  for (const Row& row : rows)
    for (int layer = 0; layer < (row.theirs.find('{') == row.theirs.npos ? 1 : layers); ++layer)
      for (const char* suffix : {"", ".weight", ".bias"}) add(row, layer, suffix);
  check<Error>(found == params.size(), "pretrained_tensors: the model has parameters that its family does not have");
  return tensors;
}

std::string_view base_prefix(Family family) { return family == Family::gpt2 ? "transformer." : "model."; }

bool is_constant(Family family, std::string_view name) {
  if (family == Family::gpt2) return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  return name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace braid::nn::detail
