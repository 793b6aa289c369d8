#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <braid/autograd/derivative.h>
#include <braid/autograd/tape.h>

namespace braid {

/// A function that gradcheck() takes; the inputs come in their order.
using GradcheckFunction = std::function<Var(std::span<const Var>)>;

/// Settings of gradcheck(). Steps need none: inputs of size 1e-6 to 1e6 and functions of any scale work.
struct GradcheckOptions {
  double tolerance = 1e-6;          ///< the largest relative error that counts as right; by rules, see gradcheck()
  std::int64_t max_elements = 256;  ///< inputs with more elements are checked along random directions
  int directions = 16;              ///< the number of these directions
  std::uint64_t seed = 0;           ///< of the directions and of the output's cotangent
  bool blame = true;                ///< when a gradient is wrong, find the vjp that is wrong
  int order = 1;                    ///< 2: second derivatives, too
  /// What gradients are compared with. Rules miss a misplaced detach() and what a vjp and its rule share: use `both`.
  enum class By {
    differences,  ///< of f
    rules,        ///< products with the Jacobian by the rules of ops (see record()), in an instant and to rounding
    both,         ///< of the two, one after the other
  } by = By::differences;
  /// Called after each derivative with the number of checked derivatives and of all.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// The outcome of comparing an analytic derivative with differences.
enum class Verdict {
  right,        ///< they agree within the tolerance, or f has too few digits to show such a small derivative
  wrong,        ///< they differ by more, and the differences are accurate enough to be sure
  undecidable,  ///< they agree as far as differences tell, at least to a digit but not to the tolerance; passes
  kink,         ///< f is seen not to be differentiable: the analytic value lies between its one-sided derivatives
  unchecked,    ///< differences do not settle, so others would pass; by rules, not finite or in f32 or bf16
};
/// `right`, `wrong`, ..
std::string_view name(Verdict verdict);

/// One derivative, analytic and numeric.
struct CheckedDerivative {
  std::string input = {}, where = {};  ///< the input's name, and the element or direction
  double analytic = 0, numeric = 0;    ///< by vjps, and by differences or rules
  double uncertainty = 0;              ///< an estimate of the error of `numeric`
  double relative_error = 0;           ///< of `analytic`; infinite when it is NaN or Inf
  Verdict verdict = Verdict::right;
};

/// The result of gradcheck().
struct GradcheckResult {
  bool ok = true;                ///< no derivative is wrong or unchecked
  double worst = 0;              ///< the largest relative error among right and wrong ones
  std::int64_t derivatives = 0;  ///< the number of compared derivatives
  std::int64_t wrong = 0, undecidable = 0, kinks = 0, unchecked = 0;  ///< the number of each verdict
  std::string message = {};  ///< the worst derivative with both values, what is odd about f, and the wrong vjp if any
  /// The index of the op at fault on f's tape outside of a HigherOrder scope, if it is found there, for draw(): from 0,
  /// watched variables included; the # in messages counts ops alone, from 1, also in checkpoints.
  std::optional<std::size_t> wrong_op = {};
  std::vector<CheckedDerivative> checked = {};   ///< all that were compared
  explicit operator bool() const { return ok; }  ///< ok

  /// A line per input: the number of derivatives, and the worst of them.
  std::string table() const;
};

namespace detail {

/// The error of `analytic` relative to the larger value or `floor`, infinite when one is not finite.
double relative_error(double analytic, const Derivative& numeric, double floor);

Verdict judge(double analytic, const Derivative& numeric, double floor, double tolerance);

/// The worst derivative has the largest severity: wrong before unchecked before others, wrong elements before wrong
/// directions, then by the error, which counts only for wrong and right ones.
std::tuple<int, bool, double> severity(const CheckedDerivative& checked);

}  // namespace detail
}  // namespace braid
