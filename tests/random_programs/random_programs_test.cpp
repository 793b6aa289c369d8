#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/core/map.h>
#include <braid/core/parallel.h>
#include <tests/random_programs/modules.h>
#include <tests/random_programs/print.h>
#include <tests/random_programs/shrink.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

using testing::HasSubstr;

/// The functions that the headers of a folder declare, and that return variables.
std::set<std::string> declared_in(const std::string& folder) {
  static const std::regex pattern(R"(\n(?:inline )?(?:Var|Sorted|StreamMaps|std::vector<Var>) (?!operator)(\w+)\()");
  static const std::regex internal(R"(namespace detail \{[^]*?\}  // namespace detail)");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/" + folder)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text = std::regex_replace(std::string(std::istreambuf_iterator<char>(file), {}), internal, "");
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

TEST(RandomPrograms, KnowEveryOpThatTheHeadersDeclare) {
  std::set<std::string> declared = declared_in("autograd/ops");
  declared.merge(declared_in("mhc/ops"));
  declared.insert("Mixing");
  std::set<std::string> known;
  for (const Op& op : all_ops()) known.insert(op.name);
  EXPECT_EQ(known, declared);
}

TEST(RandomPrograms, CallEveryRowOfTheTable) {
  std::set<const Op*> missing;
  for (const Op& op : all_ops()) missing.insert(&op);
  for (std::uint64_t index = 0; index < 3000; ++index)
    for (const Value& value : random_program(all_ops(), 1, index)) missing.erase(value.op);
  for (const Op* op : missing) ADD_FAILURE() << op->name << " " << op->code;
}

TEST(RandomPrograms, DependOnSeedAndIndexAlone) {
  const auto text = [](std::uint64_t seed, std::uint64_t index) {
    return test_text(random_program(all_ops(), seed, index), {}, "");
  };
  EXPECT_EQ(text(1, 7), text(1, 7));
  EXPECT_NE(text(1, 7), text(1, 8));
  EXPECT_NE(text(1, 7), text(2, 7));
}

TEST(RandomPrograms, LayInputsOutInEveryWay) {
  const Tensor x = arange(6, DType::f64).reshape({2, 3});
  for (const Layout layout : {Layout::transposed, Layout::sliced}) {
    const Tensor view = laid_out(x, layout, DType::f32);
    EXPECT_FALSE(view.is_contiguous());
    EXPECT_TRUE(identical(view.to(DType::f64).contiguous(), x));
  }
  const Tensor rows = laid_out(x.slice(0, 1, 2).broadcast_to({2, 3}).clone(), Layout::broadcast, DType::f64);
  EXPECT_EQ(rows.strides()[0], 0);
  EXPECT_EQ(rows.to_vector<double>(), (std::vector<double>{3, 4, 5, 3, 4, 5}));
}

/// The table with one more op, and the first program with a call of it among others that nothing hides: from an input
/// to a result.
struct Planted {
  std::vector<Op> ops;
  Program program;

  explicit Planted(Op op) : ops(all_ops().begin(), all_ops().end()) {
    ops.push_back(std::move(op));
    for (std::uint64_t index = 0; program.size() < 8 || !shows_it(); ++index) program = random_program(ops, 1, index);
  }

  bool shows_it() const {
    const auto value = [&](int i) { return program[static_cast<std::size_t>(i)]; };
    return std::ranges::any_of(results_of(program), [&](int result) {
      return value(result).op == &ops.back() && value(value(result).operands[0]).op == nullptr;
    });
  }
};

Op planted(Var (*apply)(const Var&)) {
  return {"square", one(not_empty), none, [=](Vars x, const Settings&) { return apply(x[0]); }};
}

Var with_wrong_vjp(const Var& x) {
  return record("square", Tensor(x.value() * x.value()), {x},
                [x = x.value()](const Tensor& dy) { return Tensor(Var(dy) * x); });
}

TEST(RandomPrograms, ShrinkAWrongVjpToOneStatement) {
  const Planted planted_op(planted(with_wrong_vjp));
  const auto found = check_program(planted_op.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, Fault::gradient);
  const Program smallest = shrunk(planted_op.program, found->fault);
  Failure failure = check_program(smallest).value();
  EXPECT_THAT(failure.message, HasSubstr("input 0"));
  failure.message = "why";
  EXPECT_EQ(test_text(smallest, failure, "Wrong"), R"(// why
TEST(RandomPrograms, Wrong) {
  const auto f = [](std::span<const Var> x) -> Var {
    const Var v1 = square(x[0]);
    return v1;
  };
  const auto inputs = [](DType dtype) -> std::vector<Tensor> {
    return {
            Tensor::of<double>({}, {1}).to(dtype)};
  };
  const GradcheckResult result = gradcheck(f, inputs(DType::f64));
  EXPECT_TRUE(result) << result.message;
}
)");
}

TEST(RandomPrograms, FindAWrongRule) {
  const Planted planted_op(planted([](const Var& x) {
    const auto vjp = [x = x.value()](const Tensor& dy) { return Tensor(2 * dy * x); };
    return record("square", Tensor(x.value() * x.value()), {x}, vjp,
                  [](const Applied& op) { return 3 * op.dy() * op.x(); });
  }));
  EXPECT_FALSE(check_program(planted_op.program));
  const auto found = check_rules(planted_op.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, Fault::rules);
  const Program smallest = shrunk(planted_op.program, found->fault, check_rules);
  EXPECT_EQ(smallest.size(), 2);
  EXPECT_THAT(test_text(smallest, check_rules(smallest).value(), "Wrong"),
              HasSubstr("gradcheck(f, inputs(DType::f64), {.order = 2, .by = GradcheckOptions::By::rules});"));
}

// Its value is right, but it takes x for constant.
TEST(RandomPrograms, FindAWrongDerivativeOfARule) {
  const Planted planted_op(planted([](const Var& x) {
    const auto vjp = [x = x.value()](const Tensor& dy) { return Tensor(2 * dy * x); };
    return record("square", Tensor(x.value() * x.value()), {x}, vjp,
                  [](const Applied& op) { return 2 * op.dy() * detach(op.x()); });
  }));
  EXPECT_FALSE(check_rules(planted_op.program));
  const auto found = check_second_order(planted_op.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, Fault::rules);
}

TEST(RandomPrograms, FindAnErrorInSinglePrecision) {
  const Planted planted_op(planted([](const Var& x) { return x.dtype() == DType::f32 ? x * x * 1.001 : x * x; }));
  const auto found = check_program(planted_op.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, Fault::single);
  const Program smallest = shrunk(planted_op.program, found->fault);
  EXPECT_EQ(smallest.size(), 2);
  EXPECT_THAT(test_text(smallest, check_program(smallest).value(), "Wrong"),
              HasSubstr("EXPECT_LE(largest_difference(single"));
}

TEST(RandomPrograms, FindNanInSinglePrecisionAlone) {
  const Planted planted_op(planted([](const Var& x) { return x.dtype() == DType::f32 ? x * NAN : x * x; }));
  const auto found = check_program(planted_op.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, Fault::single);
}

TEST(RandomPrograms, FindResultsThatDependOnTheThreads) {
  const Planted planted_op(planted([](const Var& x) { return x * static_cast<double>(num_threads()); }));
  const auto found = check_bits(planted_op.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(shrunk(planted_op.program, found->fault, check_bits).size(), 2);
}

TEST(RandomPrograms, FindWhatThrows) {
  const Planted planted_op(planted([](const Var& x) {
    braid::check<Error>(!x.requires_grad(), "square: not on a tape");
    return x * x;
  }));
  const auto found = check_program(planted_op.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, Fault::error);
  EXPECT_EQ(found->message, "square: not on a tape");
}

TEST(RandomModules, AreOfEveryKindInTurn) {
  const auto kinds = module_kinds();
  EXPECT_EQ(std::set<std::string>(kinds.begin(), kinds.end()).size(), kinds.size());
  for (const char* const kind : {"layer_norm", "attention", "single-pass sinkhorn", "mhc cayley"})
    EXPECT_THAT(kinds, testing::Contains(kind));
  for (std::uint64_t index = 0; index < kinds.size(); ++index)
    EXPECT_THAT(kinds[index], testing::StartsWith(random_plan(1, index).kind));
}

TEST(RandomModules, ShrinkToWhatTheFaultNeeds) {
  ModulePlan plan = random_plan(1, 40);
  plan.tokens = 3, plan.blocks = 2, plan.swiglu = 1, plan.numbers = 9;
  const ModulePlan smallest = shrunk(plan, [](const ModulePlan& p) { return p.tokens > 1 && p.swiglu == 1; });
  EXPECT_EQ(smallest, (ModulePlan{.kind = plan.kind, .mixing = plan.mixing, .tokens = 3, .swiglu = 1, .numbers = 9}));
  EXPECT_EQ(test_text({.kind = "mlp", .tokens = 3, .swiglu = 1, .numbers = 9}, "why", "Wrong"), R"(// why
TEST(RandomModules, Wrong) {
  const auto failure = check_module({.kind = "mlp", .mixing = "", .tokens = 3, .swiglu = 1, .numbers = 9}).failure;
  EXPECT_FALSE(failure) << failure->message;
}
)");
}

}  // namespace
}  // namespace braid::programs
