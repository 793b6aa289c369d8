// Fine-tuning: a model and a tokenizer in Hugging Face's format learn a text, and become such a folder again.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <braid/braid.h>

using namespace braid;
namespace fs = std::filesystem;

/// The ids of a text file, [n].
Tensor read_tokens(const nn::Tokenizer& tokenizer, const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  check<UnreadableFile>(stream.is_open(), "{}: cannot be opened", file.string());
  const std::vector<std::int32_t> ids = tokenizer.encode(std::string(std::istreambuf_iterator<char>(stream), {}));
  return Tensor::of<std::int32_t>({std::ssize(ids)}, ids);
}

void fine_tune(const fs::path& folder, const fs::path& text, const fs::path& out) {
  check_value(!fs::exists(out) || !fs::equivalent(folder, out), "{}: is the model's own folder", out.string());
  nn::Transformer<> model = nn::load_pretrained(folder);
  const Tensor tokens = read_tokens(nn::Tokenizer::load(folder / "tokenizer.json"), text);
  const std::int64_t batch = 8, context = std::min<std::int64_t>(64, model.config.context);
  check_value(tokens.size(0) > context, "{}: must have more than {} tokens but has {}", text.string(), context,
              tokens.size(0));

  Rng rng(1);
  nn::AdamW optimizer({.lr = 1e-3});
  const auto step =
      value_and_grad([](const nn::Transformer<>& m, const Tensor& x, const Tensor& y) { return m.loss(x, y); });
  for (int i = 0; i <= 100; ++i) {
    const Var at = randint(0, tokens.size(0) - context, {batch, 1}, rng) + arange(context + 1, DType::i32);
    const Tensor windows = index_select(tokens, 0, at.reshape({-1})).reshape({batch, context + 1});
    const auto [loss, grads] = step(model, windows.slice(1, 0, context), windows.slice(1, 1, context + 1));
    optimizer.step(model, grads);
    if (i % 20 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, loss);
  }

  nn::save_pretrained(model, out);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    if (fs::exists(folder / file)) fs::copy_file(folder / file, out / file, fs::copy_options::overwrite_existing);
}

int main(int argc, char** argv) {
  try {
    check_value(argc == 4, "expected a model's folder, a text and a folder for the result");
    fine_tune(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fine_tune: {}\n", error.what());
    return 2;
  }
}
