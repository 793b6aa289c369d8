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

/// The function that gradcheck() differentiates, and where.
struct Subject {
  const GradcheckFunction& f;
  std::vector<Tensor> inputs;
  std::vector<std::string> names;
  const GradcheckOptions& options;
  const GradcheckFunction* differentiated = nullptr;  // what f is the gradient of, if it is one
  double size = 0;                                    // of the value of that
  std::vector<Tensor> gradients = {};                 // there, by vjps: Comparison adds them
};

/// Lines along every element of every input, or random directions if they are many; then one a group, and one for all.
std::vector<Line> lines_through(const Subject& subject, Rng& rng);
Line line_of_element(const Subject& subject, std::size_t input, std::int64_t element);
/// A random direction in which all inputs move, or those of a group.
Line line_of_all(const Subject& subject, Rng& rng, const std::string& group = "");
/// The same inputs, each element moving by its own size, however small that is, unless it is 0.
Line in_own_steps(const Subject& subject, Line line);

}  // namespace braid::detail
