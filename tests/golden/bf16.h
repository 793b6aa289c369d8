#pragma once
#include <tests/golden/module.h>

namespace braid::golden {

/// Runs a path with activations in bf16, and its vjp, and compares all outputs and gradients with the same path in f64
/// on the bf16 values of the inputs. The path in f64 agrees with the golden case to 1e-10.
///
/// The bound of a tensor is not a fixed number but the sensitivity of the path: it runs 32 times in f64 while every
/// value that the run in bf16 stores, results of ops and their cotangents, is moved by 2^-8 of itself, the largest
/// error of rounding to nearest, up or down at random (Monte Carlo arithmetic: Parker, CISE 2, 2000). So the path
/// itself adds up the errors. The bound is the largest deviation of the tensor, plus 2^-8 for its own rounding; or
/// `f32` if that is larger: the error allowed in f32, relative to the largest element or 1. The errors of the table are
/// shares of the bound.
nn::Verification check_in_bf16(const RecordedCase& golden, const Path& path, double f32);

}  // namespace braid::golden
