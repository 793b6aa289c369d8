#include <bench/mhc_operations.h>

#include <memory>
#include <span>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/params.h>
#include <braid/core/map.h>
#include <braid/core/random.h>
#include <braid/mhc/connections/hyper_connection.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/connections/mhc_layer.h>
#include <braid/mhc/connections/released/single_pass.h>
#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

using Vars = std::span<const Var>;

// Modules that take all their inputs as one span.

struct Sinkhorn {
  Var operator()(Vars in) const { return mhc::sinkhorn_knopp(in[0]); }
  void params(auto&&) {}
};

struct Read {
  Var operator()(Vars in) const { return mhc::read_streams(in[0], in[1]); }
  void params(auto&&) {}
};

struct Write {
  Var operator()(Vars in) const { return mhc::write_streams(in[0], in[1], in[2], in[3]); }
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

/// `operation`, performed by a module. Its parameters are moved away from their initialization, where maps do not
/// depend on x and gradients vanish.
template <class Module>
MHCOperation by(Module module, MHCOperation operation) {
  Rng rng(3);
  for_each_param(module, [&](const std::string&, Var& param) {
    param = param + 0.02 * Var(randn(param.shape(), rng, param.dtype()));
  });
  const auto shared = std::make_shared<const Module>(std::move(module));
  operation.forward = [shared](const Tensors& inputs) {
    const std::vector<Var> constants(inputs.begin(), inputs.end());
    return (*shared)(constants).value();
  };
  operation.forward_backward = [shared](const Tensors& inputs, const Tensor& dy) {
    return evaluate(*shared, inputs, dy);
  };
  return operation;
}

/// The bytes of f32 values, given per token.
MHCTraffic traffic(std::int64_t tokens, std::int64_t forward, std::int64_t vjp) {
  return {4.0 * static_cast<double>(tokens * forward), 4.0 * static_cast<double>(tokens * vjp)};
}

std::string name(const char* operation, const MHCSizes& s) {
  return fmt::format("{}/B{}/n{}/C{}", operation, s.tokens, s.streams, s.channels);
}

/// Forward: h_pre, x -> u. Vjp: h_pre, x, du -> dh_pre, dx.
MHCOperation read_operation(const MHCSizes& s) {
  const auto [B, n, C] = s;
  return by(Read{}, {.name = name("stream_read", s),
                     .inputs = {{B, n}, {B, n, C}},
                     .output = {B, C},
                     .bytes = traffic(B, n + n * C + C, 2 * n + 2 * n * C + C)});
}

/// Forward: h_res, h_post, x, f -> y. Vjp: the same and dy -> dh_res, dh_post, dx, df.
MHCOperation write_operation(const MHCSizes& s) {
  const auto [B, n, C] = s;
  const std::int64_t maps = n * n + n;
  return by(Write{}, {.name = name("stream_write", s),
                      .inputs = {{B, n, n}, {B, n}, {B, n, C}, {B, C}},
                      .output = {B, n, C},
                      .bytes = traffic(B, maps + 2 * n * C + C, 2 * maps + 3 * n * C + 2 * C)});
}

/// A layer separates the read from the write, so x passes twice: x -> u, then x, f -> out. On the way back dy, f -> df,
/// then dy, x, du -> dx. The maps can be recomputed from these.
template <class Connection>
MHCOperation connection_operation(const char* operation, const MHCSizes& s, Connection connection) {
  const auto [B, n, C] = s;
  return by(AroundIdentity<Connection>{std::move(connection)},
            {.name = name(operation, s),
             .inputs = {{B, n, C}},
             .output = {B, n, C},
             .bytes = traffic(B, 3 * n * C + 2 * C, 4 * n * C + 3 * C)});
}

/// The layer is part of the op, so x -> out and dy, x -> dx suffice.
MHCOperation norm_layer_operation(const MHCSizes& s) {
  const auto [B, n, C] = s;
  return by(NormLayer{{n, C, {.init = mhc::MHCLayerInit::residual}}}, {.name = name("mhc_layer", s),
                                                                       .inputs = {{B, n, C}},
                                                                       .output = {B, n, C},
                                                                       .bytes = traffic(B, 2 * n * C, 3 * n * C)});
}

}  // namespace

MHCOperation sinkhorn_operation(std::int64_t tokens, std::int64_t n) {
  return by(Sinkhorn{}, {.name = fmt::format("sinkhorn_knopp/B{}/n{}", tokens, n),
                         .inputs = {{tokens, n, n}},
                         .output = {tokens, n, n},
                         .bytes = traffic(tokens, 2 * n * n, 3 * n * n)});
}

std::vector<MHCOperation> stream_operations(const MHCSizes& s) {
  Rng rng(4);
  Rng same = rng;
  return {connection_operation("mhc", s, mhc::ManifoldConstrainedHC(s.channels, s.streams, rng)),
          connection_operation("single_pass", s, mhc::SinglePassConnection(s.channels, s.streams, same)),
          connection_operation("hyper_connection", s, mhc::HyperConnection(s.channels, s.streams, 0)),
          norm_layer_operation(s),
          read_operation(s),
          write_operation(s)};
}

}  // namespace braid::bench
