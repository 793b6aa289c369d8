#pragma once
#include <tests/golden/module.h>

namespace braid::golden {

/// Runs a path with what flows in bf16, and its vjp, and compares all outputs and gradients with the same path in f64
/// on the numbers that bf16 has of the inputs. That path is the golden case's own, to 1e-10.
///
/// The bound of a tensor is no fixed number but how sensitive the path is: it runs 32 times in f64 while every number
/// that the run in bf16 stores as such, results of ops and their cotangents, is moved by 2^-8 of itself, the most that
/// rounding to nearest does, up or down at random (Monte Carlo arithmetic: Parker, CISE 2, 2000). So magnitudes are
/// summed up by the path itself. The bound is the farthest that the tensor went, and 2^-8 for its own rounding; or
/// `f32`, where that is more: what f32 may be off by, relative to the largest element or 1. The errors of the table are
/// shares of it.
nn::Verification check_in_bf16(const RecordedCase& golden, const Path& path, double f32);

}  // namespace braid::golden
