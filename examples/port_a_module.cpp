// A port of a PyTorch module, compared with a recorded call of the original (port_a_module.py): values and gradients.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include "../apps/common/run_main.h"
#include "../apps/platform/process.h"

using namespace braid;

/// Paths of parameters are the names of the original, so that no name has to be translated.
struct Block {
  nn::LayerNorm norm1;
  nn::MultiHeadAttention attention;
  nn::LayerNorm norm2;
  nn::MLP mlp;

  Var operator()(const Var& input) const {
    const Var x = input + attention(norm1(input));
    return x + mlp(norm2(x));
  }

  void params(auto&& visit) {
    visit("norm1", norm1);
    visit("attention", attention);
    visit("norm2", norm2);
    visit("mlp", mlp);
  }
};

/// The port, or one with a typical mistake: another epsilon, another number of heads.
Block port(const std::string& mistake) {
  Rng rng;
  const int heads = mistake == "heads" ? 2 : 4;
  const double eps = mistake == "eps" ? 1e-6 : 1e-5;
  return {nn::LayerNorm(16), nn::MultiHeadAttention(16, heads, rng), nn::LayerNorm(16, {.eps = eps}),
          nn::MLP(16, 64, rng)};
}

int run(const std::string& file, const std::string& mistake) {
  const auto result = nn::verify(nn::load_case(file), port(mistake),
                                 [](const Block& block, const nn::CaseInputs& in) { return block(in["x"]); });
  fmt::print("{}", to_string(result));
  return result ? 0 : 1;
}

int main(int argc, char** argv) {
  return apps::run_main("port_a_module", [&] {
    CLI::App app("Verifies a port of a PyTorch module against a recorded call of the original.");
    std::string file = (platform::program_folder() / "port_a_module.safetensors").string(), mistake;
    app.add_option("CASE", file, "what tools/record_case.py wrote; or else the one beside this program");
    app.add_option("--break", mistake, "a mistake to make: eps or heads")->check(CLI::IsMember({"eps", "heads"}));
    apps::parse_command_line(app, argc, argv);
    return run(file, mistake);
  });
}
