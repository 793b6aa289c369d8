// A ResNet and a vision transformer tell shapes apart, with residual connections and with hyper-connections around
// their blocks; apps/plots/pictures.py draws what they see and say.
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include "../apps/common/run_folder.h"
#include "../apps/common/run_main.h"

using namespace braid;

constexpr std::int64_t kSize = 16, kClasses = 6;  // disc, ring, square, frame, cross, stripes

/// Whether a shape of a class covers the point (x, y), seen from its middle, in units of its radius.
bool covers(std::int32_t shape, double x, double y) {
  const double round = std::hypot(x, y), square = std::max(std::abs(x), std::abs(y));
  switch (shape) {
    case 0: return round < 1;
    case 1: return round < 1 && round > 0.6;
    case 2: return square < 0.85;
    case 3: return square < 0.85 && square > 0.5;
    case 4: return square < 1 && std::min(std::abs(x), std::abs(y)) < 0.25;
    default: return square < 0.9 && std::fmod(x + 4, 0.8) < 0.4;
  }
}

/// Pictures [n, 16, 16, 1] of shapes anywhere, of several sizes, under noise as strong as they are, and their classes.
struct Pictures {
  Tensor pixels, classes;

  Pictures(std::int64_t n, Rng& rng)
      : pixels({n, kSize, kSize, 1}, DType::f32), classes(randint(0, kClasses, {n}, rng)) {
    const Tensor place = rand({n, 3}, rng), noise = randn({n, kSize, kSize}, rng);
    float* to = pixels.mutable_data<float>();
    for (std::int64_t i = 0; i < n; ++i) {
      const double radius = 3.5 + 3 * place.at({i, 0}), room = kSize - 2 * radius;
      const double middle_x = radius + room * place.at({i, 1}), middle_y = radius + room * place.at({i, 2});
      for (std::int64_t v = 0; v < kSize * kSize; ++v) {
        const double x = (static_cast<double>(v % kSize) + 0.5 - middle_x) / radius;
        const double y = (static_cast<double>(v / kSize) + 0.5 - middle_y) / radius;
        const bool inside = covers(classes.data<std::int32_t>()[i], x, y);
        *to++ = (inside ? 1.0F : 0.0F) + 0.6F * noise.data<float>()[i * kSize * kSize + v];
      }
    }
  }
};

/// Two convolutions between positions, the body of a residual block.
struct Convolutions {
  nn::Conv2d first, second;

  Convolutions(std::int64_t channels, Rng& rng)
      : first(channels, channels, 3, rng, {.padding = 1}), second(channels, channels, 3, rng, {.padding = 1}) {}
  Var operator()(const Var& x) const { return second(relu(first(x))); }

  void params(auto&& visit) {
    visit("first", first);
    visit("second", second);
  }
};

mhc::Connection connection(const std::string& kind, std::int64_t channels, int index, Rng& rng) {
  return {{.kind = mhc::connection_kind(kind), .phi_std = 0.02}, channels, index, rng};
}

/// Stages of blocks, with half the positions from one to the next.
struct ResNet {
  using Block = nn::Sublayer<Convolutions, mhc::Connection>;

  nn::Conv2d stem;
  std::vector<std::vector<Block>> stages;
  nn::Linear head;

  ResNet(const std::string& kind, Rng& rng) : stem(1, 24, 3, rng, {.padding = 1}), head(24, kClasses, rng) {
    Rng maps(4);  // of their own, so that the layers start alike under both connections
    for (int stage = 0; stage < 2; ++stage) {
      std::vector<Block>& blocks = stages.emplace_back();
      for (int i = 0; i < 2; ++i)
        blocks.push_back({nn::RMSNorm(24), Convolutions(24, rng), connection(kind, 24, i, maps)});
    }
  }

  Var operator()(const Var& pixels) const {  // [N, 16, 16, 1] -> logits [N, classes]
    Var x = stem(pixels);
    for (const std::vector<Block>& blocks : stages) {
      auto stream = blocks.front().connection.open(x);
      for (const Block& block : blocks) stream = block(stream);
      x = max_pool2d(blocks.back().connection.close(stream), 2);
    }
    return head(mean(x, {1, 2}));
  }

  void params(auto&& visit) {
    visit("stem", stem);
    visit("stages", stages);
    visit("head", head);
  }
};

/// Patches of 4 x 4 as tokens, which see each other.
struct VisionTransformer {
  nn::Linear patches, head;
  Var positions;
  std::vector<nn::TransformerBlock<mhc::Connection>> blocks;

  VisionTransformer(const std::string& kind, Rng& rng)
      : patches(16, 48, rng), head(48, kClasses, rng), positions(nn::init::normal({16, 48}, 0.02, rng)) {
    Rng maps(4);
    for (int i = 0; i < 3; ++i)
      blocks.push_back(
          {{nn::RMSNorm(48), nn::MultiHeadAttention(48, 4, rng, {.causal = false}), connection(kind, 48, 2 * i, maps)},
           {nn::RMSNorm(48), nn::MLP(48, 96, rng), connection(kind, 48, 2 * i + 1, maps)}});
  }

  Var operator()(const Var& pixels) const {
    const Var tokens = patches(reshape(unfold(pixels, 4, {.stride = 4}), {pixels.size(0), 16, 16})) + positions;
    auto stream = blocks.front().attention.connection.open(tokens);
    for (const auto& block : blocks) stream = block(stream);
    return head(mean(blocks.back().mlp.connection.close(stream), 1));
  }

  void params(auto&& visit) {
    visit("patches", patches);
    visit("positions", positions);
    visit("blocks", blocks);
    visit("head", head);
  }
};

template <class Model>
double accuracy(const Model& model, const Pictures& data) {
  const Tensor said = argmax(model(data.pixels), 1);
  return mean((Var(said) == Var(data.classes)).to(DType::f32)).item();
}

/// Trains on fresh pictures and says how many of 1000 others are told right; returns what the model says of these.
template <class Model>
Tensor train(const char* name, const std::string& kind, std::int64_t steps) {
  Rng rng(1), draws(2), others(3);
  const Pictures held_out(1000, others);
  Model model(kind, rng);
  nn::AdamW optimizer({.decays = nn::decay_weights_only});
  const nn::Schedule lr = nn::warmup_cosine({.peak = 3e-3, .floor = 1e-4, .warmup = steps / 20, .total = steps});
  const auto step =
      value_and_grad([](const Model& m, const Pictures& data) { return cross_entropy(m(data.pixels), data.classes); });
  for (std::int64_t i = 0; i < steps; ++i) {
    auto [loss, grads] = step(model, Pictures(64, draws));
    nn::clip_grad_norm(grads, 1.0);
    optimizer.set_lr(lr(i));
    optimizer.step(model, grads);
  }
  fmt::print("{:<19} {:<9} {:6} parameters  right: {:.1f} %\n", name, kind, num_params(model),
             100 * accuracy(model, held_out));
  std::fflush(stdout);
  return argmax(model(held_out.pixels), 1);
}

void run(const std::filesystem::path& out, std::int64_t steps) {
  apps::check_results_folder(out);
  Rng others(3);
  const Pictures held_out(1000, others);
  std::map<std::string, Tensor> seen{{"pixels", held_out.pixels}, {"classes", held_out.classes}};
  for (const std::string kind : {"residual", "mhc"}) {
    seen["resnet_" + kind] = train<ResNet>("ResNet", kind, steps);
    seen["vit_" + kind] = train<VisionTransformer>("Vision transformer", kind, steps);
  }
  apps::make_results_folder(out);
  save_npz(out / "pictures.npz", seen);
}

int main(int argc, char** argv) {
  return apps::run_main("pictures", [&] {
    CLI::App app("Trains a ResNet and a vision transformer on pictures of shapes; writes what they say of others.");
    std::string out = "runs/pictures";
    std::int64_t steps = 1000;
    app.add_option("--out", out, "results folder")->capture_default_str();
    app.add_option("--steps", steps, "training steps of 64 pictures")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    apps::parse_command_line(app, argc, argv);
    run(out, steps);
    return 0;
  });
}
