#include <braid/dist/mpi/detail/rank_sum.h>

#include <chrono>
#include <optional>

#include <braid/dist/mpi/detail/bucket.h>

namespace braid::dist::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// Tensors from this size on (64 K f32 elements) travel alone and without a copy; smaller ones share messages.
constexpr std::int64_t kBucketBytes = 256 * 1024;

std::int64_t bytes_of(const Tensor& t) { return t.numel() * static_cast<std::int64_t>(size_of(t.dtype())); }

/// Adds the time that a scope takes to `seconds`.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

struct RankSum::State {
  /// A gradient, or the loss.
  struct Term {
    nn::TreeSum<Var> sum;
    std::int64_t missing;  // blocks of this rank that are not added yet
    std::size_t group = 0;
  };
  /// Adjacent terms that travel together.
  struct Group {
    std::vector<std::size_t> terms = {};  // ascending
    std::size_t missing = 0;              // terms that lack a block of this rank
    std::optional<Bucket> bucket = {};
    bool done = false;
  };

  State(World& w, std::int64_t blocks) : world(w), stages(w.plans[blocks]), own(share(blocks, w.size, w.rank)) {
    if (stages.empty()) stages = plan(blocks, w.size, w.rank);
  }

  void add(std::int64_t block, std::size_t index, const Tensor& value) {
    Term& term = terms[index];
    term.sum.add(block, Var(value));
    if (--term.missing > 0) return;
    const Stopwatch watch(world.traffic.seconds_beside);
    if (Group& group = groups[term.group]; --group.missing == 0) send(group, static_cast<int>(term.group));
    advance();
  }

  void send(Group& group, int tag) {
    if (!first_sent) first_sent = Clock::now();
    std::vector<std::vector<Tensor>> parts;  // [part][term]
    for (const std::size_t index : group.terms) {
      auto sums = std::move(terms[index].sum).parts();
      parts.resize(sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) parts[i].push_back(std::move(sums[i].second.mutable_value()));
    }
    group.bucket.emplace(world, stages, tag);
    for (std::vector<Tensor>& part : parts) group.bucket->add_part(std::move(part));
  }

  /// Returns true when all groups are summed over all ranks.
  bool advance() {
    bool all = true;
    for (Group& group : groups) {
      if (!group.done && group.bucket) group.done = group.bucket->advance();
      all = all && group.done;
    }
    return all;
  }

  std::size_t stages_done() const {
    std::size_t count = 0;
    for (const Group& group : groups) count += group.bucket ? group.bucket->stages_done() : 0;
    return count;
  }

  World& world;
  std::vector<Stage>& stages;
  nn::BlockRange own;
  std::vector<Term> terms;  // the loss is the last one
  std::vector<Group> groups;
  std::optional<Clock::time_point> first_sent;
};

RankSum::RankSum(World& w, std::int64_t blocks, const std::vector<Tensor>& params)
    : state_(std::make_unique<State>(w, blocks)) {
  auto& [world, stages, own, terms, groups, first_sent] = *state_;
  std::vector<Tensor> like = params;
  like.push_back(scalar(0, DType::f64));  // the loss
  terms.assign(like.size(), {nn::TreeSum<Var>(blocks), own.end - own.begin});
  std::int64_t room = 0;
  for (std::size_t i = like.size(); i-- > 0;) {  // last first, the order of the backward pass
    const bool alike = i + 1 < like.size() && like[i].dtype() == like[i + 1].dtype();
    if (!alike || bytes_of(like[i]) > room) groups.emplace_back(), room = kBucketBytes;
    room -= bytes_of(like[i]);
    auto& group = groups.back();
    group.terms.insert(group.terms.begin(), i);
    ++group.missing;
    terms[i].group = groups.size() - 1;
  }
}

RankSum::~RankSum() = default;

nn::BlockRange RankSum::own_blocks() const { return state_->own; }

void RankSum::add_loss(std::int64_t block, double loss) {
  state_->add(block, state_->terms.size() - 1, scalar(loss, DType::f64));
}

void RankSum::add_gradient(std::int64_t block, std::size_t param, Tensor gradient) {
  state_->add(block, param, std::move(gradient));
}

std::pair<double, std::vector<Tensor>> RankSum::total() {
  Traffic& traffic = state_->world.traffic;
  {
    const Stopwatch watch(traffic.seconds_after);
    Patience patience;
    for (std::size_t before = 0; !state_->advance(); before = state_->stages_done()) {
      if (state_->stages_done() > before) patience.begin_anew();
      patience.pause();
    }
  }
  traffic.seconds_open += std::chrono::duration<double>(Clock::now() - *state_->first_sent).count();
  std::vector<Tensor> totals(state_->terms.size());
  for (auto& group : state_->groups) {
    std::vector<Tensor> sums = group.bucket->totals();
    group.bucket.reset();  // or the caller could not scale the totals in place
    for (std::size_t i = 0; i < sums.size(); ++i) totals[group.terms[i]] = std::move(sums[i]);
  }
  const double loss = totals.back().item();
  totals.pop_back();
  return {loss, std::move(totals)};
}

}  // namespace braid::dist::detail
