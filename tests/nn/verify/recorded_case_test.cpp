#include <braid/nn/verify/recorded_case.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support.h"

namespace braid::nn::recorded_case_test {
namespace {

/// A path that is gone after the test.
struct TemporaryFile {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                               (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".case");
  ~TemporaryFile() { std::filesystem::remove(path); }
};

const std::map<std::string, Tensor> kTensors{{"in.x", ones({2}, DType::f64)},    {"in.ids", ones({3}, DType::i32)},
                                             {"param.w", ones({2}, DType::f64)}, {"param.mask", ones({2}, DType::f64)},
                                             {"part.a", ones({2}, DType::f64)},  {"part.b", ones({2}, DType::f64)}};

RecordedCase saved_and_loaded(const std::map<std::string, std::string>& metadata) {
  const TemporaryFile file;
  save_safetensors(file.path, kTensors, metadata);
  return load_case(file.path);
}

TEST(RecordedCase, HasSettingsPartsAndBuffers) {
  const RecordedCase recorded = saved_and_loaded(
      {{"case", "\"mine\""}, {"heads", "4"}, {"parts", R"([["a"], ["b", "a"]])"}, {"buffers", R"(["mask"])"}});
  EXPECT_EQ(recorded.name, "mine");
  EXPECT_EQ(recorded.settings.integer("heads"), 4);
  ASSERT_EQ(recorded.parts.size(), 2u);
  EXPECT_EQ(recorded.parts[1].name, "b");
  EXPECT_THAT(recorded.parts[1].sources, testing::ElementsAre("a"));
  EXPECT_THAT(recorded.buffers, testing::ElementsAre("mask"));
  EXPECT_EQ(recorded.group("param.").size(), 2u);
}

TEST(RecordedCase, IsNamedAsTheFileOtherwise) { EXPECT_EQ(saved_and_loaded({}).name, "IsNamedAsTheFileOtherwise"); }

TEST(RecordedCase, ConvertsFloatsOnly) {
  const RecordedCase recorded = to_dtype(saved_and_loaded({}), DType::f32);
  EXPECT_EQ(recorded.tensor("in.x").dtype(), DType::f32);
  EXPECT_EQ(recorded.tensor("in.ids").dtype(), DType::i32);
}

TEST(RecordedCase, WatchesFloatsThatAreNoBuffers) {
  Tape tape;
  const RecordedCase recorded = saved_and_loaded({{"buffers", R"(["mask"])"}});
  const CaseInputs inputs(recorded, tape);
  EXPECT_EQ(inputs.dtype(), DType::f64);
  EXPECT_TRUE(inputs["x"].requires_grad());
  EXPECT_TRUE(inputs["w"].requires_grad());
  EXPECT_FALSE(inputs["mask"].requires_grad());
  EXPECT_FALSE(inputs["ids"].requires_grad());
  EXPECT_EQ(message_of([&] { inputs["z"]; }), "the case has no input or parameter 'z': its inputs are ids, x");
}

TEST(RecordedCase, HasNoInputAndParameterOfOneName) {
  RecordedCase recorded = saved_and_loaded({});
  for (const char* name : {"x", "ids"}) {
    recorded.tensors["param." + std::string(name)] = ones({2}, DType::f64);
    Tape tape;
    EXPECT_EQ(message_of([&] { CaseInputs(recorded, tape); }),
              fmt::format("'{}' must be an input or a parameter but is both", name));
    recorded.tensors.erase("param." + std::string(name));
  }
}

TEST(RecordedCase, TakesNumbersForWhatTheyAre) {
  const auto complaint = [](const std::string& json) {
    const CaseSettings settings(std::map<std::string, std::string>{{"heads", json}});
    return message_of([&] { settings.integer("heads", 1, 4); });
  };
  for (const char* json : {"1e308", "2.0", "true", "\"2\"", "[2]", "18446744073709551615", "1e999", "two"})
    EXPECT_EQ(complaint(json), std::string("the metadata's 'heads' must be an integer but is ") + json);
  EXPECT_EQ(complaint("0"), "the metadata's 'heads' must be an integer from 1 to 4 but is 0");
  EXPECT_EQ(complaint("5"), "the metadata's 'heads' must be an integer from 1 to 4 but is 5");
  const CaseSettings eps(std::map<std::string, std::string>{{"eps", "true"}});
  EXPECT_EQ(message_of([&] { eps.number("eps"); }), "the metadata's 'eps' must be a number but is true");
}

TEST(RecordedCase, SaysWhatIsDamaged) {
  const auto damage = [](const std::string& key, const std::string& json) {
    const std::string message = message_of([&] { saved_and_loaded({{key, json}}); });
    return message.substr(message.find(".case: ") + 7);
  };
  EXPECT_EQ(damage("case", "7"), "the metadata's 'case' must be a string but is 7");
  EXPECT_EQ(damage("parts", "[[\"a\""), "the metadata's 'parts' must be a list of lists of strings but is [[\"a\"");
  EXPECT_EQ(damage("parts", "[[]]"), "the metadata's 'parts' must name each part");
  EXPECT_EQ(damage("parts", R"([["c"]])"), "the file must have 'part.c'");
  EXPECT_EQ(damage("parts", R"([["a", "b"], ["b"]])"), "part 'a' must come after its source 'b'");
  EXPECT_EQ(damage("buffers", R"("mask")"), "the metadata's 'buffers' must be a list of strings but is \"mask\"");
  EXPECT_EQ(damage("parts", std::string(64, '[') + std::string(64, ']')).substr(0, 62),
            "the metadata's 'parts' must be a list of lists of strings but ");
  EXPECT_EQ(damage("parts", std::string(65, '[')),
            "the metadata's 'parts': must nest at most 64 deep but does so deeper at byte 64");
  const TemporaryFile file;
  std::ofstream(file.path) << "damaged";
  EXPECT_THAT(message_of([&] { load_case(file.path); }), testing::HasSubstr("SaysWhatIsDamaged.case: "));
}

}  // namespace
}  // namespace braid::nn::recorded_case_test
