#include "microscope.h"

#include <algorithm>
#include <map>
#include <utility>

#include <braid/autograd/ops.h>
#include <braid/mhc/streams/connection_hook.h>

namespace braid::look {
namespace {

using mhc::Connection, mhc::ConnectionKind;

const Connection& last_connection(const apps::Model& model) { return model.blocks.back().mlp.connection; }

/// A map of all tokens or of each, as f64 [T, ..] with `axes` of its own; undefined if the map is.
Tensor of_tokens(const Var& map, std::int64_t tokens, int axes) {
  if (!map.value().defined()) return {};
  Shape shape{tokens};
  for (int axis = -axes; axis < 0; ++axis) shape = shape.concat({map.size(axis)});
  const Tensor all = map.value().to(DType::f64);
  return all.rank() > axes ? all.reshape(shape) : all.broadcast_to(shape).contiguous();
}

bool has_one_stream(ConnectionKind kind) {
  return kind == ConnectionKind::residual || kind == ConnectionKind::layer_scale || kind == ConnectionKind::rezero;
}

/// What the head reads from streams x [1, T, n, C]; of a single pass by h_pre.
Var close(const apps::Model& model, const Var& x, const Var& h_pre) {
  const Connection& connection = last_connection(model);
  if (has_one_stream(connection.kind())) return connection.close(squeeze(x, -2));
  if (connection.kind() == ConnectionKind::single_pass)
    return connection.close(mhc::SinglePassStreams{mhc::Streams(x), h_pre});
  return connection.close(mhc::Streams(x));
}

/// The weights f64 [T, n] by which the head reads: what it reads from unit vectors. Undefined if it has parameters.
Tensor head_weights(const apps::Model& model, std::int64_t tokens, std::int64_t n, const Tensor& h_pre) {
  const Connection::Head& head = last_connection(model).head;
  if (!std::holds_alternative<std::monostate>(head) && !std::holds_alternative<mhc::StreamReduction>(head)) return {};
  const Tensor units = eye(n, DType::f64).broadcast_to({1, tokens, n, n}).contiguous();
  return close(model, units, h_pre.defined() ? h_pre.reshape({1, tokens, n}) : h_pre).value().reshape({tokens, n});
}

Var scaled(const Var& x, double factor) { return factor == 0 ? Var(zeros(x.shape(), x.dtype())) : x * factor; }

/// What the output of site `from` adds to the input of site `to`, [T, C] in f64.
Tensor contribution(const std::vector<Site>& sites, std::int64_t from, std::int64_t to) {
  const auto site = [&](std::int64_t i) -> const Site& { return sites[static_cast<std::size_t>(i)]; };
  Tensor weights = site(from).h_post;
  for (std::int64_t i = from + 1; i < to; ++i) weights = carried(site(i), weights);
  return (expand_dims(gain(site(to), weights), -1) * Var(site(from).f.to(DType::f64))).value();
}

/// Sees one evaluation, and changes it on the way.
class Microscope : public mhc::ConnectionHook {
 public:
  Microscope(const apps::Model& model, std::span<const Intervention> changes, const Seen* clean)
      : model_(model), changes_(changes), clean_(clean), connections_(2 * std::ssize(model.blocks)) {}

  mhc::LayerRead read(mhc::StreamState& state, const Read& read) override {
    if (site() >= connections_) return read(state);  // a head
    if (changes_streams()) state.last.x = changed_streams(state.settle());
    mhc::LayerRead done = read(state);
    const std::int64_t tokens = done.x.size(1), n = done.x.size(2);
    Tensor h_pre = of_tokens(done.maps.h_pre, tokens, 1);
    if (last_connection(model_).kind() == ConnectionKind::single_pass) {  // that map is for the next site
      if (site() == 0) next_h_pre_ = of_tokens(eye(n, DType::f64).select(0, 0), tokens, 1);
      std::swap(h_pre, next_h_pre_);
    }
    sites_.push_back({.x = done.x.value().select(0, 0),
                      .h_pre = h_pre,
                      .h_post = of_tokens(done.maps.h_post, tokens, 1),
                      .h_res = of_tokens(done.maps.h_res, tokens, 2)});
    done.u = with_changed_paths(done.u);
    sites_.back().u = done.u.value().select(0, 0);
    return done;
  }

  Var write(const Var& f) override {
    Var out = f;
    for (const Action action : {Action::scale, Action::rescue})
      for (const Intervention& change : changes_)
        if (change.target == Target::write && change.index == site() - 1 && change.action == action)
          out = action == Action::scale ? scaled(out, change.factor) : expand_dims(clean(change.index).f, 0);
    sites_.back().f = out.value().select(0, 0);
    return out;
  }

  /// The evaluation from the streams [1, T, n, C] behind the last connection on.
  Seen finish(Var x) && {
    if (changes_streams()) x = changed_streams(x);
    sites_.push_back({.x = x.value().select(0, 0), .h_pre = head_weights(model_, x.size(1), x.size(2), next_h_pre_)});
    const Var u = with_changed_paths(close(model_, x, single_pass_map(next_h_pre_, x)));
    return {std::move(sites_), model_.predict(u).value().select(0, 0)};
  }

  /// The map in the form of a single pass; undefined for others.
  static Tensor single_pass_map(const Tensor& h_pre, const Var& x) {
    return h_pre.defined() ? h_pre.to(compute_dtype(x.dtype())).reshape({1, x.size(1), x.size(2)}) : h_pre;
  }

 private:
  std::int64_t site() const { return std::ssize(sites_); }  // the next one
  const Site& clean(std::int64_t site) const { return clean_->sites[static_cast<std::size_t>(site)]; }

  bool changes_streams() const {
    return std::ranges::any_of(changes_, [&](const Intervention& change) { return change.changes_stream(site()); });
  }

  /// The streams x [1, T, n, C] before the next site.
  Var changed_streams(const Var& x) const {
    std::vector<Var> streams;
    for (std::int64_t i = 0; i < x.size(-2); ++i) streams.push_back(select(x, -2, i));
    for (const Action action : {Action::scale, Action::swap, Action::rescue})
      for (const Intervention& change : changes_) {
        if (!change.changes_stream(site()) || change.action != action) continue;
        Var& stream = streams[static_cast<std::size_t>(change.index)];
        if (action == Action::scale) stream = scaled(stream, change.factor);
        if (action == Action::swap) std::swap(stream, streams[static_cast<std::size_t>(change.other)]);
        if (action == Action::rescue) stream = expand_dims(clean(site()).x.select(1, change.index), 0);
      }
    return stack(streams, -2);
  }

  /// The input u [1, T, C] of the newest site.
  Var with_changed_paths(const Var& u) const {
    std::map<std::int64_t, Var> paths;  // what comes from each site that has changes
    for (const Action action : {Action::scale, Action::rescue})
      for (const Intervention& change : changes_) {
        if (change.target != Target::path || change.other != site() - 1 || change.action != action) continue;
        check_value(sites_.back().h_pre.defined(), "--{}: the input of site {} is no weighted sum of the streams",
                    change.text, change.other);
        Var& path = paths.try_emplace(change.index, contribution(sites_, change.index, change.other)).first->second;
        path = action == Action::scale ? path * change.factor
                                       : Var(contribution(clean_->sites, change.index, change.other));
      }
    if (paths.empty()) return u;
    Var sum = cast(u, DType::f64);
    for (const auto& [from, path] : paths) sum = sum + expand_dims(path - contribution(sites_, from, site() - 1), 0);
    return cast(sum, u.dtype());
  }

  const apps::Model& model_;
  std::span<const Intervention> changes_;
  const Seen* clean_;
  std::int64_t connections_;
  std::vector<Site> sites_;
  Tensor next_h_pre_;  // of a single pass, [T, n]
};

}  // namespace

void check_has_streams(const apps::Model& model) {
  const ConnectionKind kind = last_connection(model).kind();
  check_value(kind != ConnectionKind::manifold && kind != ConnectionKind::skip &&
                  kind != ConnectionKind::attention_residual && kind != ConnectionKind::frac &&
                  kind != ConnectionKind::laurel,
              "the model must have connections with streams, or residual ones, but has {}", mhc::name(kind));
}

Seen evaluate(const apps::Model& model, const Tensor& tokens, std::span<const Intervention> changes,
              const Seen* clean) {
  Microscope scope(model, changes, clean);
  Connection::Stream stream = model.blocks.front().attention.connection.open(model.embed(tokens));
  Var first_values;
  for (const auto& block : model.blocks)
    stream = block(stream, tokens, nn::AttentionCall{.first_values = &first_values});
  const Var x = mhc::value(stream);
  return std::move(scope).finish(x.rank() == 3 ? expand_dims(x, -2) : x);
}

Tensor carried(const Site& site, const Tensor& weights) {
  return squeeze(matmul(site.h_res, expand_dims(weights, -1)), -1).value();
}

Tensor gain(const Site& site, const Tensor& weights) { return sum(Var(site.h_pre) * weights, {-1}).value(); }

Tensor read_by_head(const apps::Model& model, const Site& site) {
  const Var x = expand_dims(site.x, 0);
  const bool single_pass = last_connection(model).kind() == ConnectionKind::single_pass;
  const Var u = close(model, x, single_pass ? Microscope::single_pass_map(site.h_pre, x) : Tensor());
  return model.predict(u).value().select(0, 0);
}

}  // namespace braid::look
