#pragma once
#include <braid/autograd/composed.h>
#include <tests/random_programs/program.h>

namespace braid::programs {

/// What can be wrong with a program or a module.
enum class Fault {
  error,     ///< something was thrown
  gradient,  ///< gradcheck
  rules,     ///< the same by rules, or of second order
  single,    ///< f32 is further from f64 than rounding explains
  bits,      ///< other bits in another run, or on three threads
};

struct Failure {
  Fault fault;
  std::string message;
  std::size_t result = 0;  // of Fault::single: the value (0) or the gradient of an input (1, ...)
  double allowed = 0;      // the error that rounding explains
};

/// f(inputs) and the gradients of its sum with fixed signs.
std::vector<Tensor> value_and_gradients(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                                        Probe* probe = nullptr);

/// Infinite when one of them is not finite. Throws ShapeError unless the shapes are equal.
double largest_difference(const Tensor& a, const Tensor& b);

/// Compares value and gradients in f32 with those in f64. Errors of the size of f32's are added in f64 after
/// every op and every vjp; what they change is what rounding may change.
std::optional<Failure> check_single(const GradcheckFunction& f, const std::vector<Tensor>& f32_inputs,
                                    const std::vector<Tensor>& f64_inputs);

/// gradcheck()
std::optional<Failure> check_gradients(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                                       const GradcheckOptions& options = {},
                                       const std::vector<std::string>& names = {});

/// What is checked of a program.
using Check = std::optional<Failure>(const Program&);

/// Gradients against differences, and f32 against f64.
std::optional<Failure> check_program(const Program& program);

/// Gradients against rules, without steps.
std::optional<Failure> check_rules(const Program& program);
/// The same, and second derivatives against differences.
std::optional<Failure> check_second_order(const Program& program);

/// The same bits in a second run and on three threads. Sets the number of threads of the process.
std::optional<Failure> check_bits(const GradcheckFunction& f, const std::vector<Tensor>& inputs);
std::optional<Failure> check_bits(const Program& program);

// The forms of fused ops, as settings spell them.
template <class F>
auto fused(F f) {
  return f();
}
template <class F>
auto composed(F f) {
  const Composed scope(Composed::Ops::connections);
  return f();
}

}  // namespace braid::programs
