#include <apps/common/step_record.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include <apps/common/trainer.h>
#include <tests/support.h>

namespace braid::step_record_test {
namespace {

using apps::StepEvent;
using apps::StepRecord;

/// Flips the lowest bit of one element of one of a step's tensors, as a fault of the hardware would, before it is
/// recorded.
class Planted : public Probe {
 public:
  Planted(StepRecord& record, std::size_t event) : record_(record), event_(event) {}

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override {
    plant(outputs);
    record_.recorded(op, inputs, outputs);
  }
  void propagated(const RecordedOp& op, std::vector<Tensor>& dxs) override {
    plant(dxs);
    record_.propagated(op, dxs);
  }

  std::size_t element = 0;

 private:
  void plant(std::vector<Tensor>& tensors) {
    std::size_t at = record_.events().size();
    for (Tensor& x : tensors) {
      if (!x.defined()) continue;
      if (at++ != event_) continue;
      x = x.clone();
      element = static_cast<std::size_t>(x.numel()) / 2;
      x.mutable_bytes()[element * size_of(x.dtype())] ^= std::byte{1};
    }
  }

  StepRecord& record_;
  std::size_t event_;
};

apps::Corpus corpus() { return apps::read_corpus(BRAID_SOURCE_DIR "/LICENSE", "", 16); }

apps::TrainerSettings settings(DType dtype) {
  apps::ConnectionOptions connection;
  connection.kind = "mhc";
  connection.phi_std = connection.alpha = 0.5;
  return {.connection = connection, .layers = 1, .channels = 8, .context = 16, .batch = 2, .dtype = dtype, .blocks = 2};
}

std::vector<std::string> names_of(const apps::Model& model) {
  std::vector<std::string> names;
  for_each_param(model, [&](const std::string& name, const Var&) { names.push_back(name); });
  return names;
}

/// The third step, and what was kept of it.
StepRecord record_of_step(const apps::Corpus& text, DType dtype, std::optional<std::size_t> keep,
                          std::optional<std::size_t> fault, std::size_t* element = nullptr) {
  apps::Trainer trainer(settings(dtype), text);
  trainer.train_step();
  trainer.train_step();
  StepRecord record(names_of(trainer.model()), keep);
  Planted planted(record, fault.value_or(static_cast<std::size_t>(-1)));
  trainer.train_step({.probe = &planted});
  if (element != nullptr) *element = planted.element;
  return record;
}

TEST(StepRecord, OfAStepThatIsRepeatedIsTheSame) {
  const apps::Corpus text = corpus();
  const auto a = record_of_step(text, DType::f32, {}, {}).events(),
             b = record_of_step(text, DType::f32, {}, {}).events();
  EXPECT_GT(a.size(), 60U);
  EXPECT_EQ(apps::first_difference(a, b), std::nullopt);
  auto other = a;
  other[7].op = "another";
  EXPECT_EQ(apps::first_difference(a, other), std::size_t{7});
}

TEST(StepRecord, FindsEveryPlantedBitAndNamesIt) {
  const apps::Corpus text = corpus();
  int found = 0, backward = 0;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto healthy = record_of_step(text, dtype, {}, {}).events();
    const std::size_t step = std::max<std::size_t>(1, healthy.size() / 32);
    for (std::size_t fault = step / 2; fault < healthy.size(); fault += step) {
      const auto broken = record_of_step(text, dtype, {}, fault).events();
      EXPECT_EQ(apps::first_difference(healthy, broken), fault) << apps::describe(healthy, fault);
      std::size_t element = 0;
      const Tensor right = record_of_step(text, dtype, fault, {}).kept(),
                   wrong = record_of_step(text, dtype, fault, fault, &element).kept();
      const std::string said = apps::describe_element(right, wrong);
      const auto index = indices(right.shape()).at(element);
      EXPECT_EQ(said.find(fmt::format("element [{}]: ", fmt::join(index, ", "))), 0U) << said;
      ++found;
      backward += healthy[fault].backward ? 1 : 0;
    }
  }
  EXPECT_GE(found, 60);
  EXPECT_GE(backward, 20);
}

TEST(StepRecord, CountsOpsApartFromParametersAndNamesBoth) {
  const apps::Corpus text = corpus();
  const auto events = record_of_step(text, DType::f32, {}, {}).events();
  const auto names = names_of(apps::Trainer(settings(DType::f32), text).model());
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(apps::describe(events, i).find(fmt::format("parameter '{}' [", names[i])), 0U);
  const StepEvent& first = events.at(names.size());
  EXPECT_EQ(first.number, 1);
  EXPECT_EQ(first.op, "embedding");
  const auto is_op = [](const StepEvent& e) { return e.op != "parameter" && !e.backward && e.index == 0; };
  const std::string said = fmt::format("(#1 of {}, with embedding.weight), ", std::ranges::count_if(events, is_op));
  EXPECT_NE(apps::describe(events, names.size()).find(said + "output 0 ["), std::string::npos);
  const auto attention = std::ranges::find(events, "attention", &StepEvent::op);
  ASSERT_NE(attention, events.end());
  EXPECT_EQ(attention->name, "");  // it has no parameter
  EXPECT_EQ(events.back().op, "embedding");
  EXPECT_EQ(events.back().name, "embedding.weight");  // its cotangent
}

TEST(StepRecord, SurvivesJSON) {
  const auto events = record_of_step(corpus(), DType::f32, {}, {}).events();
  for (const StepEvent& event : events) {
    const StepEvent again = apps::step_event("here", nlohmann::json(apps::to_json(event)));
    EXPECT_EQ(apps::to_json(again), apps::to_json(event));
  }
  EXPECT_EQ(
      message_of([] { apps::step_event("here", nlohmann::json::object()); }).find("here: must be an event of a step: "),
      0U);
}

TEST(ChecksumOf, DependsOnEveryBitAndOnNoThread) {
  Rng rng(1);
  const Tensor large = rand({3, 400'000}, rng), small = rand({5}, rng);
  const std::vector<Tensor> tensors{large, small};
  const std::string sum = apps::checksum_of(tensors);
  for (const int threads : {1, 3}) {
    const WithThreads scope(threads);
    EXPECT_EQ(apps::checksum_of(tensors), sum);
  }
  Tensor flipped = small.clone();
  flipped.mutable_bytes()[17] ^= std::byte{1};
  EXPECT_NE(apps::checksum_of(std::vector<Tensor>{large, flipped}), sum);
  EXPECT_NE(apps::checksum_of(std::vector<Tensor>{small, large}), sum);
}

TEST(DescribeElement, GivesTheFirstAndItsBits) {
  const float nan = std::nanf("1");
  const Tensor a = Tensor::of<float>({2, 2}, {1, 0.53125F, 3, nan}),
               b = Tensor::of<float>({2, 2}, {1, 0.53125006F, 3, 4});
  EXPECT_EQ(apps::describe_element(a, b), "element [0, 1]: 0.53125 against 0.53125006");
  EXPECT_EQ(apps::describe_element(a.slice(0, 1, 2), b.slice(0, 1, 2)), "element [0, 1]: NaN (0x7fc00001) against 4");
  EXPECT_THROW(apps::describe_element(a, a), Error);
  EXPECT_THROW(apps::describe_element(a, b.slice(0, 0, 1)), Error);
}

}  // namespace
}  // namespace braid::step_record_test
