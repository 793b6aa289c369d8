#pragma once
#include <algorithm>
#include <cstdint>

#include <braid/core/kernels/round_up.h>
#include <braid/core/parallel.h>

namespace braid::mhc::kernels {

/// A tall matrix [rows, columns] cut into panels of 16 rows, each of them transposed: vectors lie along the rows, and
/// those of all columns lie together. Rows that the last panel lacks are not set.
constexpr std::int64_t kPanel = 16;

/// Elements that the panels take.
inline std::int64_t panels_size(std::int64_t rows, std::int64_t columns) {
  return braid::kernels::round_up(rows, kPanel) * columns;
}

/// Calls f(index in the panels, index in the matrix) for every element, on all threads.
template <class F>
void for_panels(std::int64_t rows, std::int64_t columns, F&& f) {
  parallel_for(braid::kernels::divide_up(rows, kPanel), 32, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first * kPanel; row < std::min(rows, last * kPanel); ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        f((row / kPanel * columns + column) * kPanel + row % kPanel, row * columns + column);
  });
}

template <class T>
void pack_panels(std::int64_t rows, std::int64_t columns, const T* matrix, T* panels) {
  for_panels(rows, columns, [=](std::int64_t packed, std::int64_t i) { panels[packed] = matrix[i]; });
}

template <class T>
void unpack_panels(std::int64_t rows, std::int64_t columns, const T* panels, T* matrix) {
  for_panels(rows, columns, [=](std::int64_t packed, std::int64_t i) { matrix[i] = panels[packed]; });
}

}  // namespace braid::mhc::kernels
