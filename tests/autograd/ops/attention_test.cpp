#include <braid/autograd/ops/attention.h>

#include <braid/autograd/ops.h>
#include <braid/core/batch_invariant.h>
#include <braid/core/parallel.h>
#include <tests/autograd/ops/support.h>
#include <tests/target_guard.h>

#include <cmath>
#include <limits>

namespace braid::op_tests::attention_test {
namespace {

using ::testing::ThrowsMessage;

constexpr std::uint64_t kSeed = 11;

/// Sizes of q [B, T_q, H, D] and of k and v [B, T_k, H_kv, D].
struct Sizes {
  std::int64_t batch = 1, queries = 1, keys = 1, heads = 1, key_heads = 1, depth = 1;

  Shape q() const { return {batch, queries, heads, depth}; }
  Shape k() const { return {batch, keys, key_heads, depth}; }
  Shape scores() const { return {batch, heads, queries, keys}; }
  std::vector<Tensor> inputs(DType dtype = DType::f64) const {
    return {normal(q(), 1, dtype), normal(k(), 2, dtype), normal(k(), 3, dtype)};
  }
};

/// 1 where a query sees a key, by its position, the window and the mask, of which nothing but -infinity and, in i32, 0
/// hides. [B, H, T_q, T_k]
Tensor seen(const Sizes& n, const AttentionOptions& o) {
  const Tensor mask = o.mask.defined() ? o.mask.to(DType::f64).broadcast_to(n.scores()).clone() : Tensor();
  const double hides = o.mask.defined() && o.mask.dtype() == DType::i32 ? 0 : -kInfinity;
  Tensor all(n.scores(), DType::i32);
  auto* sees = all.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    const std::int64_t query = i / n.keys % n.queries, key = i % n.keys;
    const std::int64_t ahead = key - (query + n.keys - n.queries);  // of the query's own position
    const bool hidden = mask.defined() && mask.data<double>()[i] == hides;
    sees[i] = (!o.causal || ahead <= 0) && (o.window == 0 || ahead > -o.window) && !hidden;
  }
  return all;
}

/// The op; its dropout is the same in every call.
Var seeded(std::span<const Var> x, AttentionOptions o) {
  Rng rng(kSeed);
  o.rng = &rng;
  return attention(x[0], x[1], x[2], o);
}

/// Zeros and ones, every third zero.
Tensor some(const Shape& shape) {
  return map(
             "some", [](auto u) { return u < decltype(u)(0.33) ? decltype(u){0} : decltype(u){1}; }, Tensor([&] {
               Rng rng(5);
               return rand(shape, rng);
             }()))
      .to(DType::i32);
}

/// Numbers, some of them -infinity.
Tensor bias(const Shape& shape, DType dtype) {
  return map(
      "bias", [](auto u) { return u > decltype(u)(1.5) ? -std::numeric_limits<decltype(u)>::infinity() : u; },
      normal(shape, 6, dtype));
}

/// Options of every kind, alone and together.
std::vector<AttentionOptions> all_options(const Sizes& n, DType dtype) {
  const auto [b, tq, tk, h, hk, d] = n;
  return {{},
          {.causal = false},
          {.window = 1},
          {.window = 7, .scale = 0.1},
          {.window = 40},
          {.window = 500},
          {.causal = false, .mask = some({tq, tk})},
          {.mask = some({b, 1, 1, tk})},
          {.window = 7, .mask = bias({h, 1, tk}, dtype)},
          {.causal = false, .mask = bias({tq, 1}, dtype)},
          {.causal = false, .mask = some({b, h, tq, 1})},
          {.mask = bias({b, 1, tq, tk}, dtype), .dropout = 0.3},
          {.causal = false, .mask = full(Shape{}, 2, dtype)},
          {.causal = false, .mask = zeros({1}, DType::i32)},
          {.causal = false, .dropout = 0.5},
          {.softcap = 0.5},
          {.sinks = normal({h}, 7, dtype)},
          {.causal = false, .alibi = normal({h}, 9, dtype)},
          {.softcap = 4, .alibi = normal({h}, 9, dtype)},
          {.window = 7, .mask = bias({tq, 1}, dtype), .softcap = 2, .sinks = normal({h}, 8, dtype), .dropout = 0.2},
          {.window = 9, .scale = -0.05, .mask = some({b, h, tq, tk}), .dropout = 0.1}};
}

// Scores of 0 give equal weights to all keys that are seen.
TEST(Attention, SeesTheKeysThatItsOptionsName) {
  const Sizes n{2, 5, 7, 4, 2, 7};
  const Tensor v = eye(7, DType::f64).expand_dims(1).broadcast_to(n.k());
  for (const AttentionOptions& o : all_options(n, DType::f64)) {
    if (o.dropout > 0 || o.sinks.value().defined() || o.alibi.defined() ||
        (o.mask.defined() && o.mask.dtype() != DType::i32))
      continue;
    const Var visible = cast(seen(n, o), DType::f64);
    const Var weights = visible / maximum(sum(visible, {-1}, true), ones({}, DType::f64));
    const Tensor y = attention(zeros(n.q(), DType::f64), zeros(n.k(), DType::f64), v, o);
    expect_close(y, permute(weights, {0, 2, 1, 3}).value(), 1e-15);
  }
}

// Lengths around the blocks of 64 rows and their tiles.
TEST(Attention, IsItsComposedFormForAllOptionsAtAllLengths) {
  for (const std::int64_t queries : {0, 1, 63, 65, 130})
    for (const std::int64_t keys : {0, 1, 63, 65, 130})
      for (const std::int64_t key_heads : {1, 2, 4}) {
        const Sizes n{1, queries, keys, 4, key_heads, 3};
        const auto options = all_options(n, DType::f64);
        for (std::size_t i = 0; i < options.size(); ++i) {
          SCOPED_TRACE(::testing::Message()
                       << queries << " queries, " << keys << " keys, " << key_heads << " heads, option " << i);
          expect_composed_form([&](auto x) { return seeded(x, options[i]); }, n.inputs(DType::f64), 1e-12);
        }
      }
}

// Depths around vectors, in f32 as well.
TEST(Attention, IsItsComposedFormForAllDepths) {
  for (const std::int64_t depth : {1, 5, 16, 20, 32, 64, 128, 256, 300}) {
    const Sizes n{2, 70, 75, 2, 1, depth};
    const auto options = all_options(n, DType::f32);
    for (std::size_t i = 0; i < options.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << "depth " << depth << ", option " << i);
      expect_composed_form([&](auto x) { return seeded(x, options[i]); }, n.inputs(DType::f32), 5e-6);
      if (const AttentionOptions& o = options[i]; !o.mask.defined() && !o.sinks.value().defined() && !o.alibi.defined())
        expect_composed_form([&](auto x) { return seeded(x, options[i]); }, n.inputs(DType::f64), 1e-12);
    }
  }
}

// Queries, keys and dy that fill vectors and tiles are read where they lie, but for more than 2,048 queries.
TEST(Attention, IsItsComposedFormWhereRowsFillTiles) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    for (const Sizes& n : {Sizes{1, 64, 128, 2, 2, 16}, Sizes{2, 136, 136, 3, 3, 32}, Sizes{1, 2056, 136, 2, 2, 16}})
      for (const AttentionOptions& o :
           {AttentionOptions{}, {.window = 9}, {.mask = bias({n.queries, 1}, DType::f64), .dropout = 0.3}}) {
        SCOPED_TRACE(::testing::Message()
                     << hwy::TargetName(target) << ", depth " << n.depth << ", window " << o.window);
        expect_composed_form([&](auto x) { return seeded(x, o); }, n.inputs(DType::f64), 1e-12);
        if (!o.mask.defined()) expect_composed_form([&](auto x) { return seeded(x, o); }, n.inputs(DType::f32), 5e-6);
      }
  }
}

// A task has all queries of one of 16 heads and packs its keys and values once; one row is left over.
TEST(Attention, IsItsComposedFormWhereBlocksShareKeys) {
  for (const auto& [dtype, tolerance] : {std::pair(DType::f64, 1e-12), {DType::f32, 5e-6}, {DType::bf16, 0.03}}) {
    const auto op = [to = dtype](auto x) {
      return cast(attention(cast(x[0], to), cast(x[1], to), cast(x[2], to)), DType::f64);
    };
    expect_composed_form(op, Sizes{16, 65, 65, 1, 1, 16}.inputs(), tolerance);
  }
}

// Where the processor multiplies tiles of bf16, these do: lengths around their groups of 32 and blocks of 64, depths
// around theirs of 32 elements, heads that share keys, windows whose last block of rows is cut off. In a BatchInvariant
// scope products are those of floats.
TEST(Attention, InBF16IsItsComposedForm) {
  const auto op = [](auto x, const AttentionOptions& o) {
    return cast(seeded(std::array{cast(x[0], DType::bf16), cast(x[1], DType::bf16), cast(x[2], DType::bf16)}, o),
                DType::f64);
  };
  for (const Sizes& n : {Sizes{1, 5, 7, 4, 2, 33}, Sizes{2, 31, 33, 2, 2, 47}, Sizes{1, 65, 70, 4, 1, 32},
                         Sizes{1, 100, 163, 3, 3, 40}, Sizes{2, 130, 130, 2, 1, 96}, Sizes{1, 1, 97, 2, 2, 64}}) {
    const auto options = all_options(n, DType::bf16);
    for (std::size_t i = 0; i < options.size(); ++i)
      for (const bool tiles : {true, false}) {
        SCOPED_TRACE(::testing::Message()
                     << n.queries << " queries, " << n.keys << " keys, option " << i << ", " << tiles);
        const std::optional<BatchInvariant> floats = tiles ? std::nullopt : std::make_optional<BatchInvariant>();
        expect_composed_form([&](auto x) { return op(x, options[i]); }, n.inputs(), 0.03);
      }
  }
}

/// The root mean square of the elements of a tensor.
double size_of(const Tensor& t) {
  double sum = 0;
  for (const double x : t.to_vector<double>()) sum += x * x;
  return std::sqrt(sum / static_cast<double>(t.numel()));
}

// Rounding weights to bf16 adds less than half to the errors that rounding the results leaves, up to scores of about
// 5e4. (With scores of about 1, PyTorch's errors are 0.0020 of y, 0.0026 of dq, 0.0036 of dk, 0.0034 of dv.)
TEST(Attention, InBF16IsAsExactAsBF16Allows) {
  const Sizes n{1, 256, 256, 6, 6, 64};
  for (const double size : {1, 10, 100, 1250}) {
    std::vector<Tensor> x = n.inputs(DType::f32);
    for (const std::size_t i : {0, 1}) x[i] = (std::sqrt(size) * Var(x[i])).value();
    for (Tensor& t : x) t = t.to(DType::bf16).to(DType::f64);
    const Tensor dy = normal(n.q(), 4, DType::bf16).to(DType::f64);
    const auto results = [&](DType dtype) {
      const auto op = [&](auto v) {
        return cast(attention(cast(v[0], dtype), cast(v[1], dtype), cast(v[2], dtype)), DType::f64);
      };
      std::vector<Tensor> all = gradients(op, x, dy);
      all.insert(all.begin(), op(x).value());
      return all;
    };
    const std::vector<Tensor> exact = results(DType::f64), got = results(DType::bf16);
    const BatchInvariant multiplies_floats;
    const std::vector<Tensor> floats = results(DType::bf16);
    for (std::size_t i = 0; i < 4; ++i) {
      const double error = size_of((Var(got[i]) - exact[i]).value()),
                   least = size_of((Var(floats[i]) - exact[i]).value());
      EXPECT_LT(error, 1.5 * least) << size << ", result " << i;
      EXPECT_LT(error, (size > 1 ? 0.02 : 0.003) * size_of(exact[i])) << size << ", result " << i;
    }
  }
}

TEST(Attention, GradientsPassGradcheck) {
  for (const Sizes& n : {Sizes{1, 5, 7, 4, 2, 3}, Sizes{2, 7, 4, 2, 2, 5}, Sizes{1, 66, 66, 1, 1, 2}})
    for (const AttentionOptions& o : all_options(n, DType::f64))
      expect_gradients([&](auto x) { return seeded(x, o); }, n.inputs());
}

/// The result for queries [begin, end), which are the last of that many, and the keys up to there.
Tensor result_of(const std::vector<Tensor>& x, std::int64_t begin, std::int64_t end, const AttentionOptions& o) {
  AttentionOptions own = o;
  if (o.mask.defined()) own.mask = o.mask.slice(-2, begin, end).slice(-1, 0, end);
  return attention(x[0].slice(1, begin, end), x[1].slice(1, 0, end), x[2].slice(1, 0, end), own);
}

TEST(Attention, GivesAQueryTheSameBitsWhateverOthersThereAre) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const std::int64_t key_heads : {1, 2, 4})
        for (const std::int64_t depth : {20, 32})
          for (const AttentionOptions& o :
               {AttentionOptions{},
                {.window = 70},
                {.mask = bias({1, 4, 200, 200}, dtype)},
                {.softcap = 3, .sinks = normal({4}, 8, dtype), .alibi = normal({4}, 9, dtype)}}) {
            const auto x = Sizes{2, 200, 200, 4, key_heads, depth}.inputs(dtype);
            const Tensor all = result_of(x, 0, 200, o);
            for (const auto& [begin, end] :
                 {std::pair{0, 1}, {1, 3}, {63, 64}, {64, 65}, {60, 67}, {130, 131}, {99, 199}, {199, 200}})
              ASSERT_TRUE(identical(result_of(x, begin, end, o), all.slice(1, begin, end)))
                  << hwy::TargetName(target) << ", " << key_heads << " heads, window " << o.window << ", queries "
                  << begin << " to " << end;
          }
  }
}

TEST(Attention, GivesAQueryTheSameBitsWhateverKeysAreHidden) {
  const Sizes n{1, 3, 150, 2, 1, 16};
  const auto x = n.inputs(DType::f32);
  Tensor mask = zeros({150}, DType::i32);
  std::fill_n(mask.mutable_data<std::int32_t>(), 81, 1);
  const Tensor masked = attention(x[0], x[1], x[2], {.causal = false, .mask = mask});
  EXPECT_TRUE(identical(masked, attention(x[0], x[1].slice(1, 0, 81), x[2].slice(1, 0, 81), {.causal = false})));
}

TEST(Attention, LooksAtThePastOnly) {
  auto x = Sizes{1, 100, 100, 2, 2, 8}.inputs(DType::f32);
  const Tensor before = attention(x[0], x[1], x[2]);
  for (const std::size_t input : {1, 2}) {
    Tensor changed = x[input].clone();
    std::fill_n(changed.mutable_data<float>() + 70 * 16, 30 * 16, 1e6f);
    x[input] = changed;
  }
  const Tensor after = attention(x[0], x[1], x[2]);
  EXPECT_TRUE(identical(before.slice(1, 0, 70), after.slice(1, 0, 70)));
  EXPECT_FALSE(identical(before.slice(1, 70, 71), after.slice(1, 70, 71)));
}

TEST(Attention, GivesZerosAndNoGradientWhereNothingIsSeen) {
  const Sizes n{1, 5, 3, 2, 2, 4};  // the first two queries come before all keys
  const auto x = n.inputs();
  const auto op = [](auto v) { return attention(v[0], v[1], v[2]); };
  const Tensor y = attention(x[0], x[1], x[2]).value();
  EXPECT_TRUE(identical(y.slice(1, 0, 2).clone(), zeros({1, 2, 2, 4}, DType::f64)));
  const Tensor dq = gradients(op, x, normal(n.q(), 4))[0];
  EXPECT_TRUE(identical(dq.slice(1, 0, 2).clone(), zeros({1, 2, 2, 4}, DType::f64)));
  Tensor dy = zeros(n.q(), DType::f64);
  std::fill_n(dy.mutable_data<double>(), 2 * 8, 1.0);
  for (const Tensor& grad : gradients(op, x, dy)) EXPECT_TRUE(identical(grad, zeros(grad.shape(), DType::f64)));
}

TEST(Attention, SurvivesLargeScores) {
  const Tensor q = full({1, 3, 1, 4}, 1000), v = normal({1, 3, 1, 4}, 1, DType::f32);
  const auto op = [](auto x) { return attention(x[0], x[1], x[2]); };
  expect_close(attention(q, q, v).value().slice(1, 1, 2), v.slice(1, 0, 1).clone(), 10);
  for (const Tensor& grad : gradients(op, {q, q, v}, v))
    for (const double g : grad.to_vector<double>()) EXPECT_TRUE(std::isfinite(g));
}

// The only key of a query has a weight of 1, however large its score: the vjp has to compute the same score.
TEST(Attention, HasTheGradientOfALargeScore) {
  for (const std::int64_t depth : {16, 32, 96})
    for (const double size : {1e2, 1e3, 3e4}) {
      const Sizes n{1, 8, 8, 2, 2, depth};
      const auto x = n.inputs(DType::f32);
      const Tensor large = full(Shape{}, size, DType::f32), dy = normal(n.q(), 4, DType::f32);
      const auto grads = gradients([](auto v) { return attention(v[0], v[1], v[2], {.window = 1}); },
                                   {(large * x[0]).value(), (large * x[1]).value(), x[2]}, dy);
      EXPECT_TRUE(identical(grads[2], dy)) << depth << ", " << size;
    }
}

TEST(Attention, PropagatesNaN) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (std::size_t input = 0; input < 3; ++input) {
      auto x = Sizes{1, 110, 110, 1, 1, 8}.inputs(DType::f32);
      x[input].mutable_data<float>()[100 * 8] = static_cast<float>(kNaN);
      for (Tensor& t : x) t = t.to(dtype);
      EXPECT_TRUE(std::isnan(attention(x[0], x[1], x[2]).value().at({0, 100, 0, 0})));
      for (const std::int64_t before : {60, 80})  // in another block, and in the same
        EXPECT_FALSE(std::isnan(attention(x[0], x[1], x[2]).value().at({0, before, 0, 0})));
    }
  Tensor dy = normal({1, 110, 1, 8});
  dy.mutable_data<double>()[100 * 8] = kNaN;
  const auto own = [](auto x) { return attention(x[0], x[1], x[2], {.window = 1}); };
  EXPECT_FALSE(std::isnan(gradients(own, Sizes{1, 110, 110, 1, 1, 8}.inputs(), dy)[2].at({0, 60, 0, 0})));
}

TEST(Attention, TakesZeroSizes) {
  for (const Sizes& n : {Sizes{0, 3, 3, 2, 2, 4}, Sizes{2, 0, 3, 2, 2, 4}, Sizes{2, 3, 0, 2, 2, 4},
                         Sizes{2, 3, 3, 0, 0, 4}, Sizes{2, 3, 3, 0, 2, 4}, Sizes{2, 3, 3, 2, 2, 0}}) {
    const auto grads = gradients([](auto x) { return attention(x[0], x[1], x[2]); }, n.inputs(), normal(n.q(), 4));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical(grads[i], zeros(i == 0 ? n.q() : n.k(), DType::f64)));
  }
}

TEST(Attention, TakesADrawForDropoutOnly) {
  const auto x = Sizes{1, 3, 3, 1, 1, 4}.inputs();
  Rng rng(3);
  attention(x[0], x[1], x[2], {.rng = &rng});
  EXPECT_EQ(rng.draws(), 0U);
  const Tensor first = attention(x[0], x[1], x[2], {.dropout = 0.5, .rng = &rng});
  EXPECT_EQ(rng.draws(), 1U);
  EXPECT_FALSE(identical(first, attention(x[0], x[1], x[2], {.dropout = 0.5, .rng = &rng})));
}

TEST(Attention, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const Sizes& n : {Sizes{2, 200, 200, 2, 2, 16}, Sizes{1, 130, 300, 6, 2, 8}, Sizes{1, 1, 500, 4, 2, 64}})
    for (const DType dtype : {DType::f32, DType::bf16})
      expect_same_bits_on_any_threads([](auto x) { return seeded(x, {.dropout = 0.2}); }, n.inputs(dtype));
}

template <class E>
void expect_error(const Sizes& n, const AttentionOptions& o, const std::string& text) {
  const auto x = n.inputs();
  EXPECT_THAT([&] { attention(x[0], x[1], x[2], o); }, ThrowsMessage<E>(text));
}

TEST(Attention, RejectsShapesThatDoNotFit) {
  const Tensor q = normal({2, 3, 6, 4});
  const auto rejects = [](const Tensor& q, const Tensor& k, const Tensor& v, const char* text) {
    EXPECT_THAT([&] { attention(q, k, v); }, ThrowsMessage<ShapeError>(text));
  };
  rejects(normal({3, 2, 4}), q, q, "attention: q must have shape [B, T_q, H, D] but has [3, 2, 4]");
  rejects(q, normal({2, 3, 6, 5}), q,
          "attention: k must have shape [2, T_k, H_kv, 4] to match q [2, 3, 6, 4] but has [2, 3, 6, 5]");
  rejects(q, normal({1, 3, 6, 4}), normal({1, 3, 6, 4}),
          "attention: k must have shape [2, T_k, H_kv, 4] to match q [2, 3, 6, 4] but has [1, 3, 6, 4]");
  rejects(q, normal({2, 3, 4, 4}), q, "attention: the 4 heads of k [2, 3, 4, 4] must divide the 6 of q [2, 3, 6, 4]");
  rejects(q, normal({2, 5, 2, 4}), q, "attention: v must have shape [2, 5, 2, 4] to match k but has [2, 3, 6, 4]");
  const Tensor none = zeros({1, 0, 1, 1}, DType::i32);
  EXPECT_THAT([&] { attention(none, none, none); },
              ThrowsMessage<DTypeError>("attention: expected a floating-point tensor but has dtype i32"));
}

TEST(Attention, RejectsHigherOrderThatAScopeKeepsFromItsComposedForm) {
  const auto f = [](auto x) {
    const Composed fused{Composed::State{}};
    return attention(x[0], x[0], x[0], {.softcap = 2});
  };
  EXPECT_THAT(
      [&] {
        gradcheck(f, {normal({1, 3, 1, 2})}, {.by = GradcheckOptions::By::rules});
      },
      ThrowsMessage<Error>("attention: with dropout, a softcap or alibi, only its composed form has derivatives "
                           "of higher order"));
}

TEST(Attention, RejectsOptionsOutsideTheirRanges) {
  const Sizes n{2, 3, 5, 2, 2, 4};
  expect_error<ValueError>(n, {.window = -1}, "attention: window must not be negative but is -1");
  expect_error<ValueError>(n, {.causal = false, .window = 2},
                           "attention: window 2 needs causal; write another as a mask");
  expect_error<ValueError>(n, {.scale = kInfinity}, "attention: scale must be finite but is inf");
  for (const double softcap : {-1.0, kInfinity, kNaN})
    expect_error<ValueError>(n, {.softcap = softcap},
                             fmt::format("attention: softcap must be finite and not negative but is {}", softcap));
  expect_error<ShapeError>(n, {.sinks = zeros({3}, DType::f64)},
                           "attention: sinks must have shape [2], one per head, but have [3]");
  expect_error<DTypeError>(n, {.sinks = zeros({2})}, "attention: sinks must have dtype f64, that of q, but have f32");
  expect_error<ShapeError>(n, {.alibi = zeros({1}, DType::f64)},
                           "attention: alibi must have shape [2], one per head, but have [1]");
  for (const double dropout : {1.0, -0.5})
    expect_error<ValueError>(n, {.dropout = dropout},
                             fmt::format("attention: dropout must lie in [0, 1) but is {}", dropout));
  expect_error<ValueError>(n, {.dropout = 0.5}, "attention: dropout 0.5 needs rng");
  expect_error<DTypeError>(n, {.mask = ones({3, 5})},
                           "attention: mask must have dtype i32 or f64, that of q, but has f32");
  expect_error<ShapeError>(n, {.mask = ones({2, 2, 3, 4}, DType::i32)},
                           "attention: mask must broadcast to [2, 2, 3, 5] but has shape [2, 2, 3, 4]");
  expect_error<ShapeError>(n, {.mask = ones({1, 2, 2, 3, 5}, DType::i32)},
                           "attention: mask must broadcast to [2, 2, 3, 5] but has shape [1, 2, 2, 3, 5]");
}

}  // namespace
}  // namespace braid::op_tests::attention_test
