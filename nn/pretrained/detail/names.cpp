#include <braid/nn/pretrained/detail/folder.h>

#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <braid/autograd/ops/concat.h>

namespace braid::nn::detail {
namespace {

/// A module or parameter of a family, or how the names of a connection's parameters begin: {} is the layer's number,
/// another {} the expert's.
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

// What the others share. The norms of q and k are Qwen3's own.
constexpr Row kDecoder[] = {
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

constexpr Row kMixtral[] = {
    {"model.layers.{}.block_sparse_moe.gate.weight", {"blocks.{}.mlp.router"}},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1", {"blocks.{}.mlp.experts.{}.gate"}},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2", {"blocks.{}.mlp.experts.{}.down"}},
    {"model.layers.{}.block_sparse_moe.experts.{}.w3", {"blocks.{}.mlp.experts.{}.up"}},
};

constexpr Row kQwen3Moe[] = {
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

constexpr Row kDeepSeekV4[] = {
    {"model.layers.{}.attn_norm", {"blocks.{}.attention.norm"}},
    {"model.layers.{}.attn.wq_a", {"blocks.{}.attention.q_down"}},
    {"model.layers.{}.attn.q_norm", {"blocks.{}.attention.q_down_norm"}},
    {"model.layers.{}.attn.wq_b", {"blocks.{}.attention.q"}},
    {"model.layers.{}.attn.wkv", {"blocks.{}.attention.k"}},
    {"model.layers.{}.attn.norm", {"blocks.{}.attention.k_norm"}},
    {"model.layers.{}.attn.wo_a", {"blocks.{}.attention.o_down"}},
    {"model.layers.{}.attn.wo_b", {"blocks.{}.attention.o"}},
    {"model.layers.{}.attn.attn_sink", {"blocks.{}.attention.sinks"}},
    {"model.layers.{}.attn.compressor.wkv", {"blocks.{}.attention.compressor.kv"}},
    {"model.layers.{}.attn.compressor.wgate", {"blocks.{}.attention.compressor.gate"}},
    {"model.layers.{}.attn.compressor.ape", {"blocks.{}.attention.compressor.position_bias"}},
    {"model.layers.{}.attn.compressor.norm", {"blocks.{}.attention.compressor.norm"}},
    {"model.layers.{}.attn.indexer.compressor.wkv", {"blocks.{}.attention.indexer.keys.kv"}},
    {"model.layers.{}.attn.indexer.compressor.wgate", {"blocks.{}.attention.indexer.keys.gate"}},
    {"model.layers.{}.attn.indexer.compressor.ape", {"blocks.{}.attention.indexer.keys.position_bias"}},
    {"model.layers.{}.attn.indexer.compressor.norm", {"blocks.{}.attention.indexer.keys.norm"}},
    {"model.layers.{}.attn.indexer.wq_b", {"blocks.{}.attention.indexer.q"}},
    {"model.layers.{}.attn.indexer.weights_proj", {"blocks.{}.attention.indexer.weights"}},
    {"model.layers.{}.hc_attn_", {"blocks.{}.attention.connection."}},
    {"model.layers.{}.ffn_norm", {"blocks.{}.mlp.norm"}},
    {"model.layers.{}.ffn.gate.weight", {"blocks.{}.mlp.router"}},
    {"model.layers.{}.ffn.gate.bias", {"blocks.{}.mlp.correction"}},
    {"model.layers.{}.ffn.gate.tid2eid", {"blocks.{}.mlp.table"}},
    {"model.layers.{}.ffn.experts.{}.w1", {"blocks.{}.mlp.experts.{}.gate"}},
    {"model.layers.{}.ffn.experts.{}.w2", {"blocks.{}.mlp.experts.{}.down"}},
    {"model.layers.{}.ffn.experts.{}.w3", {"blocks.{}.mlp.experts.{}.up"}},
    {"model.layers.{}.ffn.shared_experts.w1", {"blocks.{}.mlp.shared.gate"}},
    {"model.layers.{}.ffn.shared_experts.w2", {"blocks.{}.mlp.shared.down"}},
    {"model.layers.{}.ffn.shared_experts.w3", {"blocks.{}.mlp.shared.up"}},
    {"model.layers.{}.hc_ffn_", {"blocks.{}.mlp.connection."}},
    {"model.hc_head.hc_", {"blocks.{}.mlp.connection.head."}},  // of the last layer
    {"head", {"head"}},
};

/// The rows of a family's own, in the order of PretrainedFamily. All but GPT-2 have kDecoder's for what these leave.
constexpr std::span<const Row> kRows[] = {kGpt2, {}, {}, {}, kMixtral, kQwen3Moe, kGemma2, kDeepSeekV4};

}  // namespace

Shape PretrainedTensor::shape() const {
  std::int64_t rows = 0;
  for (const Tensor* param : params) rows += param->size(0);
  const Shape stacked = params.front()->shape().with(0, rows);
  return transposed ? Shape{stacked[1], stacked[0]} : stacked;
}

void PretrainedTensor::assign(Tensor value, DType dtype) const {
  if (this->dtype() != DType::i32) value = value.to(dtype);
  if (transposed) value = value.transpose();
  std::int64_t row = 0;
  for (Tensor* param : params) {
    const std::int64_t rows = param->size(0);
    *param = params.size() == 1 ? value.contiguous() : value.slice(0, row, row + rows).clone();
    row += rows;
  }
}

Tensor PretrainedTensor::value() const {
  std::vector<Var> parts;
  for (const Tensor* param : params) parts.push_back(*param);
  const Tensor stacked = parts.size() == 1 ? *params.front() : concat(parts, 0).value();
  return transposed ? stacked.transpose() : stacked;
}

std::vector<PretrainedTensor> pretrained_tensors(Family family, const TransformerConfig& config,
                                                 const NamedParams& params) {
  std::map<std::string, Tensor*> by_name(params.begin(), params.end());
  std::vector<PretrainedTensor> tensors;
  const auto add = [&](const Row& row, int layer, int expert, const char* suffix) {
    const auto names = row.ours | std::views::take_while([](std::string_view name) { return !name.empty(); });
    const auto full = [&](std::string_view name) { return fmt::format(fmt::runtime(name), layer, expert) + suffix; };
    PretrainedTensor tensor{full(row.theirs), {}, row.transposed && suffix == std::string(".weight")};
    for (const std::string_view ours : names)
      if (const auto param = by_name.extract(full(ours))) tensor.params.push_back(param.mapped());
    if (std::ssize(tensor.params) == std::ranges::distance(names)) tensors.push_back(std::move(tensor));
  };
  const auto add_all = [&](std::span<const Row> rows) {
    for (const Row& row : rows) {
      const auto numbers = std::ranges::count(row.theirs, '{');
      for (int layer = numbers > 0 ? 0 : config.layers - 1; layer < config.layers; ++layer)
        for (int expert = 0; expert < (numbers > 1 ? config.experts->experts : 1); ++expert)
          for (const char* suffix : {"", ".weight", ".bias", "fn", "base", "scale"}) add(row, layer, expert, suffix);
    }
  };
  add_all(kRows[static_cast<std::size_t>(family)]);
  if (family != Family::gpt2) add_all(kDecoder);
  const std::string other = by_name.empty() ? "" : by_name.begin()->first;
  check<Error>(other.empty(), "pretrained_tensors: the model's family has no {}{}", other,
               other.find(".lora.") == other.npos ? "" : "; call nn::merge_lora first");
  return tensors;
}

}  // namespace braid::nn::detail
