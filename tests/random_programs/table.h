#pragma once
#include <tests/random_programs/builder.h>

namespace braid::programs {

/// Every op of the library in at least one row; a test compares it with the headers.
std::span<const Op> all_ops();

std::vector<Op> elementwise_ops();
std::vector<Op> reduction_ops();
std::vector<Op> product_ops();
std::vector<Op> shape_ops();
std::vector<Op> indexing_ops();
std::vector<Op> fused_ops();
std::vector<Op> mixing_ops();
std::vector<Op> stream_ops();

// What rows are made of.
using Vars = std::span<const Var>;
using Shapes = std::span<const Shape>;
using Operands = std::function<std::vector<int>(Builder&)>;

bool has_axes(const Shape& shape);
bool not_empty(const Shape& shape);
Fits of_rank(int rank);
Fits at_least_rank(int rank);

Operands one(Fits fits = anything);
Operands one_within(double limit, Fits fits = anything);
Operands positive();
/// Two values that broadcast.
std::vector<int> pair(Builder& b);

std::optional<Settings> none(Shapes x, Rng& rng);
/// An axis in one of its two spellings. Throws unless there is one.
Setting axis_of(const Shape& shape, Rng& rng);
/// Some axes, perhaps none.
std::vector<std::int64_t> some_axes(const Shape& shape, Rng& rng);
/// One of these.
double pick(std::initializer_list<double> values, Rng& rng);
/// A number that f32 holds, in [-1, 1].
Setting number(Rng& rng);
/// Fused or, in a quarter of the cases, composed; and f() in that form.
Setting form(Rng& rng);
Var in_form(const Setting& form, const std::function<Var()>& f);

}  // namespace braid::programs
