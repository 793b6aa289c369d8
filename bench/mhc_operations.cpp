#include <bench/mhc_operations.h>

#include <memory>
#include <span>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/params.h>
#include <braid/core/map.h>
#include <braid/core/random.h>
#include <braid/mhc/hyper_connection.h>
#include <braid/mhc/manifold_constrained_hc.h>
#include <braid/mhc/mhc_layer.h>
#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/mhc/released/single_pass.h>
#include <fmt/core.h>

namespace braid::bench {
namespace {

using mhc::Path;
using Vars = std::span<const Var>;

// Modules that take all their inputs as one span.

struct Sinkhorn {
  Path path;

  Var operator()(Vars in) const { return mhc::sinkhorn_knopp(in[0], 20, mhc::Marginal::columns, path); }
  void params(auto&&) {}
};

struct Read {
  Path path;

  Var operator()(Vars in) const { return mhc::read_streams(in[0], in[1], path); }
  void params(auto&&) {}
};

struct Write {
  Path path;

  Var operator()(Vars in) const { return mhc::write_streams(in[0], in[1], in[2], in[3], path); }
  void params(auto&&) {}
};

template <class Connection>
struct AroundIdentity {
  Connection connection;

  Var operator()(Vars in) const {
    return connection(in[0], [](const Var& u) { return u; });
  }
  void params(auto&& visit) { connection.params(visit); }
};

struct NormLayer {
  mhc::MHCLayer layer;

  Var operator()(Vars in) const { return layer(in[0]); }
  void params(auto&& visit) { layer.params(visit); }
};

/// `module` is a copy, whose parameters are put on the tape.
template <class Module>
Tensors evaluate(Module module, const Tensors& inputs, const Tensor& dy) {
  Tape tape;
  std::vector<Var> watched;
  const auto watch = [&](const Tensor& value) { return watched.emplace_back(tape.watch(value)); };
  for (const Tensor& input : inputs) watch(input);
  for_each_param(module, [&](const std::string&, Var& param) { param = watch(param.value()); });
  const Var y = module(Vars(watched).first(inputs.size()));
  tape.backward(y, dy);
  Tensors results{y.value()};
  for (const Var& variable : watched) results.push_back(tape.gradient(variable));
  return results;
}

/// Parameters move away from their start, where maps do not depend on x and gradients vanish.
template <class Module>
MHCForm form_of(Module module) {
  Rng rng(3);
  for_each_param(module, [&](const std::string&, Var& param) {
    param = param + 0.02 * Var(randn(param.shape(), rng, param.dtype()));
  });
  const auto shared = std::make_shared<const Module>(std::move(module));
  return {[shared](const Tensors& inputs) {
            const std::vector<Var> constants(inputs.begin(), inputs.end());
            return (*shared)(constants).value();
          },
          [shared](const Tensors& inputs, const Tensor& dy) { return evaluate(*shared, inputs, dy); }};
}

/// Of f32 values per token.
MHCTraffic traffic(std::int64_t tokens, std::int64_t forward, std::int64_t vjp) {
  return {4.0 * static_cast<double>(tokens * forward), 4.0 * static_cast<double>(tokens * vjp)};
}

std::string name(const char* operation, const MHCSizes& s) {
  return fmt::format("{}/B{}/n{}/C{}", operation, s.tokens, s.streams, s.channels);
}

/// Forward: h_pre, x -> u. Vjp: h_pre, x, du -> dh_pre, dx.
MHCOperation read_operation(const MHCSizes& s) {
  const auto [B, n, C] = s;
  return {name("stream_read", s),
          {{B, n}, {B, n, C}},
          {B, C},
          traffic(B, n + n * C + C, 2 * n + 2 * n * C + C),
          [](Path path) { return form_of(Read{path}); }};
}

/// Forward: h_res, h_post, x, f -> y. Vjp: the same and dy -> dh_res, dh_post, dx, df.
MHCOperation write_operation(const MHCSizes& s) {
  const auto [B, n, C] = s;
  const std::int64_t maps = n * n + n;
  return {name("stream_write", s),
          {{B, n, n}, {B, n}, {B, n, C}, {B, C}},
          {B, n, C},
          traffic(B, maps + 2 * n * C + C, 2 * maps + 3 * n * C + 2 * C),
          [](Path path) { return form_of(Write{path}); }};
}

/// A layer stands between the read and the write, so x passes twice: x -> u, then x, f -> out. On the way back
/// dy, f -> df, then dy, x, du -> dx. The maps can be computed again from what passes.
MHCOperation connection_operation(const char* operation, const MHCSizes& s, std::function<MHCForm(Path)> form) {
  const auto [B, n, C] = s;
  return {
      name(operation, s), {{B, n, C}}, {B, n, C}, traffic(B, 3 * n * C + 2 * C, 4 * n * C + 3 * C), std::move(form)};
}

/// The layer is known, so x -> out and dy, x -> dx suffice.
MHCOperation norm_layer_operation(const MHCSizes& s) {
  const auto [B, n, C] = s;
  return {name("mhc_layer", s), {{B, n, C}}, {B, n, C}, traffic(B, 2 * n * C, 3 * n * C), [s](Path path) {
            return form_of(NormLayer{{s.streams, s.channels, {.init = mhc::MHCLayerInit::residual, .path = path}}});
          }};
}

MHCForm manifold_form(const MHCSizes& s, Path path) {
  Rng rng(4);
  return form_of(AroundIdentity<mhc::ManifoldConstrainedHC>{{s.channels, s.streams, rng, {.path = path}}});
}

MHCForm single_pass_form(const MHCSizes& s, Path path) {
  Rng rng(4);
  return form_of(AroundIdentity<mhc::SinglePassConnection>{{s.channels, s.streams, rng, {.path = path}}});
}

MHCForm hyper_form(const MHCSizes& s, Path path) {
  return form_of(AroundIdentity<mhc::HyperConnection>{{s.channels, s.streams, 0, {.path = path}}});
}

}  // namespace

MHCOperation sinkhorn_operation(std::int64_t tokens, std::int64_t n) {
  return {fmt::format("sinkhorn_knopp/B{}/n{}", tokens, n),
          {{tokens, n, n}},
          {tokens, n, n},
          traffic(tokens, 2 * n * n, 3 * n * n),
          [](Path path) { return form_of(Sinkhorn{path}); }};
}

std::vector<MHCOperation> stream_operations(const MHCSizes& s) {
  return {connection_operation("mhc", s, [s](Path path) { return manifold_form(s, path); }),
          connection_operation("single_pass", s, [s](Path path) { return single_pass_form(s, path); }),
          connection_operation("hyper_connection", s, [s](Path path) { return hyper_form(s, path); }),
          norm_layer_operation(s),
          read_operation(s),
          write_operation(s)};
}

}  // namespace braid::bench
