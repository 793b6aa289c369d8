#pragma once
#include <algorithm>
#include <cstdint>

#include <braid/core/parallel.h>

namespace braid::mhc::kernels {

/// A tall matrix [rows, columns] cut into panels of 16 rows, each of them transposed: vectors lie along the rows, and
/// those of all columns lie together. Rows that the last panel lacks are not set.
constexpr std::int64_t kPanel = 16;

inline std::int64_t panels_of(std::int64_t rows) { return (rows + kPanel - 1) / kPanel; }

/// Elements that the panels take.
inline std::int64_t panels_size(std::int64_t rows, std::int64_t columns) { return panels_of(rows) * kPanel * columns; }

/// The offset of the element at a row and a column.
inline std::int64_t panel_offset(std::int64_t row, std::int64_t column, std::int64_t columns) {
  return (row / kPanel * columns + column) * kPanel + row % kPanel;
}

/// Calls f(index in the panels, index in the matrix) for every element, on all threads.
template <class F>
void for_panels(std::int64_t rows, std::int64_t columns, F&& f) {
  parallel_for(panels_of(rows), 32, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first * kPanel; row < std::min(rows, last * kPanel); ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        f(panel_offset(row, column, columns), row * columns + column);
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
