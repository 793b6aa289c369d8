#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>
#include <braid/core/reduce.h>

namespace braid::programs {

/// What a call takes beside values: as its function sees it and as C++ spells it.
struct Setting {
  std::string code;
  double number = 0;
  std::vector<std::int64_t> list = {};
  Tensor ids = {};  // i32

  int integer() const { return static_cast<int>(number); }
  Axes axes() const { return {list.begin(), list.end()}; }
  Shape shape() const { return Shape(list); }
};
using Settings = std::vector<Setting>;

Setting integer(std::int64_t value);
Setting real(double value);
Setting truth(bool value);
Setting list(std::vector<std::int64_t> values);
Setting ids(const Tensor& values);

class Builder;

/// One way to call an op: how to draw what it takes, how to run it, how to print it.
struct Op {
  std::string name;
  std::function<std::vector<int>(Builder&)> operands;                             // kNone among them: not possible here
  std::function<std::optional<Settings>(std::span<const Shape>, Rng&)> settings;  // that fit operands of these shapes
  std::function<Var(std::span<const Var>, const Settings&)> apply;
  std::string code = {};  // $0 is an operand, #0 a setting, $* all operands; empty: name($*, #0, #1, ...)
};
inline constexpr int kNone = -1;

/// How an input lies in memory: all are views of a contiguous tensor.
enum class Layout {
  contiguous,
  transposed,  ///< axes in reverse order
  sliced,      ///< every second element after the first row of a larger tensor that is NaN elsewhere
  broadcast,   ///< stride 0 along the first axis
};

/// `v7 = op(v3, v5; settings)`, or an input.
struct Value {
  const Op* op = nullptr;  // none: an input
  std::vector<int> operands = {};
  Settings settings = {};
  Tensor input = {};  // f64, contiguous, exact in f32
  Layout layout = Layout::contiguous;
};

/// Values in the order in which they are computed, each once.
using Program = std::vector<Value>;

/// The tensor of which laid_out(x) is a view. x [f64, contiguous], with equal rows for `broadcast`.
Tensor base_of(const Tensor& x, Layout layout);
Tensor laid_out(const Tensor& x, Layout layout, DType dtype);

/// The inputs in their layouts.
std::vector<Tensor> inputs_of(const Program& program, DType dtype = DType::f64);

/// The values that no other one is made of; where there are several, the program's result is all of them in a row.
std::vector<int> results_of(const Program& program);

/// Whether another value is made of it.
bool is_used(const Program& program, int value);
/// The program without a value that is not used.
Program without(const Program& program, int value);
Program without_unused_inputs(Program program);

/// All values, and the result.
std::vector<Var> values_of(const Program& program, std::span<const Var> inputs);
Var result_of(const Program& program, std::span<const Var> inputs);

}  // namespace braid::programs
