#include <braid/mhc/streams/connection_hook.h>

#include <functional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/checkpoint.h>
#include <braid/mhc/connection.h>
#include <tests/mhc/support.h>

namespace braid::mhc::connection_hook_test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

using Change = std::function<Var(const Var&)>;
Var same(const Var& x) { return x; }

/// Replaces what is given to it: the streams, a layer's input, a layer's output.
struct Changes : ConnectionHook {
  Change streams = {}, input = same, output = same;

  LayerRead read(StreamState& x, const Read& read) override {
    if (streams) x.last.x = streams(x.settle());
    LayerRead done = read(x);
    done.u = input(done.u);
    return done;
  }
  Var write(const Var& f) override { return output(f); }
};

/// Three connections around one layer, with parameters away from their start.
struct Network {
  std::vector<Connection> connections;
  Var x;  // [2, 3, 8]

  Network(std::string_view kind, DType dtype, Rng& rng, std::int64_t keep_every = 1)
      : x(randn({2, 3, 8}, rng, DType::f64).to(dtype)) {
    const ConnectionConfig config{.kind = connection_kind(kind),
                                  .phi_std = 0.3,
                                  .alpha = 1,
                                  .sublayers = 3,
                                  .keep_every = keep_every,
                                  .dtype = compute_dtype(dtype)};
    for (int i = 0; i < 3; ++i) connections.emplace_back(config, 8, i, rng);
    for_each_param(*this,
                   [&](const std::string&, Var& p) { p = p + cast(Var(random(p.shape(), rng, 0.1)), p.dtype()); });
  }

  Var operator()() const {
    Connection::Stream stream = connections.front().open(x);
    for (const Connection& c : connections) stream = c(stream, [](const Var& h) { return tanh(h); });
    return connections.back().close(stream);
  }

  void params(auto&& visit) {
    visit("connections", connections);
    visit("x", x);
  }
};

/// The result of a network and all its gradients.
std::vector<Tensor> results(const Network& network) {
  const auto step = value_and_grad([](const Network& n) {
    const Var y = cast(n(), DType::f64);
    return sum(y * y);
  });
  std::vector<Tensor> all{network().value()};
  for_each_param(step(network).second, [&](const std::string&, const Var& grad) { all.push_back(grad.value()); });
  return all;
}

void expect_identical(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const std::string& what) {
  ASSERT_THAT(a, SizeIs(b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(identical(a[i], b[i])) << what << ", tensor " << i;
}

TEST(ConnectionHook, ChangesNoBitByItself) {
  for (const std::string_view kind : connection_names())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const bool composed : {false, true}) {
        Rng rng(1);
        const Form form(composed);
        const Network network(kind, dtype, rng, /*keep_every=*/2);
        const std::vector<Tensor> alone = results(network);
        const ConnectionHook hook;
        expect_identical(results(network), alone, fmt::format("{} {} composed {}", kind, name(dtype), composed));
      }
}

Var swap_ends(const Var& x) {
  const std::int64_t n = x.size(-2);
  std::vector<Var> streams;
  for (std::int64_t i = 0; i < n; ++i) streams.push_back(select(x, -2, i));
  std::swap(streams.front(), streams.back());
  return stack(streams, -2);
}

TEST(ConnectionHook, SwapsOfStreamsThatCancelChangeNoBit) {
  for (const std::string_view kind : {"residual", "hc", "mhc", "mhc-layer", "deepseek-v4", "gated", "single-pass"}) {
    Rng rng(2);
    const Network network(kind, DType::f32, rng);
    const Tensor alone = network().value();
    Changes hook;
    hook.streams = swap_ends;
    EXPECT_EQ(identical(network().value(), alone), kind == "residual") << kind;  // which has one stream
    hook.streams = [](const Var& x) { return swap_ends(swap_ends(x)); };
    EXPECT_TRUE(identical(network().value(), alone)) << kind;
  }
}

struct Constrained {
  Rng rng{3};
  ManifoldConstrainedHC connection{5, 4, rng, {.phi_std = 0.3, .alpha = 1, .dtype = DType::f64}};
  Tensor x = random({3, 4, 5}, rng), mask = Tensor::of<double>({4, 1}, {1, 0, 1, 1});

  Var operator()(const Var& in) const {
    return connection(in, [](const Var& u) { return tanh(u); });
  }
};

TEST(ConnectionHook, AblatesAStreamAndReplacesInputAndOutput) {
  const Constrained c;
  Changes hook;
  hook.streams = [&](const Var& x) { return x * c.mask; };
  hook.input = [](const Var& u) { return 3 * u; };
  hook.output = [](const Var& f) { return f - 1; };
  const Tensor y = c(c.x).value();
  const Var zeroed = Var(c.x) * c.mask;
  const StreamMaps maps = c.connection.maps(zeroed);
  const Var f = tanh(3 * sum(expand_dims(maps.h_pre, -1) * zeroed, {-2})) - 1;
  const Var expected = matmul(maps.h_res, zeroed) + expand_dims(maps.h_post, -1) * expand_dims(f, -2);
  EXPECT_LE(largest_difference(y, expected.value()), 1e-13);
}

TEST(ConnectionHook, ReplacesMaps) {
  struct Unmixed : ConnectionHook {
    LayerRead read(StreamState& x, const Read& read) override {
      StreamMaps maps = read(x).maps;
      maps.h_res = eye(4, DType::f64);
      return read_maps(maps, x);
    }
  };
  const Constrained c;
  for (const bool composed : {false, true}) {
    const Form form(composed);
    const Unmixed hook;
    const StreamMaps maps = c.connection.maps(c.x);
    const Var f = tanh(read_streams(maps.h_pre, c.x));
    const Var expected = Var(c.x) + expand_dims(maps.h_post, -1) * expand_dims(f, -2);
    EXPECT_LE(largest_difference(c(c.x).value(), expected.value()), 1e-13);
  }
}

TEST(ConnectionHook, PassesGradientsThroughWhatItReplaced) {
  for (const std::string_view kind : {"residual", "hc", "mhc", "gated", "single-pass"}) {
    Rng rng(4);
    const Network network(kind, DType::f64, rng, /*keep_every=*/2);
    const std::int64_t n = kind == "residual" ? 1 : 4;
    Changes hook;
    hook.streams = [mask = random({n, 1}, rng)](const Var& x) { return x * mask; };
    hook.input = [](const Var& u) { return u * u; };
    hook.output = [](const Var& f) { return 0.5 * f; };
    const GradcheckResult result = gradcheck_module(network, [](const Network& own) { return own(); });
    EXPECT_TRUE(result.ok) << kind << ": " << result.message;
  }
}

TEST(ConnectionHook, HasToBeThereWhenACheckpointRunsAgain) {
  const Constrained c;
  const auto gradient = [&](bool again) {
    Tape tape;
    const Var x = tape.watch(c.x);
    std::optional<Changes> hook(std::in_place);
    hook->output = [](const Var& f) { return 2 * f; };
    const Var y = sum(checkpoint([&](const Var& in) { return c(in); }, x));
    if (!again) hook.reset();
    tape.backward(y);
    return tape.gradient(x);
  };
  EXPECT_GT(largest_difference(gradient(true), zeros(c.x.shape(), DType::f64)), 0.1);
  EXPECT_THAT([&] { gradient(false); }, ThrowsMessage<Error>(HasSubstr("gave another result when it ran again")));
}

TEST(ConnectionHook, SeesEachConnectionOnceAndHeadsThatOnlyRead) {
  struct Count : ConnectionHook {
    int reads = 0, heads = 0, writes = 0, records = 0;
    LayerRead read(StreamState& x, const Read& read) override {
      LayerRead done = ConnectionHook::read(x, read);
      ++(done.maps.h_post.value().defined() ? reads : heads);
      return done;
    }
    Var write(const Var& f) override { return ++writes, f; }
    void record(const StreamMaps&, const Var&) override { ++records; }
  };
  Rng rng(5);
  for (const std::string_view kind : connection_names()) {
    const bool one_stream = kind == "residual" || kind == "layer-scale" || kind == "rezero";
    const bool streams =
        kind != "manifold" && kind != "skip" && kind != "attention-residual" && kind != "frac" && kind != "laurel";
    const bool reading_head = (streams && !one_stream) || kind == "frac";
    const ConnectionConfig config{.kind = connection_kind(kind), .head = StreamHead::weighted, .sublayers = 1};
    const Connection c(config, 8, 0, rng);
    const ConnectionHook outer;
    Count hook;
    c.close(c(c.open(randn({3, 8}, rng)), same));
    EXPECT_EQ(hook.records, 1) << kind;
    EXPECT_EQ(hook.reads, streams ? 1 : 0) << kind;
    EXPECT_EQ(hook.writes, streams ? 1 : 0) << kind;
    EXPECT_EQ(hook.heads, reading_head ? 1 : 0) << kind;
  }
}

TEST(ConnectionHook, RefusesAnOutputThatDoesNotFit) {
  const Constrained c;
  Changes hook;
  hook.output = [](const Var& f) { return select(f, 0, 0); };
  EXPECT_THAT([&] { c(c.x); }, ThrowsMessage<ShapeError>(HasSubstr("Streams::write: f must have shape [3, 5]")));
}

}  // namespace
}  // namespace braid::mhc::connection_hook_test
