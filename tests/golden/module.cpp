#include <tests/golden/module.h>

#include <algorithm>
#include <cmath>

namespace braid::golden {
namespace {

template <class F>
Path verified(std::string name, F call) {
  return {std::move(name), [call = std::move(call)](const RecordedCase& golden, const nn::VerifyOptions& options) {
            return nn::verify(golden, call, options);
          }};
}

}  // namespace

Path differentiated(std::string name, std::function<Outputs(const CaseInputs&)> call) {
  return verified(std::move(name), std::move(call));
}

Path path(std::string name, std::function<Var(const CaseInputs&)> call) {
  return verified(std::move(name), std::move(call));
}

std::vector<Path> both_paths(const std::function<Var(const CaseInputs&, mhc::Path)>& call) {
  std::vector<Path> paths;
  for (const mhc::Path which : {mhc::Path::reference, mhc::Path::fused})
    paths.push_back(path(std::string(mhc::name(which)), [=](const CaseInputs& a) { return call(a, which); }));
  return paths;
}

double largest(const Tensor& x) {
  double most = 0;
  for (const double v : x.to_vector<double>()) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace braid::golden
