#pragma once
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/verify/verdict.h>
#include <braid/core/random.h>

namespace braid::detail {

/// A line through the inputs of a function, along which its derivative is taken.
struct Line {
  std::string input, where;                                // in words
  std::vector<std::pair<std::size_t, Tensor>> directions;  // of the inputs that move
  double scale = 1;                                        // unit of the steps
  double from = 0;                                         // the value of the element if only one moves
  double largest = 0;                                      // the largest gradient of that input
};

/// The lines through a point along which gradcheck compares derivatives.
class Lines {
 public:
  Lines(const std::vector<Tensor>& inputs, const std::vector<std::string>& names, const std::vector<Tensor>& gradients,
        const GradcheckOptions& options)
      : inputs_(inputs), names_(names), gradients_(gradients), options_(options) {}

  /// Every element of every input, or random directions if there are too many; then one direction for each group of
  /// inputs and one for all.
  std::vector<Line> all(Rng& rng) const;
  Line element(std::size_t input, std::int64_t element) const { return elements(input, element, element + 1).front(); }
  /// A random direction in which all inputs move.
  Line all_inputs(Rng& rng) const { return joint("all together", "", rng); }

 private:
  std::vector<Line> elements(std::size_t input, std::int64_t begin, std::int64_t end) const;
  void add_input(std::vector<Line>& lines, std::size_t input, Rng& rng) const;
  Line joint(const std::string& name, const std::string& group, Rng& rng) const;

  const std::vector<Tensor>& inputs_;
  const std::vector<std::string>& names_;
  const std::vector<Tensor>& gradients_;
  const GradcheckOptions& options_;
};

}  // namespace braid::detail
