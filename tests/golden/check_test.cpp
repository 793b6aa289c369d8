#include <tests/golden/check.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/tape.h>

namespace braid::golden {
namespace {

nn::CaseSettings scale(const std::string& json) {
  std::map<std::string, std::string> settings;
  settings["scale"] = json;
  return nn::CaseSettings(settings);
}

/// y = scale * x * weight with all that a case file holds.
RecordedCase product_case() {
  const auto f64 = [](std::initializer_list<double> values) { return Tensor::of<double>({2}, values); };
  return {"product_n2",
          scale("2.0"),
          {{"in.x", f64({1, -3})},
           {"param.weight", f64({0.5, 4})},
           {"out.y", f64({1, -24})},
           {"cotangent", f64({1, 10})},
           {"grad.x", f64({1, 80})},
           {"grad.weight", f64({2, -60})}}};
}

Var product(const CaseInputs& a) { return a["x"] * a["weight"] * a.settings.number("scale"); }

std::vector<Module> products(std::function<Var(const CaseInputs&)> call = product) {
  return {{"product", {path("op", std::move(call))}}};
}

std::string complaint(const RecordedCase& golden, const std::vector<Module>& modules = products()) {
  return check_case(golden, modules).why;
}

TEST(Golden, PassesWhatIsRight) {
  const Verdict verdict = check_case(product_case(), products());
  EXPECT_EQ(verdict.why, "");
  EXPECT_EQ(verdict.f64, 0);
  EXPECT_EQ(verdict.f32, 0);
}

TEST(Golden, FailsAWrongOutput) {
  RecordedCase golden = product_case();
  golden.tensors["out.y"] = Tensor::of<double>({2}, {1, -24 - 24e-9});
  EXPECT_EQ(complaint(golden), "f64 op: out.y is off by 1.0e-09, more than 1e-10");
}

TEST(Golden, FailsAWrongGradient) {
  RecordedCase golden = product_case();
  golden.tensors["grad.x"] = Tensor::of<double>({2}, {1.5, 80});
  EXPECT_EQ(complaint(golden), "f64 op: grad.x is off by 6.3e-03, more than 1e-10");
}

TEST(Golden, FailsWhatIsNotANumber) {
  RecordedCase golden = product_case();
  golden.tensors["in.x"] = Tensor::of<double>({2}, {1, NAN});
  EXPECT_EQ(complaint(golden), "f64 op: out.y is off by nan, more than 1e-10");
  EXPECT_TRUE(std::isnan(check_case(golden, products()).f64));
}

TEST(Golden, FailsAWrongShape) {
  RecordedCase golden = product_case();
  golden.tensors["out.y"] = golden.tensors["out.y"].reshape({1, 2});
  EXPECT_EQ(complaint(golden), "f64 op: out.y must have shape [1, 2] but has [2]");
}

TEST(Golden, FailsWhatOnlyOneSideHas) {
  RecordedCase golden = product_case();
  golden.tensors["out.z"] = scalar(1, DType::f64);
  EXPECT_EQ(complaint(golden), "f64 op: the call returned y but the case has y, z");
  golden = product_case();
  golden.tensors.erase("grad.x");
  EXPECT_EQ(complaint(golden), "f64 op: the file must have 'grad.x'");
}

TEST(Golden, FailsACaseWithoutWhatItsModuleReads) {
  RecordedCase golden = product_case();
  golden.tensors.erase("param.weight");
  EXPECT_EQ(complaint(golden), "f64 op: the case has no input or parameter 'weight': its inputs are x");
  golden = product_case();
  golden.tensors.erase("cotangent");
  EXPECT_EQ(complaint(golden), "f64 op: the file must have 'cotangent'");
  golden = product_case();
  golden.settings = nn::CaseSettings();
  EXPECT_EQ(complaint(golden), "f64 op: the metadata must have 'scale'");
  golden.settings = scale("\"two\"");
  EXPECT_EQ(complaint(golden), "f64 op: the metadata's 'scale' must be a number but is \"two\"");
}

TEST(Golden, FailsAnUnknownModule) {
  for (const char* name : {"produc_n2", "products", "hyper_product"}) {
    RecordedCase golden = product_case();
    golden.name = name;
    EXPECT_EQ(complaint(golden), "no module of this name");
  }
}

TEST(Golden, PrefersTheLongestName) {
  std::vector<Module> modules = products([](const CaseInputs& a) { return a["x"]; });
  modules.push_back({"product_n2", products()[0].paths});
  EXPECT_EQ(complaint(product_case(), modules), "");
}

TEST(Golden, ChecksEveryPathInBothTypes) {
  std::vector<Module> modules = products();
  modules[0].paths.push_back(
      path("fused", [](const CaseInputs& a) { return product(a) + (a.dtype() == DType::f32 ? 1e-3 : 0); }));
  EXPECT_EQ(complaint(product_case(), modules), "f32 fused: out.y is off by 4.2e-05, more than 2e-05");
}

TEST(Golden, GivesFarLogitsMoreRoomInF32) {
  const auto off = [](const CaseInputs& a) { return product(a) + (a.dtype() == DType::f32 ? 1e-3 : 0); };
  std::vector<Module> modules = products(off);
  modules[0].largest_logit = [](const RecordedCase&) { return 21.0; };
  EXPECT_EQ(complaint(product_case(), modules), "");
  modules[0].largest_logit = [](const RecordedCase&) { return 20.0; };
  EXPECT_NE(complaint(product_case(), modules), "");
}

double in_bf16(std::function<Var(const CaseInputs&)> call) {
  const Verdict verdict = check_case(product_case(), products(std::move(call)));
  EXPECT_EQ(verdict.why, "");
  return verdict.bf16;
}

TEST(GoldenInBF16, AllowsARoundingPerOp) {
  EXPECT_LE(in_bf16(product), 1);
  // On its way y = 1 is 1001.7, which is rounded to 1000.
  const double share = in_bf16([](const CaseInputs& a) { return product(a) + 1000.7 - 1000.7; });
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 1);
}

TEST(GoldenInBF16, FailsMoreThanThat) {
  const auto off = [](double factor) {
    return [=](const CaseInputs& a) { return product(a) * (a.dtype() == DType::bf16 ? factor : 1); };
  };
  EXPECT_EQ(complaint(product_case(), products(off(1))), "");
  EXPECT_THAT(complaint(product_case(), products(off(1.0625))), testing::StartsWith("bf16 op: grad.weight is off by "));
}

TEST(GoldenInBF16, FailsAWrongVjp) {
  const auto off = [](const CaseInputs& a) {
    const Var y = product(a);
    return record("same", y.value(), {y},
                  [](const Tensor& dy) { return dy.dtype() == DType::bf16 ? full(dy.shape(), 1, DType::bf16) : dy; });
  };
  EXPECT_THAT(complaint(product_case(), products(off)), testing::StartsWith("bf16 op: grad."));
}

TEST(GoldenInBF16, FailsAPathOfOtherOps) {
  const auto other = [](const CaseInputs& a) { return a.dtype() == DType::bf16 ? a["x"] - a["x"] : product(a); };
  EXPECT_EQ(complaint(product_case(), products(other)), "bf16 op: f64 computes 'mul' where bf16 does not");
}

TEST(GoldenInBF16, IsLeftOutWhereAPathHasNone) {
  const auto refuses = [](const CaseInputs& a) {
    EXPECT_NE(a.dtype(), DType::bf16);
    return product(a);
  };
  EXPECT_EQ(check_case(product_case(), {{"product", {path("op", refuses, InBF16::nothing)}}}).bf16, 0);
}

}  // namespace
}  // namespace braid::golden
