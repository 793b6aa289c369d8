// Every error that a docstring of nn names of files, cases and tokenizers: see tests/throws.h.
#include <tests/throws.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <braid/nn/linear.h>
#include <braid/nn/lora.h>
#include <braid/nn/pretrained/config.h>
#include <braid/nn/pretrained/pretrained.h>
#include <braid/nn/tensorboard.h>
#include <braid/nn/text/tokenizer.h>
#include <braid/nn/transformer.h>
#include <braid/nn/verify/verify.h>

namespace braid::nn::files_throw_test {
namespace {

namespace fs = std::filesystem;

/// Each test has a folder of its own with a text.
struct NNFilesThrow : testing::Test {
  NNFilesThrow() {
    fs::create_directories(folder);
    std::ofstream(text) << "text";
  }
  ~NNFilesThrow() override { fs::remove_all(folder); }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_nn_throws_" + test);
  const fs::path text = folder / "text", gone = folder / "gone";
  Rng rng;
};

/// A disk that takes no more.
struct Full : FileSystem {
  std::ptrdiff_t write(int, const void*, std::size_t) override { return errno = ENOSPC, -1; }
};

TEST_F(NNFilesThrow, Modules) {
  Linear linear(2, 2, rng);
  throws<UnreadableFile>("nn::load_module", [&] { load_module(gone, linear); });
  save_module(gone, Linear(2, 3, rng));
  throws<Error>("nn::load_module", [&] { load_module(gone, linear); });
  throws<FileError>("nn::load_module", [&] { load_module(text, linear); });
  linear.bias = Tensor();
  throws<FileError>("nn::save_module", [&] { save_module(folder / "none/file", linear); });
  linear.weight = Tensor();
  throws<ValueError>("nn::save_module", [&] { save_module(gone, linear); });
}

TEST_F(NNFilesThrow, Events) {
  EventFile events(folder / "events"), device("/dev/null");
  Full disk;
  const WithFileSystem scope(disk);
  throws<FileError>("nn::EventFile::EventFile", [&] { EventFile(folder / "none/file"); });
  throws<FileError>("nn::EventFile::EventFile", [&] { EventFile(folder / "more"); });
  throws<FileError>("nn::EventFile::append", [&] { events.append(1, {{"loss", 1}}); });
}

TEST_F(NNFilesThrow, Cases) {
  const Tensor x = ones({2}, DType::f64);
  RecordedCase recorded{"case", {}, {{"in.x", x}, {"cotangent", x}}};
  const CaseSettings settings({{"heads", "4"}, {"name", "\"mine\""}});
  Tape tape;
  const CaseInputs inputs(recorded, tape);
  Linear linear(2, 2, rng), bare(1, 2, rng, {.bias = false, .dtype = DType::f64});
  throws<FileError>("nn::CaseSettings", [&] { settings.integer("none"); });
  throws<FileError>("nn::CaseSettings", [&] { settings.integer("name"); });
  throws<FileError>("nn::CaseSettings", [&] { settings.integer("heads", 5); });
  throws<FileError>("nn::CaseSettings", [&] { settings.number("name"); });
  throws<FileError>("nn::CaseSettings", [&] { settings.text("heads"); });
  throws<FileError>("nn::CaseSettings", [&] { settings.numbers("heads"); });
  throws<FileError>("nn::CaseSettings", [&] { settings.texts("heads"); });
  throws<FileError>("nn::CaseSettings", [&] { settings.lists("heads"); });
  throws<FileError>("nn::RecordedCase::tensor", [&] { recorded.tensor("none"); });
  throws<UnreadableFile>("nn::load_case", [&] { load_case(gone); });
  throws<FileError>("nn::load_case", [&] { load_case(text); });
  throws<FileError>("nn::CaseInputs::operator[]", [&] { inputs["none"]; });
  throws<FileError>("nn::CaseInputs::with", [&] { inputs.with({{"none", x}}); });
  throws<ShapeError>("nn::relative_error", [&] { relative_error(x, ones({3})); });
  throws<FileError>("nn::set_params", [&] { set_params(linear, inputs); });
  throws<ShapeError>("nn::set_params", [&] { set_params(bare, inputs, [](auto&) { return "x"; }); });
  throws<Error>("nn::verify", [&] { verify(recorded, bare, [](auto& m, auto& in) { return m(in["x"]); }); });
  save_safetensors(gone, recorded.tensors, {{"parts", "1"}});
  throws<FileError>("nn::load_case", [&] { load_case(gone); });
  recorded.tensors["param.x"] = x;
  throws<FileError>("nn::CaseInputs::CaseInputs", [&] { CaseInputs(recorded, tape); });
}

TEST_F(NNFilesThrow, Pretrained) {
  const TransformerConfig llama{.channels = 4,
                                .layers = 1,
                                .heads = 2,
                                .positions = PositionKind::rotary,
                                .activation = Activation::swiglu,
                                .mlp_bias = false};
  const TransformerConfig other{.channels = 4, .layers = 1, .heads = 2};
  Transformer<> model(llama, rng);
  const Transformer<> strange(other, rng);
  throws<FileError>("nn::parse_pretrained_config", [] { parse_pretrained_config("here", "{"); });
  throws<FileError>("nn::parse_pretrained_config", [] { parse_pretrained_config("here", R"({"model_type": "x"})"); });
  throws<ValueError>("nn::family_of", [&] { family_of(other); });
  throws<ValueError>("nn::format_pretrained_config", [&] { format_pretrained_config(other, DType::f32); });
  throws<ValueError>("nn::pretrained_tensors", [&] { pretrained_tensors(strange); });
  throws<ValueError>("nn::save_pretrained", [&] { save_pretrained(strange, folder); });
  throws<FileError>("nn::save_pretrained", [&] { save_pretrained(model, text); });
  throws<UnreadableFile>("nn::load_pretrained", [&] { load_pretrained(gone); });
  throws<DTypeError>("nn::load_pretrained", [&] { load_pretrained(folder, {.dtype = DType::i32}); });
  save_pretrained(model, folder);
  fs::resize_file(folder / "model.safetensors", 100);
  throws<FileError>("nn::load_pretrained", [&] { load_pretrained(folder); });
  add_lora(model, rng);
  throws<Error>("nn::pretrained_tensors", [&] { pretrained_tensors(model); });
}

#ifdef BRAID_HAS_TEXT
TEST_F(NNFilesThrow, Tokenizers) {
  const Tokenizer tokenizer = Tokenizer::parse(R"({"added_tokens": [], "normalizer": null, "post_processor": null,
      "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}})");
  throws<UnreadableFile>("nn::Tokenizer::load", [&] { Tokenizer::load(gone); });
  throws<FileError>("nn::Tokenizer::load", [&] { Tokenizer::load(text); });
  throws<FileError>("nn::Tokenizer::parse", [] { Tokenizer::parse("{}"); });
  throws<ValueError>("nn::Tokenizer::encode", [&] { tokenizer.encode("\xff"); });
  throws<ValueError>("nn::Tokenizer::encode", [&] { tokenizer.encode("b"); });
  throws<ValueError>("nn::Tokenizer::decode", [&] { tokenizer.decode(std::vector{1}); });
}
#endif

}  // namespace
}  // namespace braid::nn::files_throw_test
