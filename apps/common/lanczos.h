#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <braid/core/random.h>

namespace braid::apps {

/// `y = A x` for a symmetric matrix A, such as a Hessian: x [n] -> y [n].
using SymmetricProduct = std::function<std::vector<double>(const std::vector<double>&)>;

/// When lanczos() stops.
struct LanczosSettings {
  double tolerance = 1e-2;  ///< the largest eigenvalue is found when two products change it by no more than this share
  std::int64_t products = 40;  ///< the most products
};

/// Approximate eigenvalues of a symmetric matrix [n, n], ascending, one for each product: the ends of its spectrum are
/// found first. Lanczos's method with full reorthogonalization, from a random vector; n products give all eigenvalues
/// of a matrix that has no multiple ones. Returns {NaN} when a product is not finite.
std::vector<double> lanczos(const SymmetricProduct& product, std::int64_t n, Rng rng,
                            const LanczosSettings& settings = {});

}  // namespace braid::apps
