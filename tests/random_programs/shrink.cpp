#include <tests/random_programs/shrink.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <tests/random_programs/print.h>

namespace braid::programs {
namespace {

constexpr int kRedraws = 8;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// All values in f64.
std::vector<Var> values_of(const Program& program) {
  const std::vector<Tensor> inputs = inputs_of(program);
  return programs::values_of(program, std::vector<Var>(inputs.begin(), inputs.end()));
}

/// The program with other inputs: settings that no longer fit are drawn again. Nothing when that does not help.
std::optional<Program> refitted(Program program) {
  std::vector<Var> values;
  for (Value& value : program) {
    if (value.op == nullptr) {
      values.emplace_back(value.input);
      continue;
    }
    std::vector<Var> operands;
    std::vector<Shape> shapes;
    for (const int operand : value.operands) {
      operands.push_back(values[at(operand)]);
      shapes.push_back(operands.back().shape());
    }
    Rng rng(1);
    std::optional<Var> result;
    for (int tries = 0; tries < kRedraws && !result; ++tries) try {
        if (tries > 0)
          if (auto settings = value.op->settings(shapes, rng)) value.settings = std::move(*settings);
        result = value.op->apply(operands, value.settings);
      } catch (const Error&) {
      }
    if (!result) return std::nullopt;
    values.push_back(*result);
  }
  return program;
}

/// Values that f32 holds, as inputs must be.
Tensor as_input(const Tensor& x) { return x.contiguous().to(DType::f32).to(DType::f64); }

using Candidates = std::vector<Program>;

/// Results dropped, and values as inputs in place of what they are made of, the last ones first.
void add_shorter(const Program& program, Candidates& candidates) {
  for (const int result : results_of(program))
    if (program[at(result)].op != nullptr) candidates.push_back(without_unused_inputs(without(program, result)));
  const std::vector<Var> values = values_of(program);
  for (int i = static_cast<int>(program.size()) - 1; i >= 0; --i) {
    if (program[at(i)].op == nullptr || !is_used(program, i)) continue;
    Program given = program;
    given[at(i)] = {.input = as_input(values[at(i)].value())};
    for (int j = i - 1; j >= 0; --j)
      if (!is_used(given, j) && is_used(program, j)) given = without(given, j);
    candidates.push_back(std::move(given));
  }
}

/// Every axis of one size with a smaller one.
void add_smaller(const Program& program, Candidates& candidates) {
  std::set<std::int64_t> sizes;
  for (const Value& value : program)
    if (value.op == nullptr) sizes.insert(value.input.shape().begin(), value.input.shape().end());
  for (const std::int64_t size : sizes)
    for (std::int64_t smaller = 1; smaller < size; ++smaller) {
      Program cut = program;
      for (Value& value : cut)
        for (int axis = 0; value.op == nullptr && axis < value.input.rank(); ++axis)
          if (value.input.size(axis) == size) value.input = value.input.slice(axis, 0, smaller).clone();
      if (auto fitting = refitted(std::move(cut))) candidates.push_back(std::move(*fitting));
    }
}

/// Contiguous inputs, one less along an axis, without an axis, ones, or with round numbers.
void add_simpler_inputs(const Program& program, Candidates& candidates) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i].op != nullptr) continue;
    const Tensor& x = program[i].input;
    const auto add = [&](const Tensor& input, Layout layout) {
      Program simpler = program;
      simpler[i].input = input.clone();
      simpler[i].layout = layout;
      if (auto fitting = refitted(std::move(simpler))) candidates.push_back(std::move(*fitting));
    };
    if (program[i].layout != Layout::contiguous) add(x, Layout::contiguous);
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (x.size(axis) > 0) add(x.select(axis, 0), Layout::contiguous);
      if (x.size(axis) > 1) add(x.slice(axis, 0, x.size(axis) - 1), program[i].layout);
    }
    add(ones(x.shape(), DType::f64), program[i].layout);
    Tensor round = x.clone();
    for (std::int64_t j = 0; j < x.numel(); ++j)
      round.mutable_data<double>()[j] = std::round(4 * x.data<double>()[j]) / 4;
    add(round, program[i].layout);
  }
}

void add_simpler_settings(const Program& program, Candidates& candidates) {
  const std::vector<Var> values = values_of(program);
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i].settings.empty()) continue;
    std::vector<Shape> shapes;
    for (const int operand : program[i].operands) shapes.push_back(values[at(operand)].shape());
    Rng rng(2);
    for (int tries = 0; tries < kRedraws; ++tries)
      if (auto settings = program[i].op->settings(shapes, rng)) {
        Program simpler = program;
        simpler[i].settings = std::move(*settings);
        if (auto fitting = refitted(std::move(simpler))) candidates.push_back(std::move(*fitting));
      }
  }
}

/// Calls first, then the elements of inputs, then what there is to read.
std::array<std::size_t, 3> size_of(const Program& program) {
  std::array<std::size_t, 3> size{0, 0, test_text(program, {}, "").size()};
  for (const Value& value : program)
    if (value.op == nullptr)
      size[1] += static_cast<std::size_t>(value.input.numel());
    else
      ++size[0];
  return size;
}

}  // namespace

Program shrunk(const Program& program, Fault fault, Check* check) {
  Program smallest = program;
  const auto improves = [&](const Program& candidate) {
    if (candidate.empty() || size_of(candidate) >= size_of(smallest)) return false;
    const auto failure = check(candidate);
    return failure && failure->fault == fault;
  };
  for (bool improved = true; improved;) {
    improved = false;
    for (const auto add : {add_shorter, add_smaller, add_simpler_inputs, add_simpler_settings}) {
      Candidates candidates;
      add(smallest, candidates);
      const auto better = std::ranges::find_if(candidates, improves);
      if (better == candidates.end()) continue;
      smallest = *better;
      improved = true;
      break;
    }
  }
  return smallest;
}

}  // namespace braid::programs
