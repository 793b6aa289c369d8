#include <braid/braid.h>
#if __has_include(<braid/dist/mpi/communicator.h>)
#include <braid/dist/mpi/communicator.h>
#endif

#include <string>
#include <utility>
#include <vector>

// Instantiates the library's templates as a program does, compiled with more warnings than braid's own build has, which
// a consumer may have made errors. It is never run.

using namespace braid;

template <class Connection>
struct Model {
  nn::Sequential<nn::Linear, nn::GroupNorm> in;
  std::vector<nn::TransformerBlock<Connection>> blocks;
  nn::LayerNorm norm;

  Var operator()(const Var& x) const {
    auto stream = blocks.front().attention.connection.open(in(x));
    for (const auto& block : blocks) stream = block(stream);
    return norm(blocks.back().mlp.connection.close(stream));
  }
  void params(auto&& visit) {
    visit("in", in);
    visit("blocks", blocks);
    visit("norm", norm);
  }
};

class Descent : public nn::Optimizer {
 public:
  explicit Descent(double lr) : Optimizer("Descent", lr, {}) {}

 private:
  void apply(const std::vector<Update>& updates, double grad_scale) override {
    for (const Update& u : updates) *u.value = *u.value - lr() * grad_scale * u.grad;
  }
};

Var own_op(const Var& a, const Var& b) {
  const auto vjp = [a = a.value()](const Tensor& dy, const Needs& needs) {
    return std::vector{needs[0] ? map(
                                      "own", [](auto up, auto x) { return 2 * up * x; }, dy, a)
                                : Tensor(),
                       dy};
  };
  const auto rule = [](const Applied& op) { return std::vector{2 * op.dy() * op.x(), op.dy()}; };
  return record("own", a.value() * a.value() + b.value(), {a, b}, vjp, rule);
}

template <Parametric M>
void train(M model, const Tensor& x) {
  const auto loss_of = [](const M& m, const Tensor& inputs) {
    return mse_loss(checkpoint([](const M& layers, const Var& h) { return layers(h); }, m, inputs), inputs);
  };
  auto [loss, grads] = value_and_grad(loss_of)(model, x);
  nn::TreeSum<M> sum(2);
  sum.add(0, grads);
  auto mean = nn::accumulate(2, [&](std::int64_t) { return value_and_grad(loss_of)(model, x); });
  const auto [norm, factor] = nn::clipping(mean.second, loss);
  nn::clip_grad_norm(grads, norm);
  nn::AdamW adam({.lr = 0.1});
  nn::SGD sgd({.momentum = 0.9});
  adam.step(model, grads, factor);
  sgd.step(model, grads);
  Descent(0.1).step(model, grads);
  adam.load_state(model, adam.state());
  mhc::project(model);

  dist::Communicator alone;
  dist::accumulate(alone, 2, model, [&](const M& m, std::int64_t) { return loss_of(m, x); });
  nn::Subset some = nn::subset(model, [](std::string_view path) { return path.starts_with("norm"); });
  model = nn::with(std::move(model), some);
  nn::save_module("model.safetensors", model);
  nn::load_module("model.safetensors", model);
  nn::EventFile("events.out.tfevents.braid").append(num_params(model), {{"loss", loss}});
}

template <Parametric M>
void verify(const M& model, const Tensor& x) {
  const auto loss_of = [&](const M& m) { return sum(m(x)); };
  const M exact = nn::to_dtype(model, DType::f64);
  gradcheck([](auto inputs) { return own_op(inputs[0], inputs[1]); }, {x, x}, {.order = 2});
  gradcheck_module(exact, loss_of);
  nn::precision_report(model, loss_of);
  hvp(loss_of, exact, exact);
  jvp(loss_of, exact, exact);
  hessian([](const Var& v) { return sum(v * v); }, x);
  jacobian([](const Var& v) { return tanh(v); }, x);
  grad(grad([](const Var& v) { return sum(v * v * v); }))(x);
  vjp(own_op, x, x, x);
  nn::verify(nn::load_case("case.safetensors"), exact, [](const M& m, const nn::CaseInputs& in) { return m(in["x"]); });
  nn::summary(model);
  std::string names;
  for_each_param(model, [&](const std::string& path, const Var&) { names += path; });
}

void language_model(const std::string& folder, Rng& rng) {
  auto model = nn::load_pretrained(folder, [&](const nn::TransformerConfig& config, int i) {
    return mhc::Connection({.kind = mhc::ConnectionKind::mhc}, config.channels, i, rng);
  });
  nn::KVCache cache = model.make_cache(1);
  const Tensor tokens = randint(0, 4, {1, 4}, rng);
  model.next_logits(tokens, cache);
  model.loss(tokens, tokens);
  nn::save_pretrained(model, folder);
  auto stack = mhc::wrap_layers(std::vector{nn::MLP(8, 16, rng)});
  stack(mhc::rewire(nn::MLP(8, 16, rng), 8, rng)(ones({2, 8})));
  mhc::rewire(nn::MLP(8, 16, rng), mhc::HyperConnection(8, 4, 0))(ones({2, 8}));
}

using OnMHC = Model<mhc::ManifoldConstrainedHC>;
using OnAny = Model<mhc::Connection>;
template void train(Model<nn::Residual>, const Tensor&);
template void train(OnMHC, const Tensor&);
template void train(OnAny, const Tensor&);
template void verify(const Model<nn::Residual>&, const Tensor&);
template void verify(const OnMHC&, const Tensor&);
