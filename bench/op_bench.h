#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::bench {

using Vars = std::span<const Var>;
using Function = std::function<Var(Vars)>;

/// The least number of bytes or operations of one call.
struct Work {
  double bytes = 0;
  double flops = 0;
};

/// A fused op and its composed form, on random inputs.
struct OpBench {
  std::string name;
  std::vector<Shape> shapes;
  Function fused, composed;  ///< without a composed form nothing is compared
  Work forward, vjp;
  std::string sizes = {};  ///< in the title; empty: the shape of the first input
  DType dtype = DType::f32;
};

/// Forward and vjp of both, as bytes/s or FLOP/s and shares of the machine's limits; the first compares the two.
void add_benchmarks(OpBench op);

}  // namespace braid::bench
