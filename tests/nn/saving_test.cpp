#include <braid/nn/saving.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <braid/nn/convert.h>
#include <braid/nn/linear.h>
#include <braid/nn/sequential.h>
#include <tests/support.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::saving_test {
namespace {

/// A path that is gone after the test.
struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

TEST(Saving, RoundTripsEveryBit) {
  const TemporaryFile file;
  Rng rng(1);
  const Sequential model(Linear(3, 4, rng), Linear(4, 2, rng));
  Sequential other(Linear(3, 4, rng), Linear(4, 2, rng));
  save_module(file.path, model);
  load_module(file.path, other);
  const NamedTensors expected = to_tensors(model), loaded = to_tensors(other);
  EXPECT_EQ(loaded.size(), 4u);
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(identical(loaded.at(name), tensor)) << name;
}

TEST(Saving, ConvertsToTheModulesDtype) {
  Rng rng(2);
  const Linear source(3, 2, rng);
  Linear target(3, 2, rng, {.dtype = DType::f64});
  from_tensors(target, to_tensors(source));
  EXPECT_TRUE(identical(target.weight.value(), source.weight.value().to(DType::f64)));
}

TEST(Saving, ReadsTensorsOfOtherNames) {
  const TemporaryFile file;
  Rng rng(2);
  const Linear source(3, 2, rng);
  save_safetensors(file.path, {{"w", source.weight.value()}, {"b", source.bias.value()}});
  const NameOf initial = [](const std::string& path) { return path.substr(0, 1); };
  Linear loaded(3, 2, rng), set(3, 2, rng);
  load_module(file.path, loaded, initial);
  from_tensors(set, load_safetensors(file.path).tensors, "layer", initial);
  for (const Linear* layer : {&loaded, &set}) {
    EXPECT_TRUE(identical(layer->weight.value(), source.weight.value()));
    EXPECT_TRUE(identical(layer->bias.value(), source.bias.value()));
  }
  expect_error<Error>([&] { from_tensors(set, {{"w", ones({2, 3})}}, "layer", initial); }, "layer: b is missing");
}

TEST(Saving, ListsAllThatDoesNotFitAndChangesNothing) {
  Rng rng(3);
  Sequential model(Linear(3, 4, rng), Linear(4, 2, rng));
  const NamedTensors before = to_tensors(model);
  const NamedTensors tensors{{"0.weight", ones({4, 3})},
                             {"0.bias", ones({5})},
                             {"1.weight", ones({2, 4}, DType::i32)},
                             {"1.scale", ones({2})}};
  expect_error<Error>([&] { from_tensors(model, tensors, "model.safetensors"); },
                      "model.safetensors: 0.bias must have shape [4] but has [5], 1.weight must be f32 but is i32, "
                      "1.bias is missing, 1.scale is unexpected");
  for (const auto& [name, tensor] : to_tensors(model)) EXPECT_TRUE(identical(before.at(name), tensor)) << name;
}

TEST(Saving, ListsThirtyOfThemAtMost) {
  NamedTensors tensors;
  for (int i = 0; i < 31; ++i) tensors[fmt::format("t{:02}", i)] = ones({1});
  const auto complaint = [&] { return message_of([&] { assign_by_name("x", {}, tensors); }); };
  EXPECT_THAT(complaint(), testing::EndsWith(", t28 is unexpected, t29 is unexpected, and 1 more"));
  tensors.erase("t30");
  EXPECT_THAT(complaint(), testing::EndsWith(", t28 is unexpected, t29 is unexpected"));
}

TEST(Saving, NamesTheFileThatDoesNotFit) {
  const TemporaryFile file;
  Rng rng(4);
  save_module(file.path, Linear(3, 2, rng, {.bias = false}));
  Linear layer(3, 2, rng);
  expect_error<Error>([&] { load_module(file.path, layer); },
                      "load_module: " + file.path.string() + ": bias is missing");
}

TEST(Saving, ReportsADamagedFile) {
  const TemporaryFile file;
  std::ofstream(file.path) << "not a module";
  Rng rng(5);
  Linear layer(3, 2, rng);
  EXPECT_THROW(load_module(file.path, layer), FileError);
}

}  // namespace
}  // namespace braid::nn::saving_test
