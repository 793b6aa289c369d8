#pragma once
#include <cmath>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <braid/core/instruction_set.h>
#include <braid/core/parallel.h>
#include <braid/core/tensor.h>

namespace braid {

/// Runs a test on a given number of threads and restores the former number.
class WithThreads {
 public:
  explicit WithThreads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~WithThreads() { set_num_threads(before_); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  int before_;
};

/// Runs a test under an instruction set and restores the former one.
class WithInstructionSet {
 public:
  explicit WithInstructionSet(InstructionSet set) : before_(instruction_set()) { set_instruction_set(set); }
  ~WithInstructionSet() { set_instruction_set(before_); }
  WithInstructionSet(const WithInstructionSet&) = delete;
  WithInstructionSet& operator=(const WithInstructionSet&) = delete;

 private:
  InstructionSet before_;
};

/// What an exception of `call` says.
std::string message_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The indices of every element, row-major: the naive way to walk a tensor.
inline std::vector<std::vector<std::int64_t>> indices(const Shape& shape) {
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t flat = 0; flat < shape.numel(); ++flat) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
    std::int64_t rest = flat;
    for (int axis = shape.rank() - 1; axis >= 0; rest /= shape[axis], --axis)
      index[static_cast<std::size_t>(axis)] = rest % shape[axis];
    all.push_back(std::move(index));
  }
  return all;
}

/// The element at an index.
inline double at(Tensor t, const std::vector<std::int64_t>& index) {
  for (const std::int64_t position : index) t = t.select(0, position);
  return t.item();
}

/// sin(frequency i) for element i: numbers that another program can make, too.
inline Tensor wave(const Shape& shape, double frequency) {
  Tensor t(shape, DType::f64);
  for (std::int64_t i = 0; i < t.numel(); ++i)
    t.mutable_data<double>()[i] = std::sin(frequency * static_cast<double>(i));
  return t;
}

inline double sum_of_sizes(const Tensor& x) {
  double sum = 0;
  for (const double v : x.to_vector<double>()) sum += std::abs(v);
  return sum;
}

}  // namespace braid
