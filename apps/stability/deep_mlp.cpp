#include "deep_mlp.h"

#include <cmath>

#include <braid/autograd/ops/cross_entropy.h>
#include <braid/autograd/ops/embedding.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/mse_loss.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/nn/init.h>

namespace braid::stability {
namespace {

constexpr std::int64_t kFeatures = 16;
constexpr std::int64_t kOutputs = 8;  // of the teacher; classes
constexpr std::int64_t kTeacherHidden = 32;
constexpr std::int64_t kCenters = 4 * kOutputs;
constexpr double kCloud = 0.5;  // standard deviation; the centers are N(0, 1)

}  // namespace

DeepMLP::DeepMLP(const TaskConfig& sizes, const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng)
    : in(kFeatures, sizes.channels, rng), norm(sizes.channels), head(sizes.channels, kOutputs, rng) {
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.sublayers));
  for (std::int64_t i = 0; i < sizes.sublayers; ++i) {
    Sublayer& sublayer =
        sublayers.emplace_back(Sublayer{nn::RMSNorm(sizes.channels), nn::MLP(sizes.channels, sizes.hidden, rng),
                                        mhc::Connection(connection, sizes.channels, i, connection_rng)});
    sublayer.body.down.weight = (scale * sublayer.body.down.weight).value();
    sublayer.body.down.bias = (scale * sublayer.body.down.bias).value();
  }
}

TeacherStudent::TeacherStudent(const TaskConfig& sizes, Rng& rng)
    : sizes_(sizes),
      first_(nn::init::kaiming_normal({kTeacherHidden, kFeatures}, rng)),
      second_(nn::init::kaiming_normal({kOutputs, kTeacherHidden}, rng)) {}

DeepMLP TeacherStudent::model(const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng) const {
  return {sizes_, connection, rng, connection_rng};
}

Batch TeacherStudent::sample(Rng& rng) const {
  const Tensor x = randn({sizes_.batch, kFeatures}, rng);
  return {x, linear(tanh(linear(x, first_)), second_).value()};
}

Var TeacherStudent::loss(const Var& prediction, const Tensor& targets) { return mse_loss(prediction, targets); }

Clusters::Clusters(const TaskConfig& sizes, Rng& rng) : sizes_(sizes), centers_(randn({kCenters, kFeatures}, rng)) {}

DeepMLP Clusters::model(const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng) const {
  return {sizes_, connection, rng, connection_rng};
}

Batch Clusters::sample(Rng& rng) const {
  const Tensor center = randint(0, kCenters, {sizes_.batch}, rng);
  const Var x = embedding(centers_, center) + kCloud * Var(randn({sizes_.batch, kFeatures}, rng));
  Tensor labels(center.shape(), DType::i32);
  auto* label = labels.mutable_data<std::int32_t>();
  for (const std::int32_t c : center.to_vector<std::int32_t>()) *label++ = c % static_cast<std::int32_t>(kOutputs);
  return {x.value(), labels};
}

Var Clusters::loss(const Var& prediction, const Tensor& targets) { return cross_entropy(prediction, targets); }

}  // namespace braid::stability
