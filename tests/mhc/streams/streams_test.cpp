#include <braid/mhc/streams/streams.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connection.h>
#include <braid/mhc/streams/stream_connection.h>
#include <braid/nn/transformer.h>
#include <tests/mhc/support.h>

namespace braid::mhc::streams_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// The parameters of one manifold-constrained hyper-connection for n streams of C channels, of order one.
struct Constrained {
  Var phi, alpha, bias;
  Mixing mixing;

  Constrained(std::int64_t n, std::int64_t channels, Rng& rng)
      : phi(random({n * channels, n * (n + 2)}, rng, 0.3)),
        alpha(random({3}, rng)),
        bias(random({n * (n + 2)}, rng)),
        mixing("sinkhorn", n, {.iterations = 5}) {}

  MHCMaps maps() const { return {.phi = phi, .alpha = alpha, .bias = bias, .mixing = mixing, .eps = 1e-6}; }
  void params(auto&& visit) {
    visit("phi", phi);
    visit("alpha", alpha);
    visit("bias", bias);
  }
};

TEST(Streams, RefuseStepsOutOfOrderAndShapesThatDoNotFit) {
  Rng rng(9);
  const Constrained c(4, 3, rng);
  const Tensor start = random({2, 4, 3}, rng);
  Streams x(start);
  EXPECT_THAT([&] { x.write(start.select(1, 0)); }, ThrowsMessage<Error>(HasSubstr("write() must follow read()")));
  const Var u = x.read(c.maps());
  EXPECT_THROW(x.read(c.maps()), Error);
  EXPECT_THAT([&] { x.value(); }, ThrowsMessage<Error>(HasSubstr("read() must be followed by write()")));
  EXPECT_THAT([&] { x.write(start); },
              ThrowsMessage<ShapeError>(HasSubstr("f must have shape [2, 3] to match x [2, 4, 3] but has")));
  EXPECT_THROW(x.write(start.select(1, 0).to(DType::f32)), DTypeError);
  x.write(u);
  EXPECT_THROW(x.write(u), Error);
  EXPECT_EQ(x.value().shape(), start.shape());
  EXPECT_THROW(
      Streams(start).read(MHCMaps{.phi = c.alpha, .alpha = c.alpha, .bias = c.bias, .mixing = c.mixing, .eps = 1e-6}),
      ShapeError);
  EXPECT_THROW(Streams(start.to(DType::f32)).read(c.maps()), DTypeError);
  EXPECT_THROW(Streams(zeros({3})), ShapeError);
  EXPECT_THROW(Streams(start, 0), ValueError);
}

Var layer(const Var& u) { return tanh(u); }

/// Reads and writes by kinds of maps in turn, so that every kind of read follows every pending write.
Var through_all_kinds(std::span<const Var> v) {
  const std::int64_t n = v[0].size(-2), channels = v[0].size(-1);
  Rng rng(3);
  HyperConnection hyper(channels, n, 0, {.dtype = DType::f64});
  ManifoldConstrainedHC constrained(channels, n, rng, {.dtype = DType::f64});
  MHCLayer fixed(n, channels, {.init = MHCLayerInit::residual, .dtype = DType::f64});
  const auto move = [&](auto& module) {
    for_each_param(module, [&](const std::string&, Var& p) { p = p + 0.1 * Var(random(p.shape(), rng)); });
  };
  move(hyper);
  move(constrained);
  move(fixed);
  constrained.phi = v[1];
  hyper.b_post = v[2];
  fixed.h_post_raw = v[3];
  Streams x(v[0]);
  x = constrained(constrained(x, layer), layer);
  x = constrained(hyper(x, layer), layer);
  x = constrained(fixed(x, layer), layer);
  x = fixed(hyper(x, layer), layer);
  return hyper(x, layer).value();
}

TEST(Streams, PassFromAnyConnectionToAnyOther) {
  Rng rng(4);
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{4, 3}, Shape{2, 2, 3, 4}, Shape{0, 4, 2}}) {
    const std::int64_t n = shape[-2], width = n * shape[-1];
    const std::vector<Tensor> inputs{random(shape, rng, 0.2), random({width, n * (n + 2)}, rng, 0.3),
                                     random({n}, rng, 0.3), random({n}, rng, 0.3)};
    const std::vector<Var> v(inputs.begin(), inputs.end());
    const Tensor fused = through_all_kinds(v).value();
    const auto in_composed_form = [&] {
      const Form form(true);
      return through_all_kinds(v).value();
    };
    const Tensor composed = in_composed_form();
    const double size = largest_difference(composed, zeros(shape, DType::f64));
    EXPECT_LE(largest_difference(fused, composed), 1e-12 * size);
    const GradcheckResult result = gradcheck([](auto in) { return through_all_kinds(in); }, inputs);
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(Streams, AreValuesWhoseCopiesAreIndependent) {
  Rng rng(5);
  const Constrained c(3, 4, rng);
  const auto f = [&](std::span<const Var> v) {
    Streams x(v[0]);
    const Var u = x.read(c.maps());
    Streams other = x;
    x.write(layer(u));
    other.write(u * u);
    const Var between = x.value();  // looked at, and gone on from
    const Var next = x.read(c.maps());
    x.write(next);
    return x.value() * between + other.value();
  };
  const GradcheckResult result = gradcheck(f, {random({2, 3, 4}, rng)});
  EXPECT_TRUE(result.ok) << result.message;
}

/// Gradients of sum(streams^2) / 2 after `depth` sublayers, and the most memory that was alive on the way.
std::pair<std::vector<Tensor>, std::int64_t> deep_gradients(std::int64_t keep_every, const Shape& shape,
                                                            int depth = 7) {
  Rng rng(11);
  const Constrained parameters(shape[-2], shape[-1], rng);
  const Tensor start = random(shape, rng), weight = random({shape[-1]}, rng);
  reset_peak_memory();
  const std::int64_t before = memory_stats().live_bytes;
  Tape tape;
  std::vector<Var> watched{tape.watch(start), tape.watch(weight)};
  Constrained c = parameters;
  for_each_param(c, [&](const std::string&, Var& p) { watched.push_back(p = tape.watch(p.value())); });
  {
    Streams x(watched[0], keep_every);
    for (int i = 0; i < depth; ++i) {
      const Var u = x.read(c.maps());
      x.write(u * watched[1]);
    }
    const Var y = x.value();
    tape.backward(y, y.value());
  }
  std::vector<Tensor> grads;
  for (const Var& v : watched) grads.push_back(tape.gradient(v));
  return {grads, memory_stats().peak_bytes - before};
}

TEST(Streams, TakeAVectorForEachStreamInEveryType) {
  Rng rng(1);
  const Tensor start = random({2, 3, 4}, rng), each = random({3, 4}, rng);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Streams x(start.to(dtype));
    x.add(each.to(compute_dtype(dtype)));
    EXPECT_EQ(x.value().dtype(), dtype);
    const Var sum = Var(start.to(dtype).to(DType::f64)) + each;
    EXPECT_LT(largest_difference(x.value().value().to(DType::f64), sum.value()), dtype == DType::bf16 ? 2e-2 : 1e-6);
  }
  Streams x(start);
  EXPECT_THROW(x.add(each.to(DType::f32)), DTypeError);
}

TEST(Streams, AreRecomputedWithTheSameBits) {
  for (const Shape& shape : {Shape{70, 4, 3}, Shape{5, 3, 9}, Shape{2, 6, 5}, Shape{0, 4, 2}}) {
    const auto kept = deep_gradients(1, shape).first;
    for (const std::int64_t every : {2, 3, 7, 100}) {
      const auto recomputed = deep_gradients(every, shape).first;
      for (std::size_t i = 0; i < kept.size(); ++i)
        EXPECT_EQ(kept[i].to_vector<double>(), recomputed[i].to_vector<double>()) << "input " << i;
    }
  }
}

TEST(Streams, TakeLessMemoryWhenRecomputed) {
  const auto peak = [](std::int64_t keep_every) {
    return static_cast<double>(deep_gradients(keep_every, {128, 4, 128}, 24).second);
  };
  EXPECT_LT(peak(4), 0.7 * peak(1));
}

TEST(Streams, KeepEveryKthOfTwelve) {
  const auto live = [](std::int64_t keep_every) {
    Rng rng(11);
    const Constrained c(4, 128, rng);
    const std::int64_t before = memory_stats().live_bytes;
    Tape tape;
    {
      Streams x(tape.watch(random({128, 4, 128}, rng)), keep_every);
      for (int i = 0; i < 12; ++i) x.write(layer(x.read(c.maps())));
    }
    return static_cast<double>(memory_stats().live_bytes - before) / (128 * 4 * 128 * 8.0);
  };
  for (const std::int64_t every : {2, 3, 4, 6})
    EXPECT_NEAR(live(1) - live(every), static_cast<double>(12 - 12 / every), 0.1) << every;
}

TEST(Streams, ArePlannedAtTheLeastMemory) {
  // Kept: n C of a token at every k-th of L sublayers; recomputed at once: (n + 2) C at each of k.
  for (const std::int64_t n : {1, 2, 4, 8})
    for (const std::int64_t depth : {1, 7, 12, 48, 200}) {
      const auto memory = [&](std::int64_t k) {
        return static_cast<double>(n * depth) / static_cast<double>(k) + static_cast<double>((n + 2) * k);
      };
      const std::int64_t planned = keep_interval(n, depth);
      EXPECT_LE(memory(planned), 1.02 * std::min(memory(planned + 1), memory(std::max<std::int64_t>(1, planned - 1))));
    }
  EXPECT_EQ(keep_interval(4, 0), 1);
  EXPECT_THROW(keep_interval(0, 1), ValueError);
  EXPECT_THROW(keep_interval(4, -1), ValueError);
}

/// The ops that a forward pass records on a tape.
template <class Model>
std::size_t recorded(const Model& model, const Tensor& tokens) {
  Tape tape;
  Model traced = model;
  for_each_param(traced, [&](const std::string&, Var& p) { p = tape.watch(p.value()); });
  const Var logits = traced.logits(tokens);
  return tape.size();
}

TEST(Streams, TakeTheFusedBoundaryInEveryFormOfANetwork) {
  const nn::TransformerConfig sizes{.vocab = 11, .context = 8, .channels = 8, .layers = 2, .heads = 2};
  const auto model = [&]<class C>(std::type_identity<C>, std::int64_t keep_every) {
    Rng rng(1);
    return nn::Transformer<C>(sizes, rng, [&](int index) -> C {
      if constexpr (std::is_same_v<C, Connection>)
        return Connection({.kind = ConnectionKind::mhc, .phi_std = 0.02, .keep_every = keep_every}, 8, index, rng);
      else
        return C(8, 4, rng, {.phi_std = 0.02, .keep_every = keep_every});
    });
  };
  const auto any = model(std::type_identity<Connection>(), 1);
  const auto one = model(std::type_identity<ManifoldConstrainedHC>(), 1);
  Rng rng(2);
  const Tensor tokens = randint(0, 11, {2, 8}, rng), targets = randint(0, 11, {2, 8}, rng);
  EXPECT_EQ(recorded(any, tokens), recorded(one, tokens));
  EXPECT_TRUE(identical(any.logits(tokens).value(), one.logits(tokens).value()));

  const auto bits = [&](const auto& m) {
    const auto grads = value_and_grad([&](const auto& net) { return net.loss(tokens, targets); })(m).second;
    std::vector<Tensor> all;
    for_each_param(grads, [&](const std::string&, const Var& g) { all.push_back(g.value()); });
    return all;
  };
  const auto kept = bits(one), planned = bits(model(std::type_identity<ManifoldConstrainedHC>(), 3));
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(identical(kept[i], planned[i]));

  // The three lines, with the transformer's own sublayers.
  Streams x = one.blocks.front().attention.connection.open(one.embedding(tokens) + one.positions);
  for (const auto& block : one.blocks) {
    x = block.attention.connection(x, [&](const Var& h) { return block.attention.body(block.attention.norm(h)); });
    x = block.mlp.connection(x, [&](const Var& h) { return block.mlp.body(block.mlp.norm(h)); });
  }
  const Var y = one.predict(one.blocks.back().mlp.connection.close(x));
  EXPECT_TRUE(identical(y.value(), one.logits(tokens).value()));
}

// A connection of a user's own: maps of a new type, with the function by which Streams::read() finds out how to read.
struct FirstOnly {
  Var gain;  // []
};

LayerRead read_maps(const FirstOnly& maps, StreamState& streams) {
  const Tensor first = eye(streams.settle().size(-2), DType::f64);
  return read_maps(
      StreamMaps{.h_pre = first.select(0, 0).clone(), .h_post = maps.gain * first.select(0, 0), .h_res = first},
      streams);
}

struct FirstStreamConnection : StreamConnection<FirstStreamConnection> {
  Var gain = ones({}, DType::f64);

  std::int64_t streams() const { return 3; }
  StreamReduction reduction() const { return StreamReduction::sum; }
  Var read(Streams& x) const { return x.read(FirstOnly{gain}); }
  void params(auto&& visit) { visit("gain", gain); }
};

TEST(Streams, TakeMapsOfAUsersOwnType) {
  Rng rng(6);
  const Tensor embedding = random({2, 4}, rng);
  const FirstStreamConnection connection;
  for (const bool composed : {false, true}) {
    const Form form(composed);
    const Var y = connection.close(connection(connection.open(embedding), layer));
    EXPECT_LT(largest_difference(y.value(), (3.0 * Var(embedding) + tanh(Var(embedding))).value()), 1e-15);
    const GradcheckResult result =
        gradcheck_module(connection, [&](const auto& c) { return c.close(c(c(c.open(embedding), layer), layer)); });
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(Streams, TakeMapsThatOutliveWhatTheyWereMadeOf) {
  const auto maps = [] {
    Rng rng(7);
    return Constrained(2, 3, rng).maps();
  }();
  Rng rng(8);
  EXPECT_EQ(Streams(random({5, 2, 3}, rng)).read(maps).shape(), Shape({5, 3}));
}

TEST(Streams, FinishAWriteInTheFormOfItsRead) {
  Rng rng(9);
  const Constrained c(2, 3, rng);
  const Tensor x = random({5, 2, 3}, rng);
  const auto run = [&](bool composed_read, bool composed_write) {
    Streams streams(x);
    const auto read = [&] {
      const Form form(composed_read);
      return streams.read(c.maps());
    };
    const Var u = read();
    const Form form(composed_write);
    streams.write(layer(u));
    return streams.value().value();
  };
  EXPECT_TRUE(identical(run(false, true), run(false, false)));
  EXPECT_LT(largest_difference(run(true, false), run(false, false)), 1e-12);
}

TEST(Streams, FinishTheWriteOfAComposedReadAtOnce) {
  Rng rng(10);
  const Constrained c(3, 4, rng);
  Streams streams(random({5, 3, 4}, rng));
  const auto written = [&] {
    const Form form(true);
    streams.write(layer(streams.read(c.maps())));
    return streams.value().value();
  };
  const Tensor composed = written();
  EXPECT_TRUE(identical(streams.value().value(), composed));  // a fused write has other bits
}

}  // namespace
}  // namespace braid::mhc::streams_test
