// Checksums of what ops, connections and mixings compute, forward and backward: the same under every instruction set
// with fused multiply-add, and those in checksums.txt, so that any machine checks itself against others.
// BRAID_WRITE_CHECKSUMS=FILE writes them to FILE.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/bits.h>
#include <braid/core/files/checksum.h>
#include <braid/core/instruction_set.h>
#include <braid/core/map.h>
#include <braid/core/platform/machine.h>
#include <braid/mhc/connection.h>
#include <braid/mhc/mixings/mixing.h>
#include <braid/nn/convert.h>
#include <braid/nn/transformer.h>
#include <tests/autograd/op_registry.h>
#include <tests/support.h>

namespace braid::bits_test {
namespace {

using Checksums = std::map<std::string, std::string>;
using Vars = std::span<const Var>;
using Function = std::function<Var(Vars)>;

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::bf16};

std::string_view bytes_of(const Tensor& contiguous) {
  return {reinterpret_cast<const char*>(contiguous.bytes()),
          static_cast<std::size_t>(contiguous.numel()) * size_of(contiguous.dtype())};
}

/// Of f at inputs and its gradients; nullopt for a dtype that f refuses. Not of the ops inside: compilers differ in the
/// order in which they evaluate operands.
std::optional<std::string> bytes_of_call(const Function& f, const std::vector<Tensor>& inputs) {
  std::string bytes;
  try {
    Tape tape;
    std::vector<Var> x;
    for (const Tensor& input : inputs) x.push_back(tape.watch(input));
    const Var y = f(x);
    Rng rng(7);
    bytes = bytes_of(y.value().contiguous());
    if (!y.requires_grad()) return bytes;
    tape.backward(y, rand(y.shape(), rng, DType::f64).to(y.dtype()));
    for (const Var& v : x) bytes += bytes_of(tape.gradient(v).contiguous());
  } catch (const DTypeError&) {
    return std::nullopt;
  }
  return bytes;
}

/// Every op of the registry, in its layouts and at points with ties.
void add_registry(Checksums& sums) {
  for (const DType dtype : kDTypes) {
    std::map<std::string, std::string> by_op;
    for (const OpCase& op_case : op_registry()) {
      std::vector<std::vector<Tensor>> points;
      for (const Layout layout : kLayouts) points.push_back(make_inputs(op_case, layout));
      points.push_back(make_random_inputs(op_case, 0));
      for (std::vector<Tensor>& inputs : points) {
        for (Tensor& x : inputs) x = x.to(dtype);
        by_op[op_case.op] += bytes_of_call(op_case.f, inputs).value_or("refused");
      }
    }
    for (const auto& [op, bytes] : by_op) sums[fmt::format("op {} {}", op, name(dtype))] = checksum(bytes);
  }
}

/// Numbers of all sizes that a function meets: 2^-20 to 2^4 and both signs.
Tensor spread(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  const Tensor size = randint(-20, 4, shape, rng), sign = randint(0, 2, shape, rng), x = rand(shape, rng, DType::f64);
  return map(
      "spread", [](double v, double e, double s) { return std::ldexp(0.5 + v, static_cast<int>(e)) * (2 * s - 1); }, x,
      size.to(DType::f64), sign.to(DType::f64));
}

void add(Checksums& sums, const std::string& subject, const Function& f, const std::vector<Tensor>& inputs) {
  for (const DType dtype : kDTypes) {
    std::vector<Tensor> x;
    for (const Tensor& input : inputs) x.push_back(input.to(dtype));
    sums[fmt::format("{} {}", subject, name(dtype))] = checksum(bytes_of_call(f, x).value_or("refused"));
  }
}

/// Functions of single numbers, at more of them than any vector holds.
void add_functions(Checksums& sums) {
  const std::map<std::string, Function> functions{
      {"exp", [](Vars x) { return exp(x[0]); }},          {"expm1", [](Vars x) { return expm1(x[0]); }},
      {"log", [](Vars x) { return log(abs(x[0])); }},     {"log1p", [](Vars x) { return log1p(abs(x[0])); }},
      {"tanh", [](Vars x) { return tanh(x[0]); }},        {"softplus", [](Vars x) { return softplus(x[0]); }},
      {"sigmoid", [](Vars x) { return sigmoid(x[0]); }},  {"silu", [](Vars x) { return silu(x[0]); }},
      {"gelu", [](Vars x) { return gelu(x[0]); }},        {"gelu_erf", [](Vars x) { return gelu_erf(x[0]); }},
      {"rsqrt", [](Vars x) { return rsqrt(abs(x[0])); }},
  };
  for (const auto& [subject, f] : functions) add(sums, "function " + subject, f, {spread({4099}, 1)});
}

/// Ops that sum along rows, at widths around those of vectors and blocks.
void add_rows(Checksums& sums) {
  const std::map<std::string, Function> functions{
      {"softmax", [](Vars x) { return softmax(x[0]); }},
      {"log_softmax", [](Vars x) { return log_softmax(x[0]); }},
      {"logsumexp", [](Vars x) { return logsumexp(x[0], -1); }},
      {"layer_norm", [](Vars x) { return layer_norm(x[0], x[1], x[2]); }},
      {"rms_norm", [](Vars x) { return rms_norm(x[0], x[1]); }},
      {"group_norm", [](Vars x) { return group_norm(x[0], 1); }},
      {"cross_entropy", [](Vars x) { return cross_entropy(x[0], zeros({5}, DType::i32)); }},
      {"sum", [](Vars x) { return sum(x[0], -1); }},
      {"var", [](Vars x) { return var(x[0], -1); }},
      {"norm", [](Vars x) { return norm(x[0], -1); }},
      {"cumsum", [](Vars x) { return cumsum(x[0]); }},
  };
  for (const std::int64_t width : {2, 7, 16, 33, 64, 65, 200, 1003})
    for (const auto& [subject, f] : functions)
      add(sums, fmt::format("rows {} {}", subject, width), f,
          {spread({5, width}, 2), spread({width}, 3), spread({width}, 4)});
}

void add_products(Checksums& sums) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] : {Size{1, 1, 1}, {1, 70, 900}, {7, 65, 400}, {100, 40, 500}, {64, 128, 64}})
    add(sums, fmt::format("product {}x{}x{}", m, n, k), [](Vars x) { return linear(x[0], x[1]); },
        {spread({m, k}, 5), spread({n, k}, 6)});
  struct Heads {
    std::int64_t queries, keys, heads, depth;
    AttentionOptions options;
  };
  for (const Heads& h : {Heads{37, 37, 3, 8, {}},
                         {130, 130, 2, 24, {.causal = true, .window = 50}},
                         {9, 70, 4, 33, {.causal = false}},
                         {1, 300, 2, 64, {}}})
    add(sums, fmt::format("attention {}x{}x{}x{}", h.queries, h.keys, h.heads, h.depth),
        [&](Vars x) { return attention(x[0], x[1], x[2], h.options); },
        {spread({2, h.queries, h.heads, h.depth}, 8), spread({2, h.keys, h.heads, h.depth}, 9),
         spread({2, h.keys, h.heads, h.depth}, 10)});
}

/// A step of a small transformer, whose sizes fill no vectors.
void add_connection(Checksums& sums, const std::string& subject, mhc::ConnectionConfig connection) {
  for (const DType dtype : kDTypes) {
    Rng rng(11);
    connection.sublayers = 4;
    const nn::TransformerConfig sizes{.vocab = 37,
                                      .context = 37,
                                      .channels = 72,
                                      .layers = 2,
                                      .heads = 3,
                                      .dtype = dtype == DType::bf16 ? DType::bf16 : DType::f32};
    const nn::Transformer<mhc::Connection> drawn(
        sizes, rng, [&](int index) { return mhc::Connection(connection, 72, index, rng); });
    const auto model = nn::to_dtype(drawn, compute_dtype(dtype));
    const Tensor tokens = randint(0, 37, {3, 37}, rng), targets = randint(0, 37, {3, 37}, rng);
    const auto [loss, grads] = value_and_grad([&](const auto& m) { return m.loss(tokens, targets); })(model);
    std::string bytes = fmt::format("{}", loss);
    for_each_param(grads, [&](const std::string&, const Var& grad) { bytes += bytes_of(grad.value().contiguous()); });
    sums[fmt::format("{} {}", subject, name(dtype))] = checksum(bytes);
  }
}

void add_connections(Checksums& sums) {
  for (const std::string_view kind : mhc::connection_names())
    for (const std::int64_t streams : {2, 4, 5})
      add_connection(sums, fmt::format("connection {} {}", kind, streams),
                     {.kind = mhc::connection_kind(kind),
                      .streams = kind == "manifold" ? 2 : streams,
                      .phi_std = 1,
                      .alpha = 0.5});
  for (const std::int64_t n : {2, 4})
    for (const std::string_view mixing : mhc::mixing_names(n))
      add_connection(
          sums, fmt::format("mixing {} {}", mixing, n),
          {.kind = mhc::ConnectionKind::mhc, .streams = n, .mixing = std::string(mixing), .phi_std = 1, .alpha = 0.5});
  for (const std::string_view head : mhc::stream_head_names())
    add_connection(sums, fmt::format("head {}", head),
                   {.kind = mhc::ConnectionKind::mhc, .phi_std = 1, .alpha = 0.5, .head = mhc::stream_head(head)});
}

Checksums checksums() {
  const BitsScope portable(Bits::portable);
  Checksums sums;
  add_registry(sums);
  add_functions(sums);
  add_rows(sums);
  add_products(sums);
  add_connections(sums);
  return sums;
}

Checksums stored() {
  std::ifstream file(BRAID_CHECKSUMS);
  Checksums sums;
  for (std::string line; std::getline(file, line);)
    if (const std::size_t at = line.find("  "); at != std::string::npos) sums[line.substr(at + 2)] = line.substr(0, at);
  return sums;
}

TEST(PortableBits, AreThoseOfChecksumsTxtUnderEveryInstructionSet) {
  Checksums expected = stored();
  bool has_fma = false;
  for (const InstructionSet set : instruction_sets()) {
    if (set == InstructionSet::baseline) continue;
    has_fma = true;
    const WithInstructionSet scope(set);
    const Checksums now = checksums();
    if (const char* path = std::getenv("BRAID_WRITE_CHECKSUMS"); path != nullptr && set == instruction_sets().back()) {
      std::ofstream file(path);
      for (const auto& [subject, sum] : now) file << sum << "  " << subject << "\n";
    }
    for (const auto& [subject, sum] : now) EXPECT_EQ(sum, expected[subject]) << name(set) << ": " << subject;
    EXPECT_EQ(now.size(), expected.size()) << "subjects that are gone";
  }
  if (!has_fma) GTEST_SKIP() << "no instruction set with fused multiply-add";
}

TEST(PortableBits, NeedFusedMultiplyAdd) {
  if (instruction_set() == InstructionSet::neon) GTEST_SKIP() << "every such processor has it";
  const WithInstructionSet scope(InstructionSet::baseline);
  const std::string why = instruction_sets().size() > 1 ? "BRAID_ISA or set_instruction_set() chose baseline; "
                                                        : platform::processor_name() + " has none of them; ";
  EXPECT_EQ(message_of([] { BitsScope{Bits::portable}; }),
            "Bits: portable bits need fused multiply-add, so one of avx2, avx512, amx and neon, but " + why +
                "use Bits::fast, or --bits fast");
  const BitsScope fast(Bits::fast);
  EXPECT_FALSE(BatchInvariant::active());
}

TEST(PortableBits, EndWithTheirScope) {
  if (instruction_set() == InstructionSet::baseline) GTEST_SKIP() << "no fused multiply-add";
  {
    const BitsScope portable(Bits::portable);
    EXPECT_TRUE(BatchInvariant::active());
  }
  EXPECT_FALSE(BatchInvariant::active());
  EXPECT_EQ(name(Bits::fast), "fast");
  EXPECT_EQ(name(Bits::portable), "portable");
  EXPECT_THROW(name(static_cast<Bits>(2)), ValueError);
}

}  // namespace
}  // namespace braid::bits_test
