#include <braid/dist/communicator.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include <braid/core/error.h>
#include <braid/core/platform/machine.h>

namespace braid::dist {
namespace {

/// The sums when one rank computes all blocks.
class LocalSum final : public detail::BlockSum {
 public:
  LocalSum(std::int64_t blocks, std::size_t count) : blocks_(blocks), sums_(count, nn::TreeSum<Var>(blocks)) {}

  nn::BlockRange own_blocks() const override { return {0, blocks_}; }
  void add(std::int64_t block, std::size_t index, Tensor term) override {
    sums_[index].add(block, Var(std::move(term)));
  }
  std::vector<Tensor> total() override {
    std::vector<Tensor> totals;
    for (auto& sum : sums_) totals.push_back(std::move(sum).total().value());
    return totals;
  }

 private:
  std::int64_t blocks_;
  std::vector<nn::TreeSum<Var>> sums_;
};

}  // namespace

int Communicator::sharing_processors() {
  // Equal for ranks that may use the same processors of the same machine.
  const std::vector<std::string> all = gather(platform::boot_id() + platform::usable_processors());
  return static_cast<int>(std::ranges::count(all, all[static_cast<std::size_t>(rank())]));
}

void Communicator::check_same(const std::string& what, const std::string& value) {
  if (!any(broadcast(value) != value)) return;  // ranks send their values only if one differs
  const std::vector<std::string> all = gather(value);
  for (std::size_t other = 1; other < all.size(); ++other)
    check<Error>(all[other] == all[0], "rank {} has another {} than rank 0: {} instead of {}", other, what, all[other],
                 all[0]);
}

void Communicator::fail(const std::string& why, int code) {
  fmt::print(stderr, "{}\n", why);
  std::exit(code);
}

std::unique_ptr<detail::BlockSum> Communicator::block_sum(std::int64_t blocks, const std::vector<Tensor>& like) {
  check_value(blocks >= 1, "dist: {} blocks are too few for 1 ranks", blocks);
  return std::make_unique<LocalSum>(blocks, like.size());
}

}  // namespace braid::dist
