#include <braid/mhc/connections/manifold_hyper_connection.h>

#include <cmath>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/group_mix.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/nn/init.h>

namespace braid::mhc {

ManifoldHyperConnection::ManifoldHyperConnection(std::int64_t dims, Rng& rng,
                                                 const ManifoldHyperConnectionSettings& settings)
    : dims(dims), sinkhorn_iterations(settings.sinkhorn_iterations) {
  const std::int64_t e = settings.expansion;
  check_value(e >= 1, "ManifoldHyperConnection: expansion must be >= 1 but is {}", e);
  check_value(dims >= 1 && dims % e == 0,
              "ManifoldHyperConnection: dims must be a positive multiple of expansion {} but is {}", e, dims);
  check_value(sinkhorn_iterations >= 1, "ManifoldHyperConnection: sinkhorn_iterations must be >= 1 but is {}",
              sinkhorn_iterations);
  h_res_raw = nn::init::normal({e, e}, 1 / std::sqrt(static_cast<double>(e)), rng, settings.dtype);
  for (Var* vector : {&h_pre_raw, &h_pre_bias, &h_post_raw, &h_post_bias}) *vector = zeros({e}, settings.dtype);
}

Var ManifoldHyperConnection::h_res() const {
  return h_res_cache_.get({h_res_raw, full({}, sinkhorn_iterations)},
                          [&] { return sinkhorn_knopp(h_res_raw, sinkhorn_iterations, Marginal::columns); });
}

Var ManifoldHyperConnection::h_pre() const {
  return h_pre_cache_.get({h_pre_raw, h_pre_bias}, [&] { return sigmoid(h_pre_raw + h_pre_bias); });
}

Var ManifoldHyperConnection::h_post() const {
  return h_post_cache_.get({h_post_raw, h_post_bias}, [&] { return 2 * sigmoid(h_post_raw + h_post_bias); });
}

Var ManifoldHyperConnection::pre_scale(const Var& x) const {
  return reshape(scale_groups(h_pre(), split(x)), x.shape());
}

Var ManifoldHyperConnection::post_combine(const Var& x, const Var& layer_output) const {
  const Var groups = split(x);
  check_shape(layer_output.shape() == x.shape(),
              "ManifoldHyperConnection: layer_output must have the shape {} of x but has {}", x.shape(),
              layer_output.shape());
  const Var f = reshape(layer_output, groups.shape());
  if (!composed()) return reshape(mix_groups(residual_map(), h_post(), groups, f), x.shape());
  // As published; the fused form folds H_post and H_pre into one map of x.
  const auto wide = [&](const Var& v) { return cast(v, h_res_raw.dtype()); };
  const Var mixed = matmul(h_res(), wide(groups) * expand_dims(h_pre(), -1));
  return cast(reshape((wide(f) + mixed) * expand_dims(h_post(), -1), x.shape()), x.dtype());
}

Var ManifoldHyperConnection::split(const Var& x) const {
  check_shape(x.rank() >= 1 && x.size(-1) == dims, "ManifoldHyperConnection: x must have shape [..., {}] but has {}",
              dims, x.shape());
  return reshape(x, x.shape().with(-1, expansion()).inserted(x.rank(), dims / expansion()));
}

Var ManifoldHyperConnection::residual_map() const { return expand_dims(h_post(), -1) * h_res() * h_pre(); }

}  // namespace braid::mhc
