#include <chrono>
#include <optional>

#include <braid/dist/mpi/communicator.h>
#include <braid/dist/mpi/detail/bucket.h>

namespace braid::dist {
namespace detail {
namespace {

using Clock = std::chrono::steady_clock;

/// Tensors from this size on (64 K f32 elements) travel alone and without a copy; smaller ones share messages.
constexpr std::int64_t kBucketBytes = 256 * 1024;

std::int64_t bytes_of(const Tensor& t) { return t.numel() * static_cast<std::int64_t>(size_of(t.dtype())); }

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Sums that are complete on this rank travel to the others while it computes more gradients.
class RankSum final : public BlockSum {
 public:
  RankSum(World& world, std::int64_t blocks, const std::vector<Tensor>& like)
      : world_(world), stages_(world.plans[blocks]), own_(share(blocks, world.size, world.rank)) {
    if (stages_.empty()) stages_ = plan(blocks, world.size, world.rank);
    terms_.assign(like.size(), {nn::TreeSum<Var>(blocks), own_.end - own_.begin});
    std::int64_t room = 0;
    for (std::size_t i = like.size(); i-- > 0;) {  // last first, the order of the backward pass
      const bool alike = i + 1 < like.size() && like[i].dtype() == like[i + 1].dtype();
      if (!alike || bytes_of(like[i]) > room) groups_.emplace_back(), room = kBucketBytes;
      room -= bytes_of(like[i]);
      Group& group = groups_.back();
      group.terms.insert(group.terms.begin(), i);
      ++group.missing;
      terms_[i].group = groups_.size() - 1;
    }
  }

  nn::BlockRange own_blocks() const override { return own_; }

  void add(std::int64_t block, std::size_t index, Tensor value) override {
    Term& term = terms_[index];
    term.sum.add(block, Var(std::move(value)));
    if (--term.missing > 0) return;
    const auto start = Clock::now();
    if (Group& group = groups_[term.group]; --group.missing == 0) send(group, static_cast<int>(term.group));
    advance();
    world_.traffic.seconds_beside += seconds_since(start);
  }

  std::vector<Tensor> total() override {
    const auto start = Clock::now();
    Patience patience;
    for (std::size_t before = 0; !advance(); before = stages_done()) {
      if (stages_done() > before) patience = {};  // a message has arrived
      patience.pause();
    }
    world_.traffic.seconds_after += seconds_since(start);
    world_.traffic.seconds_open += seconds_since(*first_sent_);
    std::vector<Tensor> totals(terms_.size());
    for (Group& group : groups_) {
      std::vector<Tensor> sums = group.bucket->totals();
      group.bucket.reset();  // or the caller could not scale the totals in place
      for (std::size_t i = 0; i < sums.size(); ++i) totals[group.terms[i]] = std::move(sums[i]);
    }
    return totals;
  }

 private:
  /// The sum of a tensor.
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
  };

  void send(Group& group, int tag) {
    if (!first_sent_) first_sent_ = Clock::now();
    std::vector<std::vector<Tensor>> parts;  // [part][term]
    for (const std::size_t index : group.terms) {
      auto sums = std::move(terms_[index].sum).parts();
      parts.resize(sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) parts[i].push_back(std::move(sums[i].second.mutable_value()));
    }
    group.bucket.emplace(world_, stages_, tag, std::move(parts));
  }

  /// Returns true when all groups are summed over all ranks.
  bool advance() {
    bool all = true;
    for (Group& group : groups_) all = group.bucket && group.bucket->advance() && all;
    return all;
  }

  std::size_t stages_done() const {
    std::size_t count = 0;
    for (const Group& group : groups_) count += group.bucket ? group.bucket->stages_done() : 0;
    return count;
  }

  World& world_;
  std::vector<Stage>& stages_;
  nn::BlockRange own_;
  std::vector<Term> terms_;
  std::vector<Group> groups_;
  std::optional<Clock::time_point> first_sent_;
};

}  // namespace
}  // namespace detail

std::unique_ptr<detail::BlockSum> MPICommunicator::block_sum(std::int64_t blocks, const std::vector<Tensor>& like) {
  return std::make_unique<detail::RankSum>(*world_, blocks, like);
}

}  // namespace braid::dist
