// Every error that a docstring of mhc's ops, mixings and streams names: see tests/throws.h.
#include <tests/throws.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/gated_read.h>
#include <braid/mhc/ops/group_mix.h>
#include <braid/mhc/ops/hyper_read.h>
#include <braid/mhc/ops/mhc_layer.h>
#include <braid/mhc/ops/mhc_read.h>
#include <braid/mhc/ops/projections.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/mhc/ops/weighted_sum.h>
#include <braid/mhc/streams/connection_hook.h>

namespace braid::mhc::ops_throw_test {
namespace {

constexpr auto f64 = DType::f64, i32 = DType::i32;
const Tensor kX = ones({2, 3, 4}), kInt = ones({2, 3, 4}, i32), kNone;
const Tensor kMap = ones({3}), kWide = ones({5}), kDouble = ones({3}, f64), kSquare = ones({3, 3}), kF = ones({2, 4});

TEST(MHCOpsThrow, Projections) {
  throws<ValueError>("mhc::simplex_softmax", [] { simplex_softmax(kX, 0); });
  throws<ValueError>("mhc::identity_preserving", [] { identity_preserving(kX, 1); });
  throws<ValueError>("mhc::identity_preserving", [] { identity_preserving(kX, 0.5, 0); });
  throws<ValueError>("mhc::doubly_stochastic", [] { doubly_stochastic(kSquare, 0); });
  throws<ValueError>("mhc::doubly_stochastic", [] { doubly_stochastic(kSquare, 1, 0); });
  throws<ShapeError>("mhc::doubly_stochastic", [] { doubly_stochastic(kX); });
  throws<DTypeError>("mhc::doubly_stochastic", [] { doubly_stochastic(ones({3, 3}, i32)); });
  throws<ShapeError>("mhc::simplex_projection", [] { simplex_projection(ones({2, 0})); });
  throws<DTypeError>("mhc::simplex_projection", [] { simplex_projection(kInt); });
  throws<ShapeError>("mhc::birkhoff_projection", [] { birkhoff_projection(ones({2, 3})); });
  throws<ShapeError>("mhc::sinkhorn_knopp", [] { sinkhorn_knopp(kX); });
  throws<ShapeError>("mhc::sinkhorn_knopp", [] { sinkhorn_knopp(ones({0, 0})); });
  throws<ValueError>("mhc::sinkhorn_knopp", [] { sinkhorn_knopp(kSquare, 0); });
  throws<DTypeError>("mhc::sinkhorn_knopp", [] { sinkhorn_knopp(ones({3, 3}, DType::bf16)); });
  throws<ValueError>("mhc::Mixing::Mixing", [] { Mixing("none", 4); });
  throws<ValueError>("mhc::Mixing::Mixing", [] { Mixing("sinkhorn", 0); });
  throws<ValueError>("mhc::Mixing::Mixing", [] { Mixing("quaternion", 3); });
  throws<ValueError>("mhc::Mixing::Mixing", [] { Mixing("sinkhorn", 4, {.iterations = 0}); });
  throws<ShapeError>("mhc::Mixing::operator()", [] { Mixing("cayley", 4)(ones({99})); });
  throws<DTypeError>("mhc::Mixing::operator()", [] { Mixing("sinkhorn", 2)(ones({4}, i32)); });
}

TEST(MHCOpsThrow, Passes) {
  const auto attend = [](const Tensor& norm, std::vector<Var> states) { attention_residual(norm, norm, states); };
  const auto weigh = [](const Tensor& norm, std::vector<Var> states) {
    attention_residual_weights(norm, norm, states);
  };
  const auto attend_in_turn = [](const Tensor& norm, std::vector<Var> states) {
    attention_residual_in_turn(norm, norm, std::move(states));
  };
  const auto add = [](const Tensor& weights, const Tensor& state) {
    weighted_sum(kF, weights, std::vector<Var>{state});
  };
  const Tensor four = ones({4});
  throws<ShapeError>("mhc::attention_residual", [&] { attend(four, {}); });
  throws<ShapeError>("mhc::attention_residual", [&] { attend(four, {kF, kX}); });
  throws<DTypeError>("mhc::attention_residual", [&] { attend(ones({4}, f64), {kF}); });
  throws<ShapeError>("mhc::attention_residual_in_turn", [&] { attend_in_turn(four, {}); });
  throws<DTypeError>("mhc::attention_residual_in_turn", [&] { attend_in_turn(ones({4}, f64), {kF}); });
  throws<ShapeError>("mhc::attention_residual_weights", [&] { weigh(four, {}); });
  throws<DTypeError>("mhc::attention_residual_weights", [&] { weigh(ones({4}, f64), {kF}); });
  throws<ShapeError>("mhc::weighted_sum", [&] { add(kMap, kF); });
  throws<ShapeError>("mhc::weighted_sum", [&] { add(ones({1}), kX); });
  throws<DTypeError>("mhc::weighted_sum", [&] { add(ones({1}), ones({2, 4}, f64)); });
  throws<ValueError>("mhc::expand_streams", [] { expand_streams(kF, 0); });
  throws<ShapeError>("mhc::expand_streams", [] { expand_streams(ones({}), 2); });
  throws<ShapeError>("mhc::reduce_streams", [] { reduce_streams(ones({2})); });
  throws<ShapeError>("mhc::scale_groups", [] { scale_groups(kWide, kX); });
  throws<DTypeError>("mhc::scale_groups", [] { scale_groups(kDouble, kX); });
  throws<ShapeError>("mhc::mix_groups", [] { mix_groups(kSquare, kWide, kX, kX); });
  throws<DTypeError>("mhc::mix_groups", [] { mix_groups(kSquare, kDouble, kX, kX); });
  throws<ShapeError>("mhc::mhc_layer", [&] { mhc_layer(kWide, kMap, kSquare, four, kX); });
  throws<DTypeError>("mhc::mhc_layer", [&] { mhc_layer(kDouble, kMap, kSquare, four, kX); });
  throws<ShapeError>("mhc::read_streams", [] { read_streams(kWide, kX); });
  throws<DTypeError>("mhc::read_streams", [] { read_streams(kDouble, kX); });
  throws<ShapeError>("mhc::write_streams", [] { write_streams(kSquare, kMap, kX, kX); });
  throws<ShapeError>("mhc::write_streams", [] { write_streams(kSquare, kWide, kX, kF); });
  throws<DTypeError>("mhc::write_streams", [] { write_streams(kSquare, kDouble, kX, kF); });
  throws<ShapeError>("mhc::mix_streams", [] { mix_streams(ones({3, 5}), kX); });
  throws<DTypeError>("mhc::mix_streams", [] { mix_streams(ones({3, 3}, f64), kX); });
  throws<ShapeError>("mhc::check_streams", [] { check_streams("op", kX.shape(), 3, 5); });
}

TEST(MHCOpsThrow, Maps) {
  const Mixing mixing("sinkhorn", 3);
  MHCMaps maps{.phi = ones({12, 15}), .alpha = kMap, .bias = ones({15}), .mixing = mixing, .eps = 1e-6};
  HyperMaps hyper{ones({5, 4}), kMap, ones({15}), 1e-6};
  GatedMaps gated{ones({12}), ones({2, 12}), ones({12, 2}), 1e-6}, writing = gated;
  writing.in = ones({5, 12});
  const auto read = [](const auto& of) {
    StreamState state{.last = {.u = {}, .maps = {}, .x = kX}};
    read_maps(of, state);
  };
  read(maps), read(hyper), read(writing), gated_mean(gated, kX);
  maps.bias = hyper.bias = kWide, gated.norm = writing.norm = kWide;
  throws<ShapeError>("mhc::read_maps", [&] { read(StreamMaps{kWide, kMap, kSquare}); });
  throws<ShapeError>("mhc::read_maps", [&] { read(maps); });
  throws<ShapeError>("mhc::read_maps", [&] { read(SinglePassMaps{maps, kMap}); });
  throws<ShapeError>("mhc::read_maps", [&] { read(hyper); });
  throws<ShapeError>("mhc::read_maps", [&] { read(writing); });
  throws<ShapeError>("mhc::compose_maps", [&] { compose_maps(maps, kX); });
  throws<ShapeError>("mhc::compose_maps", [&] { compose_maps(hyper, kX); });
  throws<ShapeError>("mhc::gated_mean", [&] { gated_mean(gated, kX); });
  maps.bias = hyper.bias = ones({15}, f64), gated.norm = writing.norm = ones({12}, f64);
  throws<DTypeError>("mhc::read_maps", [&] { read(StreamMaps{kDouble, kMap, kSquare}); });
  throws<DTypeError>("mhc::read_maps", [&] { read(maps); });
  throws<DTypeError>("mhc::read_maps", [&] { read(hyper); });
  throws<DTypeError>("mhc::read_maps", [&] { read(writing); });
  throws<DTypeError>("mhc::compose_maps", [&] { compose_maps(maps, kX); });
  throws<DTypeError>("mhc::compose_maps", [&] { compose_maps(hyper, kX); });
  throws<DTypeError>("mhc::gated_mean", [&] { gated_mean(gated, kX); });
}

TEST(MHCOpsThrow, Streams) {
  const StreamMaps maps{kMap, kMap, kSquare};
  Streams fresh(kX), reading(kX);
  throws<ShapeError>("mhc::Streams::Streams", [] { Streams(ones({4})); });
  throws<DTypeError>("mhc::Streams::Streams", [] { Streams{kInt}; });
  throws<ValueError>("mhc::Streams::Streams", [] { Streams(kX, 0); });
  throws<ShapeError>("mhc::Streams::add", [&] { fresh.add(ones({2, 3, 4})); });
  throws<ShapeError>("mhc::Streams::add", [&] { fresh.add(ones({4})); });
  throws<DTypeError>("mhc::Streams::add", [&] { fresh.add(ones({3, 4}, f64)); });
  throws<ShapeError>("mhc::Streams::read", [&] { fresh.read(StreamMaps{kWide, kMap, kSquare}); });
  throws<DTypeError>("mhc::Streams::read", [&] { fresh.read(StreamMaps{kDouble, kMap, kSquare}); });
  throws<Error>("mhc::Streams::write", [&] { fresh.write(kF); });
  reading.read(maps);
  throws<Error>("mhc::Streams::value", [&] { static_cast<void>(reading.value()); });
  throws<Error>("mhc::Streams::settle", [&] { reading.settle(); });
  throws<Error>("mhc::Streams::add", [&] { reading.add(ones({3, 4})); });
  throws<Error>("mhc::Streams::read", [&] { reading.read(maps); });
  throws<ShapeError>("mhc::Streams::write", [&] { reading.write(kX); });
  throws<DTypeError>("mhc::Streams::write", [&] { reading.write(ones({2, 4}, f64)); });
  StreamState state{.last = {.u = {}, .maps = maps, .x = kX}};
  throws<Error>("mhc::StreamState::value", [&] { static_cast<void>(state.value()); });
  throws<Error>("mhc::StreamState::settle", [&] { state.settle(); });
  throws<ValueError>("mhc::keep_interval", [] { keep_interval(0, 1); });
  throws<ValueError>("mhc::keep_interval", [] { keep_interval(1, -1); });
}

/// Doubles what layers give.
struct Doubling : ConnectionHook {
  Var write(const Var& f) override { return 2 * f; }
};

TEST(MHCOpsThrow, Hooks) {
  Rng rng;
  const ManifoldConstrainedHC connection(4, 3, rng);
  const auto layer = [](const Var& u) { return u; };
  Tape tape;
  const Var x = tape.watch(kX);
  Var y;
  {
    Doubling hook;
    y = checkpoint([&](const Var& v) { return connection(v, layer); }, x);
  }
  throws<Error>("mhc::ConnectionHook", [&] { tape.backward(sum(y)); });
}

}  // namespace
}  // namespace braid::mhc::ops_throw_test
