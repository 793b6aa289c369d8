#include <braid/mhc/connections/manifold_constrained_hc.h>

#include <cmath>

#include <braid/autograd/ops/concat.h>
#include <braid/nn/init.h>

namespace braid::mhc {

Tensor mean_logits(std::int64_t n, DType dtype) {
  // logit(1/n) = -log(n - 1). For one stream that is infinite; the sigmoid of 40 rounds to 1 in f64.
  return full({n}, n == 1 ? 40 : -std::log(static_cast<double>(n - 1)), dtype);
}

Tensor residual_like_bias(const Mixing& mixing, DType dtype) {
  const Tensor pre = mean_logits(mixing.n(), DType::f64), post = zeros({mixing.n()}, DType::f64);
  return concat({pre, post, mixing.start()}, 0).value().to(dtype);
}

ManifoldConstrainedHC::ManifoldConstrainedHC(std::int64_t channels, std::int64_t streams, Rng& rng,
                                             const ManifoldConstrainedHCSettings& settings)
    : channels(channels), settings(settings), mixing(settings.mixing, streams, settings.mixing_settings) {
  check_value(channels >= 1, "ManifoldConstrainedHC: channels must be >= 1 but is {}", channels);
  check_value(settings.keep_every >= 1, "ManifoldConstrainedHC: keep_every must be >= 1 but is {}",
              settings.keep_every);
  check_value(settings.phi_std >= 0, "ManifoldConstrainedHC: phi_std must be >= 0 but is {}", settings.phi_std);
  const Shape shape{streams * channels, 2 * streams + mixing.logits()};
  phi = settings.phi_std > 0 ? nn::init::normal(shape, settings.phi_std, rng, settings.dtype)
                             : nn::init::constant(shape, 0, settings.dtype);
  alpha = full({mixing.logits() > 0 ? 3 : 2}, settings.alpha, settings.dtype);
  bias = residual_like_bias(mixing, settings.dtype);
}

StreamMaps ManifoldConstrainedHC::maps(const Var& x) const {
  check_streams("ManifoldConstrainedHC", x.shape(), streams(), channels);
  return compose_maps(dynamic_maps(), x);
}

Var ManifoldConstrainedHC::read(Streams& x) const {
  check_streams("ManifoldConstrainedHC", x.shape(), streams(), channels);
  return x.read(dynamic_maps());
}

MHCMaps ManifoldConstrainedHC::dynamic_maps() const {
  return {.phi = phi, .alpha = alpha, .bias = bias, .mixing = mixing, .eps = settings.eps};
}

}  // namespace braid::mhc
