// Every error that a docstring of a connection names: see tests/throws.h.
#include <tests/throws.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include <braid/autograd/ops.h>
#include <braid/core/files/file_system.h>
#include <braid/mhc/connection.h>
#include <braid/mhc/connections/released/load_save.h>
#include <tests/support.h>

namespace braid::mhc::throws_test {
namespace {

const Tensor kF = ones({2, 4}), kX = ones({2, 3, 4}), kWide = ones({2, 3, 5});
const auto kLayer = [](const Var& u) { return u; };

TEST(MHCThrows, Constructors) {
  Rng rng;
  throws<ValueError>("mhc::AttentionPool::AttentionPool", [] { AttentionPool(0); });
  throws<ValueError>("mhc::HyperConnection::HyperConnection", [] { HyperConnection(0, 1, 0); });
  throws<ValueError>("mhc::HyperConnection::HyperConnection", [] { HyperConnection(1, 0, 0); });
  throws<ValueError>("mhc::HyperConnection::HyperConnection", [] { HyperConnection(1, 1, -1); });
  throws<ValueError>("mhc::MHCLayer::MHCLayer", [] { MHCLayer(0, 1); });
  throws<ValueError>("mhc::MHCLayer::MHCLayer", [] { MHCLayer(1, 0); });
  throws<ValueError>("mhc::MHCLayer::MHCLayer", [] { MHCLayer(1, 1, {.sinkhorn_iterations = 0}); });
  throws<ValueError>("mhc::AttentionResidual::AttentionResidual", [] { AttentionResidual(0, 0); });
  throws<ValueError>("mhc::AttentionResidual::AttentionResidual", [] { AttentionResidual(1, -1); });
  throws<ValueError>("mhc::AttentionResidual::AttentionResidual", [] { AttentionResidual(1, 0, {.block = 0}); });
  throws<ValueError>("mhc::LaurelConnection::LaurelConnection", [] { LaurelConnection(4, 0); });
  throws<ValueError>("mhc::LaurelConnection::LaurelConnection", [] { LaurelConnection(4, 5); });
  throws<ValueError>("mhc::LayerScale::LayerScale", [] { LayerScale(0); });
  throws<ValueError>("mhc::LayerScale::LayerScale", [] { LayerScale(1, std::numeric_limits<double>::infinity()); });
  throws<ValueError>("mhc::HistoryBuffer::HistoryBuffer", [] { HistoryBuffer(0); });
  throws<ValueError>("mhc::MHCSkip::MHCSkip", [] { MHCSkip({.max_history = 0}); });
  const auto mhc = [&](std::int64_t channels, std::int64_t streams,
                       const ManifoldConstrainedHCSettings& settings = {}) {
    ManifoldConstrainedHC(channels, streams, rng, settings);
  };
  throws<ValueError>("mhc::ManifoldConstrainedHC::ManifoldConstrainedHC", [&] { mhc(0, 1); });
  throws<ValueError>("mhc::ManifoldConstrainedHC::ManifoldConstrainedHC", [&] { mhc(1, 0); });
  throws<ValueError>("mhc::ManifoldConstrainedHC::ManifoldConstrainedHC", [&] { mhc(1, 1, {.keep_every = 0}); });
  throws<ValueError>("mhc::ManifoldConstrainedHC::ManifoldConstrainedHC", [&] { mhc(1, 1, {.phi_std = -1}); });
  throws<ValueError>("mhc::ManifoldConstrainedHC::ManifoldConstrainedHC", [&] { mhc(1, 1, {.mixing = "none"}); });
  throws<ValueError>("mhc::ManifoldConstrainedHC::ManifoldConstrainedHC", [&] { mhc(1, 3, {.mixing = "quaternion"}); });
  const auto manifold = [&](std::int64_t dims, const ManifoldHyperConnectionSettings& settings) {
    ManifoldHyperConnection(dims, rng, settings);
  };
  throws<ValueError>("mhc::ManifoldHyperConnection::ManifoldHyperConnection", [&] { manifold(3, {.expansion = 2}); });
  throws<ValueError>("mhc::ManifoldHyperConnection::ManifoldHyperConnection", [&] { manifold(3, {.expansion = 0}); });
  throws<ValueError>("mhc::ManifoldHyperConnection::ManifoldHyperConnection",
                     [&] { manifold(4, {.sinkhorn_iterations = 0}); });
  const auto frac = [&](std::int64_t streams, std::int64_t index, const FracConnectionSettings& settings = {}) {
    FracConnection(4, streams, index, rng, settings);
  };
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(0, 0); });
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(1, -1); });
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(1, 0, {.fractions = 0}); });
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(1, 0, {.fractions = 3}); });
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(1, 0, {.proposals = 0}); });
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(1, 0, {.views = 0}); });
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(1, 0, {.sinkhorn_iterations = 0}); });
  throws<ValueError>("mhc::FracConnection::FracConnection", [&] { frac(1, 0, {.theta_std = -1}); });
}

TEST(MHCThrows, ConstructorsOfReleasedForms) {
  Rng rng;
  const auto released = [&](std::int64_t channels, const ReleasedSettings& settings) {
    CheckpointMaps maps{.mixing = Mixing("sinkhorn", 2), .norm_eps = settings.norm_eps, .pre_eps = settings.hc_eps};
    ReleasedConnection("op", std::move(maps), channels, rng, settings);
  };
  throws<ValueError>("mhc::ReleasedConnection::ReleasedConnection", [&] { released(0, {}); });
  throws<ValueError>("mhc::ReleasedConnection::ReleasedConnection", [&] { released(1, {.hc_eps = -1}); });
  throws<ValueError>("mhc::ReleasedConnection::ReleasedConnection", [&] { released(1, {.norm_eps = -1}); });
  throws<ValueError>("mhc::ReleasedConnection::ReleasedConnection", [&] { released(1, {.fn_std = -1}); });
  throws<ValueError>("mhc::ReleasedConnection::ReleasedConnection", [&] { released(1, {.keep_every = 0}); });
  throws<ValueError>("mhc::deepseek_v4", [&] { deepseek_v4(0, 1, rng); });
  throws<ValueError>("mhc::deepseek_v4", [&] { deepseek_v4(1, 0, rng); });
  throws<ValueError>("mhc::deepseek_v4", [&] { deepseek_v4(1, 1, rng, {.sinkhorn_iterations = 0}); });
  throws<ValueError>("mhc::deepseek_v4", [&] { deepseek_v4(1, 1, rng, {.keep_every = 0}); });
  throws<ValueError>("mhc::hunyuan_v4", [&] { hunyuan_v4(0, 1, rng); });
  throws<ValueError>("mhc::hunyuan_v4", [&] { hunyuan_v4(1, 0, rng); });
  throws<ValueError>("mhc::hunyuan_v4", [&] { hunyuan_v4(1, 1, rng, {.keep_every = 0}); });
  throws<ValueError>("mhc::SinglePassConnection::SinglePassConnection", [&] { SinglePassConnection(0, 1, rng); });
  throws<ValueError>("mhc::WeightedHead::WeightedHead", [] { WeightedHead(0, 1); });
  throws<ValueError>("mhc::WeightedHead::WeightedHead", [] { WeightedHead(1, 0); });
  throws<ValueError>("mhc::GatedResidual::GatedResidual", [&] { GatedResidual(0, 1, rng); });
  throws<ValueError>("mhc::GatedResidual::GatedResidual", [&] { GatedResidual(1, 0, rng); });
  throws<ValueError>("mhc::GatedResidual::GatedResidual", [&] { GatedResidual(1, 1, rng, {.rank = 0}); });
  throws<ValueError>("mhc::GatedResidual::GatedResidual", [&] { GatedResidual(1, 1, rng, {.std = -1}); });
  throws<ValueError>("mhc::GatedHead::GatedHead", [&] { GatedHead(0, 1, rng); });
  throws<ValueError>("mhc::GatedHead::GatedHead", [&] { GatedHead(1, 0, rng); });
  throws<ValueError>("mhc::GatedHead::GatedHead", [&] { GatedHead(1, 1, rng, {.rank = 0}); });
  throws<ValueError>("mhc::GatedHead::GatedHead", [&] { GatedHead(1, 1, rng, {.std = -1}); });
}

TEST(MHCThrows, Names) {
  throws<ValueError>("mhc::connection_kind", [] { connection_kind("none"); });
  throws<ValueError>("mhc::stream_head", [] { stream_head("none"); });
  throws<ValueError>("mhc::skip_mode", [] { skip_mode("none"); });
  throws<ValueError>("mhc::skip_projection", [] { skip_projection("other"); });
  throws<ValueError>("mhc::skip_init", [] { skip_init("none"); });
  throws<ValueError>("mhc::simplex_constraint", [] { simplex_constraint(0); });
  throws<ValueError>("mhc::identity_constraint", [] { identity_constraint(1); });
  throws<ValueError>("mhc::identity_constraint", [] { identity_constraint(0, 0); });
  throws<ValueError>("mhc::doubly_stochastic_constraint", [] { doubly_stochastic_constraint(0); });
  throws<ValueError>("mhc::make_constraint", [] { make_constraint("none"); });
}

TEST(MHCThrows, Connections) {
  Rng rng;
  Streams x(kX), wide(kWide);
  SinglePassStreams single{wide, ones({3})};
  const HyperConnection hc(4, 3, 0);
  const ManifoldConstrainedHC mhc(4, 3, rng);
  const ManifoldHyperConnection manifold(4, rng);
  const MHCLayer layer(3, 4);
  const FracConnection frac(4, 3, 0, rng);
  const auto summed = [](const Var& u) { return sum(u); };
  throws<ShapeError>("mhc::AttentionPool::operator()", [] { AttentionPool(4)(kWide); });
  throws<ShapeError>("mhc::HyperConnection::maps", [&] { hc.maps(kWide); });
  throws<ShapeError>("mhc::HyperConnection::read", [&] { hc.read(wide); });
  throws<ShapeError>("mhc::ManifoldConstrainedHC::maps", [&] { mhc.maps(kWide); });
  throws<ShapeError>("mhc::ManifoldConstrainedHC::read", [&] { mhc.read(wide); });
  throws<ShapeError>("mhc::ManifoldHyperConnection", [&] { manifold.pre_scale(kWide); });
  throws<ShapeError>("mhc::ManifoldHyperConnection", [&] { manifold.post_combine(kWide, kWide); });
  throws<ShapeError>("mhc::ManifoldHyperConnection", [&] { manifold.post_combine(kX, kF); });
  throws<ShapeError>("mhc::LaurelConnection::operator()", [&] { LaurelConnection(4)(kF, summed); });
  throws<ShapeError>("mhc::LayerScale::operator()", [&] { LayerScale(1)(kF, summed); });
  throws<ShapeError>("mhc::LayerScale::operator()", [&] { LayerScale(5)(kF, kLayer); });
  throws<ShapeError>("mhc::MHCLayer::operator()", [&] { layer(kWide); });
  throws<ShapeError>("mhc::MHCLayer::read", [&] { layer.read(wide); });
  throws<ShapeError>("mhc::FlatMHCLayer", [] { FlatMHCLayer(3, 4)(kX); });
  throws<ShapeError>("mhc::FracConnection::maps", [&] { frac.maps(kWide); });
  throws<ShapeError>("mhc::FracConnection::write", [&] { frac.write(frac.maps(kX), kX, kX); });
  throws<DTypeError>("mhc::FracConnection::write", [&] { frac.write(frac.maps(kX), kX, ones({2, 4}, DType::f64)); });
  throws<ShapeError>("mhc::ReleasedConnection::read", [&] { deepseek_v4(4, 3, rng).read(wide); });
  throws<ShapeError>("mhc::SinglePassConnection::read", [&] { SinglePassConnection(4, 3, rng).read(single); });
  throws<ShapeError>("mhc::GatedResidual::read", [&] { GatedResidual(4, 3, rng).read(wide); });
  throws<ShapeError>("mhc::GatedHead::operator()", [&] { GatedHead(4, 3, rng)(kWide); });
  throws<ShapeError>("mhc::WeightedHead::operator()", [] { WeightedHead(4, 3)(kWide); });
  // The ops that they call would refuse these streams, too, in words about parameters.
  const std::function<void()> reads[] = {[&] { hc.read(wide); }, [&] { mhc.read(wide); }, [&] { layer.read(wide); },
                                         [&] { SinglePassConnection(4, 3, rng).read(single); },
                                         [] { WeightedHead(4, 3)(kWide); }};
  for (const auto& call : reads)
    EXPECT_TRUE(message_of(call).ends_with(": x must have shape [..., 3, 4] (streams, channels) but has [2, 3, 5]"));
}

TEST(MHCThrows, Histories) {
  const AttentionResidual residual(4, 0);
  const MHCSkip skip({.max_history = 2});
  HistoryBuffer history(2);
  history.append(kF);
  throws<ShapeError>("mhc::AttentionResidual::operator()",
                     [&] { residual(residual.open(kF), [](const Var& u) { return sum(u); }); });
  throws<ShapeError>("mhc::HistoryBuffer::append", [&] { history.append(kX); });
  throws<ShapeError>("mhc::MHCSkip::operator()", [&] { skip(kX, history); });
  throws<ValueError>("mhc::MHCSkip::weights", [&] { skip.weights(0); });
  throws<ValueError>("mhc::MHCSkip::weights", [&] { skip.weights(3); });
}

TEST(MHCThrows, AnyConnection) {
  Rng rng;
  const Connection residual({}, 4, 0, rng), hc({.kind = ConnectionKind::hc}, 4, 0, rng);
  const auto stream = residual.open(kF);
  throws<ValueError>("mhc::Connection::Connection", [&] { Connection({.kind = ConnectionKind::hc}, 0, 0, rng); });
  throws<ValueError>("mhc::Connection::Connection",
                     [&] { Connection({.kind = ConnectionKind::hc, .head = StreamHead::weighted}, 4, 0, rng); });
  throws<Error>("mhc::Connection::operator()", [&] { hc(stream, kLayer); });
  throws<Error>("mhc::Connection::close", [&] { hc.close(stream); });
}

TEST(MHCThrows, Checkpoints) {
  Rng rng;
  ReleasedConnection released = deepseek_v4(4, 3, rng);
  ManifoldConstrainedHC rows(4, 3, rng, {.mixing = "rows"});
  nn::NamedTensors none;
  throws<Error>("mhc::load_connection", [&] { load_connection(none, "hc_", released); });
  throws<ValueError>("mhc::load_connection", [&] { load_connection(none, "hc_", rows); });
  throws<ValueError>("mhc::save_connection", [&] { save_connection(none, "hc_", rows); });
#ifdef BRAID_HAS_JSON
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "braid_mhc_throws_test";
  throws<UnreadableFile>("mhc::load_connection", [&] { load_connection(file / "gone", "hc_", released); });
  std::ofstream(file) << "text";
  throws<FileError>("mhc::load_connection", [&] { load_connection(file, "hc_", released); });
  std::filesystem::remove(file);
#endif
}

}  // namespace
}  // namespace braid::mhc::throws_test
