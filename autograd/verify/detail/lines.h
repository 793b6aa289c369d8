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
  double size = 1;                                         // of what moves, to which inputs round
  double from = 0;                                         // the value of the element if only one moves
  double largest = 0;                                      // the largest gradient of that input

  bool is_element() const { return where.starts_with("element"); }
};

/// The point at which gradcheck compares derivatives, and the gradients there.
struct Point {
  const std::vector<Tensor>& inputs;
  const std::vector<std::string>& names;
  const std::vector<Tensor>& gradients;
  const GradcheckOptions& options;
};

/// Lines along every element of every input, or along random directions if there are too many; then one for each group
/// of inputs and one for all.
std::vector<Line> lines_through(const Point& point, Rng& rng);
Line line_of_element(const Point& point, std::size_t input, std::int64_t element);
/// A random direction in which all inputs move, or those of a group.
Line line_of_all(const Point& point, Rng& rng, const std::string& group = "");
/// The same inputs, each element moving by its own size, however small that is, unless it is 0.
Line in_own_steps(const Point& point, Line line);

}  // namespace braid::detail
