#include <tests/mhc/fused_ops.h>

#include <braid/mhc/connections/history/mhc_skip.h>
#include <braid/mhc/connections/hyper_connection.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/connections/manifold_hyper_connection.h>
#include <braid/mhc/connections/mhc_layer.h>
#include <braid/mhc/connections/released/gated_residual.h>
#include <braid/mhc/connections/released/released_connection.h>
#include <braid/mhc/connections/released/single_pass.h>
#include <braid/mhc/connections/released/weighted_head.h>
#include <braid/mhc/mixings/detail/family.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/ops/group_mix.h>
#include <braid/mhc/ops/mhc_layer.h>
#include <braid/mhc/ops/weighted_sum.h>
#include <tests/mhc/support.h>

namespace braid::mhc {
namespace {

using Vars = std::span<const Var>;

Shape streams(const CallSizes& s) { return s.lead.concat({s.n, s.channels}); }
Shape states(const CallSizes& s) { return s.lead.concat({s.channels}); }

/// One map for all tokens or one per token.
Shape map_shape(const CallSizes& s, const Shape& tail, bool per_token) {
  return per_token ? s.lead.concat(tail) : tail;
}

/// The maps of a layer on streams: entries of H_res are of order 1 / sqrt(n), so that sums stay of order one.
std::vector<Tensor> random_maps(const CallSizes& s, bool per_token, Rng& rng) {
  const double scale = 1 / std::sqrt(static_cast<double>(s.n));
  return {random(map_shape(s, {s.n}, per_token), rng, scale), random(map_shape(s, {s.n}, per_token), rng),
          random(map_shape(s, {s.n, s.n}, per_token), rng, scale)};
}

Var layer(const Var& u) { return 0.5 * u * u + u; }

FusedCall read_call(const CallSizes& s, bool per_token, Rng& rng) {
  return {{random_maps(s, per_token, rng)[0], random(streams(s), rng)},
          [](Vars v) { return read_streams(v[0], v[1]); },
          {1}};
}

FusedCall write_call(const CallSizes& s, bool per_token, Rng& rng) {
  const std::vector<Tensor> maps = random_maps(s, per_token, rng);
  return {{maps[2], maps[1], random(streams(s), rng), random(states(s), rng)},
          [](Vars v) { return write_streams(v[0], v[1], v[2], v[3]); },
          {2, 3}};
}

/// Of n streams to fewer or more.
FusedCall mix_streams_call(const CallSizes& s, bool per_token, Rng& rng) {
  const std::int64_t rows = 1 + rng.below(s.n + 2);
  const double scale = 1 / std::sqrt(static_cast<double>(s.n));
  return {{random(map_shape(s, {rows, s.n}, per_token), rng, scale), random(streams(s), rng)},
          [](Vars v) { return mix_streams(v[0], v[1]); },
          {1}};
}

FusedCall connect_call(const CallSizes& s, bool per_token, Rng& rng) {
  std::vector<Tensor> inputs = random_maps(s, per_token, rng);
  inputs.push_back(random(streams(s), rng));
  const auto connect = [](Vars v) {
    Streams x(v[3]);
    x.write(layer(x.read(StreamMaps{.h_pre = v[0], .h_post = v[1], .h_res = v[2]})));
    return x.value();
  };
  return {inputs, connect, {3}};
}

FusedCall mix_groups_call(const CallSizes& s, Rng& rng) {
  const std::vector<Tensor> maps = random_maps(s, false, rng);
  return {{maps[2], maps[1], random(streams(s), rng), random(streams(s), rng)},
          [](Vars v) { return mix_groups(v[0], v[1], v[2], scale_groups(v[1], v[3])); },
          {2, 3}};
}

/// Of n states.
FusedCall attention_residual_call(const CallSizes& s, Rng& rng) {
  FusedCall call{{random({s.channels}, rng, 1 / std::sqrt(std::max(1.0, static_cast<double>(s.channels)))),
                  random({s.channels}, rng)},
                 [](Vars v) { return attention_residual(v[0], v[1], v.subspan(2)); },
                 {}};
  for (std::int64_t i = 0; i < s.n; ++i) {
    call.streams.push_back(call.inputs.size());
    call.inputs.push_back(random(states(s), rng));
  }
  return call;
}

FusedCall sinkhorn_call(const CallSizes& s, Marginal exact, Rng& rng) {
  const int iterations = 1 + static_cast<int>(rng.below(20));
  return {
      {random(s.lead.concat({s.n, s.n}), rng, 2)}, [=](Vars v) { return sinkhorn_knopp(v[0], iterations, exact); }, {}};
}

/// `call(module, x)`; `make()` gives the module, whose parameters are the inputs after x.
template <class Make, class Call>
FusedCall module_call(const Tensor& x, Rng& rng, Make make, Call call) {
  std::vector<Tensor> inputs{x};
  for_each_param(make(), [&](const std::string& name, const Var& p) {
    const bool dotted_with_x =
        name.starts_with("theta") || name.find("_weight") != std::string::npos || name.ends_with("fn");
    // The others that sum over channels are columns.
    const auto terms = static_cast<double>(dotted_with_x ? p.size(-1) : p.rank() == 2 ? p.size(0) : 1);
    inputs.push_back(random(p.shape(), rng, 1 / std::sqrt(terms)));
  });
  const auto evaluate = [=](Vars v) {
    auto module = make();
    auto next = v.begin() + 1;
    for_each_param(module, [&](const std::string&, Var& p) { p = *next++; });
    return call(std::as_const(module), v[0]);
  };
  return {inputs, evaluate};
}

FusedCall hyper_call(const CallSizes& s, bool dynamic, Rng& rng) {
  const auto make = [=] { return HyperConnection(s.channels, s.n, 0, {.dynamic = dynamic, .dtype = DType::f64}); };
  return module_call(random(streams(s), rng), rng, make, [](const auto& m, const Var& x) { return m(x, layer); });
}

/// Two in a row, followed by the head.
struct GatedNetwork {
  GatedResidual first, second;
  GatedHead head;

  Var operator()(const Var& x) const { return head(second(first(Streams(x), layer), layer)); }
  void params(auto&& visit) {
    visit("first", first);
    visit("second", second);
    visit("head", head);
  }
};

FusedCall gated_call(const CallSizes& s, Rng& rng) {
  const std::int64_t rank = 1 + rng.below(5);
  const auto make = [=] {
    Rng unused;
    const GatedResidualSettings settings{.rank = rank, .norm_eps = 1e-2, .dtype = DType::f64};
    const GatedResidual residual(s.channels, s.n, unused, settings);
    return GatedNetwork{residual, residual, GatedHead(s.channels, s.n, unused, settings)};
  };
  return module_call(random(streams(s), rng), rng, make, [](const auto& m, const Var& x) { return m(x); });
}

/// With two in a row the write of one and the read of the next run in one pass.
FusedCall constrained_call(const CallSizes& s, const std::string& mixing, std::size_t connections, Rng& rng) {
  const auto make = [=] {
    Rng unused;
    return std::vector(connections,
                       ManifoldConstrainedHC(s.channels, s.n, unused, {.mixing = mixing, .dtype = DType::f64}));
  };
  const auto call = [](const auto& all, const Var& x) {
    Streams streams(x);
    for (const ManifoldConstrainedHC& connection : all) streams = connection(streams, layer);
    return streams.value();
  };
  return module_call(random(streams(s), rng), rng, make, call);
}

/// Two connections of a released model and its head.
struct Released {
  std::vector<ReleasedConnection> connections;
  WeightedHead head;

  void params(auto&& visit) {
    visit("connections", connections);
    visit("head", head);
  }
};

FusedCall released_call(const CallSizes& s, decltype(deepseek_v4)* factory, Rng& rng) {
  const auto make = [=] {
    Rng unused;
    const ReleasedConnection connection = factory(s.channels, s.n, unused, {.hc_eps = 1e-3, .dtype = DType::f64});
    return Released{{connection, connection}, WeightedHead(s.channels, s.n, {.dtype = DType::f64})};
  };
  const auto call = [](const auto& model, const Var& x) {
    Streams streams(x);
    for (const ReleasedConnection& connection : model.connections) streams = connection(streams, layer);
    return model.head(streams);
  };
  return module_call(random(streams(s), rng), rng, make, call);
}

/// Three in a row: the first reads stream 0, the others by the map of the one before.
FusedCall single_pass_call(const CallSizes& s, Rng& rng) {
  const auto make = [=] {
    Rng unused;
    return std::vector(3, SinglePassConnection(s.channels, s.n, unused, {.dtype = DType::f64}));
  };
  const auto call = [](const auto& all, const Var& x) {
    SinglePassStreams streams = all.front().first(Streams(x));
    for (const SinglePassConnection& connection : all) streams = connection(streams, layer);
    return all.back().close(streams);
  };
  return module_call(random(streams(s), rng), rng, make, call);
}

FusedCall mhc_layer_call(const CallSizes& s, bool with_layer, Rng& rng) {
  const auto make = [=] { return MHCLayer(s.n, s.channels, {.dtype = DType::f64}); };
  const auto call = [=](const MHCLayer& m, const Var& x) { return with_layer ? m(x, layer) : m(x); };
  return module_call(random(streams(s), rng), rng, make, call);
}

FusedCall manifold_call(const CallSizes& s, Rng& rng) {
  const auto make = [=] {
    Rng unused;
    return ManifoldHyperConnection(s.n * s.channels, unused, {.expansion = s.n, .dtype = DType::f64});
  };
  const Tensor x = random(s.lead.concat({s.n * s.channels}), rng);
  return module_call(x, rng, make, [](const auto& m, const Var& v) { return m(v, layer); });
}

/// A history of n states, of which at most five are mixed.
FusedCall skip_call(const CallSizes& s, Rng& rng) {
  const auto make = [] { return MHCSkip({.mode = SkipMode::hc, .max_history = 5, .dtype = DType::f64}); };
  const auto call = [](const MHCSkip& m, const Var& x) {
    std::vector<Var> history;
    for (std::int64_t i = 0; i < x.size(-2); ++i) history.push_back(squeeze(slice(x, -2, i, i + 1), -2));
    return m(layer(history.back()), history);
  };
  return module_call(random(streams(s), rng), rng, make, call);
}

}  // namespace

std::vector<FusedOp> fused_ops() {
  constexpr std::int64_t kLargestPhi = 100'000;
  std::vector<FusedOp> ops;
  for (const bool flag : {false, true}) {
    const auto add = [&](const char* name, const char* variant, auto make, bool without_channels) {
      const auto with_flag = [=](const CallSizes& s, Rng& rng) { return make(s, flag, rng); };
      ops.push_back({std::string(name) + "_" + (flag ? "" : "no_") + variant, with_flag, without_channels});
    };
    add("read_streams", "map_per_token", read_call, true);
    add("write_streams", "map_per_token", write_call, true);
    add("mix_streams", "map_per_token", mix_streams_call, true);
    add("streams", "map_per_token", connect_call, true);
    add("hyper_connection", "dynamics", hyper_call, false);
    add("mhc_layer", "layer_inside", mhc_layer_call, false);
  }
  const auto sinkhorn = [](Marginal exact) {
    return [exact](const CallSizes& s, Rng& rng) { return sinkhorn_call(s, exact, rng); };
  };
  ops.push_back({"sinkhorn_columns", sinkhorn(Marginal::columns)});
  ops.push_back({"sinkhorn_rows", sinkhorn(Marginal::rows)});
  ops.push_back({"attention_residual", attention_residual_call});
  ops.push_back({"gated_residual", gated_call, false});
  ops.push_back({"mix_groups", mix_groups_call});
  ops.push_back({"manifold", manifold_call, false});
  ops.push_back({"skip", skip_call});
  const auto constrained = [](std::string_view mixing, std::size_t connections) {
    return [mixing = std::string(mixing), connections](const CallSizes& s, Rng& rng) {
      return constrained_call(s, mixing, connections, rng);
    };
  };
  ops.push_back({"manifold_constrained", constrained("sinkhorn", 1), false, kLargestPhi});
  for (const mixings::Family* mixing : mixings::families())
    ops.push_back({fmt::format("manifold_constrained_{}", mixing->name), constrained(mixing->name, 2), false,
                   kLargestPhi, [mixing](std::int64_t n) { return mixing->exists(n) && n <= 16; },
                   mixing->name == "sinkhorn"});
  const auto any = [](std::int64_t) { return true; };
  for (const auto& [name, factory] : {std::pair{"deepseek_v4", &deepseek_v4}, {"hunyuan_v4", &hunyuan_v4}})
    ops.push_back({name, [factory](const CallSizes& s, Rng& rng) { return released_call(s, factory, rng); }, false,
                   kLargestPhi, any});
  ops.push_back({"single_pass", single_pass_call, false, kLargestPhi, any});
  return ops;
}

}  // namespace braid::mhc
