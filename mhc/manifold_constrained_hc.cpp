#include <braid/mhc/manifold_constrained_hc.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sigmoid.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/sqrt.h>
#include <braid/autograd/ops/sum.h>
#include <braid/nn/init.h>

namespace braid::mhc {

Tensor residual_like_bias(std::int64_t streams, DType dtype) {
  // logit(1/n) = -log(n - 1). For one stream that is infinite; the sigmoid of 40 rounds to 1 in f64.
  const double pre = streams == 1 ? 40 : -std::log(static_cast<double>(streams - 1));
  std::vector<double> bias(static_cast<std::size_t>(streams * (streams + 2)), 0.0);
  std::fill_n(bias.begin(), streams, pre);
  for (std::int64_t i = 0; i < streams; ++i) bias[static_cast<std::size_t>(2 * streams + i * (streams + 1))] = 4;
  return Tensor::of<double>({streams * (streams + 2)}, bias).to(dtype);
}

ManifoldConstrainedHC::ManifoldConstrainedHC(std::int64_t channels, std::int64_t streams, Rng& rng,
                                             const ManifoldConstrainedHCSettings& settings)
    : channels(channels), streams(streams), settings(settings) {
  check_value(channels >= 1, "ManifoldConstrainedHC: channels must be >= 1 but is {}", channels);
  check_value(streams >= 1, "ManifoldConstrainedHC: streams must be >= 1 but is {}", streams);
  check_value(settings.sinkhorn_iterations >= 1, "ManifoldConstrainedHC: sinkhorn_iterations must be >= 1 but is {}",
              settings.sinkhorn_iterations);
  check_value(settings.keep_every >= 1, "ManifoldConstrainedHC: keep_every must be >= 1 but is {}",
              settings.keep_every);
  check_value(settings.phi_std >= 0, "ManifoldConstrainedHC: phi_std must be >= 0 but is {}", settings.phi_std);
  const Shape shape{streams * channels, streams * (streams + 2)};
  phi = settings.phi_std > 0 ? nn::init::normal(shape, settings.phi_std, rng, settings.dtype)
                             : zeros(shape, settings.dtype);
  alpha = full({3}, 0.01, settings.dtype);
  bias = residual_like_bias(streams, settings.dtype);
}

StreamMaps ManifoldConstrainedHC::maps(const Var& x) const {
  const std::int64_t n = streams;
  check_streams("ManifoldConstrainedHC", x.shape(), n, channels);
  const Shape lead = x.shape().axes(0, x.rank() - 2);
  const Var flat = reshape(x, {lead.numel(), n * channels});
  const Var h =
      matmul(flat, phi) / sqrt(mean(flat * flat, {-1}, true) + settings.eps);  // [tokens, n (n + 2)], alpha = 1
  const auto group = [&](int map, std::int64_t begin, std::int64_t end, const Shape& shape) {
    const Var logits = slice(alpha, 0, map, map + 1) * slice(h, -1, begin, end) + slice(bias, 0, begin, end);
    return reshape(logits, lead.concat(shape));
  };
  return {sigmoid(group(0, 0, n, {n})), 2 * sigmoid(group(1, n, 2 * n, {n})),
          sinkhorn_knopp(group(2, 2 * n, n * (n + 2), {n, n}), settings.sinkhorn_iterations, settings.exact,
                         settings.path)};
}

Var ManifoldConstrainedHC::read(Streams& x) const {
  check_streams("ManifoldConstrainedHC", x.shape(), streams, channels);
  if (settings.path == Path::reference) return x.read(maps(x.settle()), Path::reference);
  const bool rows_last = settings.exact == Marginal::rows;
  return x.read(MHCMaps{phi, alpha, bias, settings.sinkhorn_iterations, rows_last, settings.eps});
}

}  // namespace braid::mhc
