#include <braid/dist/accumulate.h>

#include "over_ranks.h"

namespace braid::examples {
namespace {

class RanksOverMPI final : public OtherRanks {
 public:
  explicit RanksOverMPI(std::string_view program) : ranks_{std::string(program)} {}

  int rank() override { return ranks_.rank(); }
  int size() override { return ranks_.size(); }
  int sharing_processors() override { return ranks_.sharing_processors(); }
  bool any(bool here) override { return ranks_.any(here); }
  std::string broadcast(const std::string& bytes) override { return ranks_.broadcast(bytes); }
  std::vector<std::string> gather(const std::string& bytes) override { return ranks_.gather(bytes); }
  void check_same(const std::string& what, const std::string& value) override { ranks_.check_same(what, value); }
  std::pair<double, std::vector<Var>> accumulate(std::int64_t blocks, const std::vector<Var>& parameters,
                                                 const Loss& loss) override {
    return dist::accumulate(ranks_, blocks, parameters, loss);
  }
  void fail(const std::string& why, int code) override { ranks_.fail(why, code); }

 private:
  dist::Communicator ranks_;
};

}  // namespace

std::shared_ptr<OtherRanks> join_ranks(std::string_view program) { return std::make_shared<RanksOverMPI>(program); }

}  // namespace braid::examples
