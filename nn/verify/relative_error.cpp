#include <braid/nn/verify/relative_error.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace braid::nn {

double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double relative_error(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double difference = 0, largest = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference = worse(difference, std::abs(x[i] - y[i]));
    largest = std::max(largest, std::abs(y[i]));
  }
  return difference / largest;
}

}  // namespace braid::nn
