#pragma once
#include <set>
#include <string>

#include <braid/autograd/ops.h>
#include <tests/throws.h>

namespace braid::error_messages_test {

inline const Tensor kX = ones({2, 3}), kY = ones({4, 5}), kDouble = ones({2, 3}, DType::f64),
                    kInt = ones({2, 3}, DType::i32);
inline const Tensor kIds = zeros({2}, DType::i32), kHighIds = full({2}, 9, DType::i32),
                    kHighRow = full({1, 3}, 9, DType::i32);
inline const Tensor kRank8 = ones({1, 1, 1, 1, 1, 1, 1, 1}), kScalar = ones({}), kPicture = ones({1, 4, 4, 3});

/// Rows of the table of errors whose messages begin with the op, and their ops.
struct Table {
  std::set<std::string> ops;

  template <class E>
  void throws(const char* op, auto&& call, std::source_location row = std::source_location::current()) {
    const std::string message = braid::throws<E>(op, call, row);
    EXPECT_TRUE(message.starts_with(op + std::string(": "))) << op << " says: " << message;
    ops.insert(op);
  }
  /// Of shapes that do not broadcast, and of dtypes that differ.
  template <class Shapes, class DTypes>
  void throws_of_two(const char* op, auto f, std::source_location row = std::source_location::current()) {
    const auto shapes = [f] { f(kX, kY); };
    const auto dtypes = [f] { f(kX, kDouble); };
    throws<Shapes>(op, shapes, row);
    throws<DTypes>(op, dtypes, row);
  }
  /// Of an axis that is not there, and one given twice.
  template <class E>
  void throws_along(const char* op, auto f, std::source_location row = std::source_location::current()) {
    const auto missing = [f] { f(Axes(3)); };
    const auto repeated = [f] { f(Axes(std::vector{0, -2})); };
    throws<E>(op, missing, row);
    throws<E>(op, repeated, row);
  }
};

/// Rows of ops that take no integers.
void integers(Table& table);
/// Rows of products, norms, convolutions and attention.
void layers(Table& table);
/// Rows of sums of products, and of losses.
void sums(Table& table);

}  // namespace braid::error_messages_test
